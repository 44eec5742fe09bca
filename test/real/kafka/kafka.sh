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
# shellcheck source=test/real/server.sh
. "$here/../server.sh"
lib=$cache/kafka/$version
cluster=4L6g3nShT-eMCtK--X86sw # fixed: one that begins with "-" would be taken for an option

checked() { [ -d "$lib" ] && (cd "$lib" && sha256sum --quiet --strict -c "$here/SHA256SUMS" >/dev/null 2>&1); }

fetch() {
  need sha256sum "install coreutils"
  alone kafka
  if ! checked; then
    need mvn "install Maven to fetch Kafka (Debian: apt-get install maven)"
    scratch kafka
    cp "$here/pom.xml" "$tmp/"
    say "fetching Kafka $version (43 MB) into $lib"
    (cd "$tmp" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2) || die "Maven could not fetch Kafka"
    rm -rf "$lib"
    mv "$tmp/lib" "$lib"
    checked || die "the jars in $lib are not those of SHA256SUMS"
  fi
  echo "$lib"
}

start() {
  local dir=$1 brokers=${2:-1} voters="" bootstrap="" node
  need java "install a JDK 17 or newer (Debian: apt-get install default-jdk-headless)"
  fetch >/dev/null
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  local -a ports=() controllers=()
  for node in $(seq "$brokers"); do
    free_port; ports[node]=$port
    free_port; controllers[node]=$port
    voters+="${voters:+,}$node@127.0.0.1:${controllers[node]}"
    bootstrap+="${bootstrap:+,}127.0.0.1:${ports[node]}"
  done
  for node in $(seq "$brokers"); do
    local home=$dir/node-$node
    running "$home" && die "node $node of $dir is running"
    mkdir -p "$home"
    if [ ! -e "$home/server.properties" ]; then
      sed -e "s|@NODE@|$node|; s|@VOTERS@|$voters|; s|@PORT@|${ports[node]}|g; s|@CONTROLLER_PORT@|${controllers[node]}|" \
        -e "s|@DIR@|$home|; s|@REPLICAS@|$brokers|; s|@IN_SYNC@|$((brokers > 1 ? 2 : 1))|" "$here/server.properties" >"$home/server.properties"
      java -cp "$lib/*" kafka.tools.StorageTool format -t "$cluster" -c "$home/server.properties" >"$home/format.log" 2>&1 ||
        die "formatting failed, see $home/format.log"
    fi
    cd "$home"
    nohup java -Xmx512m -Xms256m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$lib/*" \
      kafka.Kafka server.properties >>log 2>&1 </dev/null 9>&- &
    echo $! >pid
  done
  [ -e "$dir/bootstrap" ] || echo "$bootstrap" >"$dir/bootstrap"
}

ready() {
  local dir=$1 address deadline=$((SECONDS + 120))
  for address in $(tr ',' ' ' <"$dir/bootstrap"); do
    until answers "$address"; do
      [ $SECONDS -lt $deadline ] || die "$address does not answer, see $dir/node-*/log"
      sleep 0.2
    done
  done
  cat "$dir/bootstrap"
}

stop() { end "$(cd "$1" && pwd)"/node-*; }

case "${1:-}" in
fetch) fetch ;;
start) [ $# -ge 2 ] || die "start what? give a folder"; start "$2" "${3:-1}" ;;
ready | stop) folder "$@"; "$1" "$2" ;;
*) usage ;;
esac
