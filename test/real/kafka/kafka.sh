#!/usr/bin/env bash
# Apache Kafka 4.2.0 (KRaft) on loopback, for tests and for trying things out by hand. Needs a JDK 17 or newer, and
# Maven once, to fetch it.
#
#   kafka.sh fetch             print the folder with the jars, fetched and checked
#   kafka.sh start DIR [1|3]   start brokers with their data below DIR, on free ports
#   kafka.sh ready DIR         wait until every broker of DIR accepts connections; prints their addresses
#   kafka.sh stop DIR          stop the brokers that were started from DIR
#
# POINTSMAN_CACHE names another cache folder than ~/.cache/pointsman.
set -euo pipefail

version=4.2.0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${POINTSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pointsman}
lib=$cache/kafka/$version
cluster=4L6g3nShT-eMCtK--X86sw # fixed: one that begins with "-" would be taken for an option

die() { echo "kafka.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 not found: $2"; }

checked() { [ -d "$lib" ] && (cd "$lib" && sha256sum --quiet --strict -c "$here/SHA256SUMS" >/dev/null 2>&1); }

fetch() {
  need sha256sum "install coreutils"
  mkdir -p "$cache/kafka"
  exec 9>"$cache/kafka/.lock" # two test runs at once fetch once
  flock 9
  if ! checked; then
    need mvn "install Maven to fetch Kafka (Debian: apt-get install maven)"
    tmp=$(mktemp -d "$cache/kafka/.fetch-XXXXXX") # global, since the trap outlives this function
    trap 'rm -rf "$tmp"' EXIT
    cp "$here/pom.xml" "$tmp/"
    echo "kafka.sh: fetching Kafka $version (43 MB) into $lib" >&2
    (cd "$tmp" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2) || die "Maven could not fetch Kafka"
    rm -rf "$lib"
    mv "$tmp/lib" "$lib"
    checked || die "the jars in $lib are not those of SHA256SUMS"
  fi
  echo "$lib"
}

free_port() { # outside the range that outgoing connections take theirs from
  local port
  for _ in $(seq 200); do
    port=$((20000 + RANDOM % 12000))
    if ! [[ " ${taken[*]:-} " == *" $port "* ]] && ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      taken+=("$port")
      free=$port
      return
    fi
  done
  die "no free port found"
}

start() {
  local dir=$1 brokers=${2:-1} voters="" bootstrap="" node
  need java "install a JDK 17 or newer (Debian: apt-get install default-jdk-headless)"
  fetch >/dev/null
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  local -a ports=() controllers=()
  taken=()
  for node in $(seq "$brokers"); do
    free_port; ports[node]=$free
    free_port; controllers[node]=$free
    voters+="${voters:+,}$node@127.0.0.1:${controllers[node]}"
    bootstrap+="${bootstrap:+,}127.0.0.1:${ports[node]}"
  done
  for node in $(seq "$brokers"); do
    local home=$dir/node-$node
    [ -e "$home/pid" ] && kill -0 "$(cat "$home/pid")" 2>/dev/null && die "node $node of $dir is running"
    mkdir -p "$home"
    if [ ! -e "$home/server.properties" ]; then
      sed -e "s|@NODE@|$node|; s|@VOTERS@|$voters|; s|@PORT@|${ports[node]}|g; s|@CONTROLLER_PORT@|${controllers[node]}|" \
        -e "s|@DIR@|$home|; s|@REPLICAS@|$brokers|; s|@IN_SYNC@|$((brokers > 1 ? 2 : 1))|" "$here/server.properties" >"$home/server.properties"
      java -cp "$lib/*" kafka.tools.StorageTool format -t "$cluster" -c "$home/server.properties" >"$home/format.log" 2>&1 ||
        die "formatting failed, see $home/format.log"
    fi
    nohup java -Xmx512m -Xms256m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$lib/*" \
      kafka.Kafka "$home/server.properties" >>"$home/log" 2>&1 </dev/null 9>&- &
    echo $! >"$home/pid"
  done
  [ -e "$dir/bootstrap" ] || echo "$bootstrap" >"$dir/bootstrap"
}

ready() {
  local dir=$1 address deadline=$((SECONDS + 120))
  for address in $(tr ',' ' ' <"$dir/bootstrap"); do
    until (exec 3<>"/dev/tcp/${address%:*}/${address#*:}") 2>/dev/null; do
      [ $SECONDS -lt $deadline ] || die "$address does not answer, see $dir/node-*/log"
      sleep 0.2
    done
  done
  cat "$dir/bootstrap"
}

# A number may be another process's by now: only one that runs from the folder is ours.
ours() { { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null | grep -qF "$2/node-"; }

stop() {
  local dir pid file deadline
  dir=$(cd "$1" && pwd)
  for file in "$dir"/node-*/pid; do
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    if ours "$pid" "$dir"; then kill "$pid" 2>/dev/null || true; fi
  done
  deadline=$((SECONDS + 20))
  for file in "$dir"/node-*/pid; do
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    while ours "$pid" "$dir"; do
      [ $SECONDS -lt $deadline ] || kill -9 "$pid" 2>/dev/null || true
      sleep 0.2
    done
    rm -f "$file"
  done
}

case "${1:-}" in
fetch) fetch ;;
start) [ $# -ge 2 ] || die "start what? give a folder"; start "$2" "${3:-1}" ;;
ready) [ $# -eq 2 ] || die "ready where? give the folder"; ready "$2" ;;
stop) [ $# -eq 2 ] || die "stop what? give the folder"; stop "$2" ;;
*) sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | sed -n 's/^# \{0,1\}//p'; exit 2 ;;
esac
