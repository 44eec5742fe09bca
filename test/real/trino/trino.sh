#!/usr/bin/env bash
# Trino 476, one node, on loopback, for tests and for trying things out by hand. Needs a JDK 24 or newer, and Maven
# once (with any JDK from 17 on), to fetch it.
#
#   trino.sh java          print the JDK 24 or newer that is used
#   trino.sh fetch         print the folder with the server, fetched and checked
#   trino.sh start DIR     start a server with its data below DIR, on a free port
#   trino.sh ready DIR     wait until the server of DIR has finished a query; prints its address
#   trino.sh stop DIR      stop the server that was started from DIR
#
# POINTSMAN_TRINO_JAVA names the java to use, POINTSMAN_CACHE another cache folder than ~/.cache/pointsman.
set -euo pipefail

version=476
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${POINTSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pointsman}
home=$cache/trino/$version

die() { echo "trino.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 not found: $2"; }

new_enough() { # of a java: 24 or newer
  local major
  major=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ -n "$major" ] && [ "$major" -ge 24 ]
}

java_24() {
  local java
  if [ -n "${POINTSMAN_TRINO_JAVA:-}" ]; then
    [ -x "$POINTSMAN_TRINO_JAVA" ] && new_enough "$POINTSMAN_TRINO_JAVA" || die "POINTSMAN_TRINO_JAVA names no java of a JDK 24 or newer"
    echo "$POINTSMAN_TRINO_JAVA"
    return
  fi
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    if [ -n "$java" ] && [ -x "$java" ] && new_enough "$java"; then
      echo "$java"
      return
    fi
  done
  die "no JDK 24 or newer found: install one, or name its java in POINTSMAN_TRINO_JAVA"
}

checked() { cmp -s "$here/SHA256SUMS" "$home/SHA256SUMS"; } # written last

fetch() {
  mkdir -p "$cache/trino"
  exec 9>"$cache/trino/.lock" # two test runs at once fetch once
  flock 9
  if ! checked; then
    need sha256sum "install coreutils"
    need mvn "install Maven to fetch Trino (Debian: apt-get install maven)"
    need unzip "install unzip to unpack Trino's plugins"
    tmp=$(mktemp -d "$cache/trino/.fetch-XXXXXX") # global, since the trap outlives this function
    trap 'rm -rf "$tmp"' EXIT
    cp "$here/pom.xml" "$tmp/"
    echo "trino.sh: fetching Trino $version (222 MB) into $home" >&2
    (cd "$tmp" && mvn -q -B dependency:copy >&2) || die "Maven could not fetch Trino"
    (cd "$tmp/archives" && sha256sum --quiet --strict -c "$here/SHA256SUMS" >&2) || die "what was fetched is not what SHA256SUMS says"
    mkdir -p "$tmp/trino/plugin"
    tar xzf "$tmp/archives/trino-server-core-$version.tar.gz" -C "$tmp/trino" --strip-components=1 \
      "trino-server-core-$version/lib" "trino-server-core-$version/plugin/resource-group-managers"
    local plugin
    for plugin in tpch memory; do
      unzip -q "$tmp/archives/trino-$plugin-$version.zip" -d "$tmp/trino/plugin"
      mv "$tmp/trino/plugin/trino-$plugin-$version" "$tmp/trino/plugin/$plugin"
    done
    cp "$here/SHA256SUMS" "$tmp/trino/"
    rm -rf "$home"
    mv "$tmp/trino" "$home"
  fi
  echo "$home"
}

free_port() { # outside the range that outgoing connections take theirs from
  local port
  for _ in $(seq 200); do
    port=$((20000 + RANDOM % 12000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  die "no free port found"
}

# A number may be another process's by now: only one that runs in the folder is ours.
ours() { [ "$(readlink "/proc/$1/cwd" 2>/dev/null)" = "$2" ]; }

start() {
  local dir java port
  java=$(java_24)
  fetch >/dev/null
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  [ -e "$dir/pid" ] && ours "$(cat "$dir/pid")" "$dir" && die "the server of $dir is running"
  if [ ! -e "$dir/address" ]; then
    port=$(free_port)
    mkdir -p "$dir/data"
    cp -r "$here/etc" "$dir/"
    sed -i "s/@PORT@/$port/" "$dir/etc/config.properties"
    ln -sfn "$home/plugin" "$dir/plugin"
    echo "127.0.0.1:$port" >"$dir/address"
  fi
  cd "$dir"
  # shellcheck disable=SC2046 # each line is an argument
  nohup "$java" -cp "$home/lib/*" $(cat etc/jvm.config) $(sed 's/^/-D/' etc/node.properties) \
    -Dconfig=etc/config.properties -Dlog.levels-file=etc/log.properties io.trino.server.TrinoServer \
    >>log 2>&1 </dev/null 9>&- &
  echo $! >pid
}

ready() {
  local dir=$1 address answer next deadline=$((SECONDS + 180))
  address=$(cat "$dir/address")
  while [ $SECONDS -lt $deadline ]; do
    # A server that says it has started does not count as its own worker yet: only a query that has finished says so.
    answer=$(curl -s -m 10 -H 'X-Trino-User: ready' -d 'SELECT count(*) FROM tpch.tiny.nation' "http://$address/v1/statement" || true)
    while next=$(sed -n 's/.*"nextUri":"\([^"]*\)".*/\1/p' <<<"$answer") && [ -n "$next" ]; do
      answer=$(curl -s -m 10 -H 'X-Trino-User: ready' "$next" || true)
    done
    if grep -q '"state":"FINISHED"' <<<"$answer"; then
      echo "$address"
      return
    fi
    sleep 0.5
  done
  die "$address has not finished a query, see $dir/log"
}

stop() {
  local dir pid deadline=$((SECONDS + 20))
  dir=$(cd "$1" && pwd)
  [ -e "$dir/pid" ] || return 0
  pid=$(cat "$dir/pid")
  if ours "$pid" "$dir"; then kill "$pid" 2>/dev/null || true; fi
  while ours "$pid" "$dir"; do
    [ $SECONDS -lt $deadline ] || kill -9 "$pid" 2>/dev/null || true
    sleep 0.2
  done
  rm -f "$dir/pid"
}

case "${1:-}" in
java) java_24 ;;
fetch) fetch ;;
start) [ $# -eq 2 ] || die "start what? give a folder"; start "$2" ;;
ready) [ $# -eq 2 ] || die "ready where? give the folder"; ready "$2" ;;
stop) [ $# -eq 2 ] || die "stop what? give the folder"; stop "$2" ;;
*) sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | sed -n 's/^# \{0,1\}//p'; exit 2 ;;
esac
