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
# shellcheck source=test/real/server.sh
. "$here/../server.sh"
home=$cache/trino/$version

java_24() { java_of 24 POINTSMAN_TRINO_JAVA "no JDK 24 or newer found: install one"; }

checked() { cmp -s "$here/SHA256SUMS" "$home/SHA256SUMS"; } # written last

fetch() {
  alone trino
  if ! checked; then
    need sha256sum "install coreutils"
    need mvn "install Maven to fetch Trino (Debian: apt-get install maven)"
    need unzip "install unzip to unpack Trino's plugins"
    scratch trino
    cp "$here/pom.xml" "$tmp/"
    say "fetching Trino $version (222 MB) into $home"
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

start() {
  local dir java
  java=$(java_24)
  fetch >/dev/null
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  running "$dir" && die "the server of $dir is running"
  if [ ! -e "$dir/address" ]; then
    free_port
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

stop() { end "$(cd "$1" && pwd)"; }

case "${1:-}" in
java) java_24 ;;
fetch) fetch ;;
start | ready | stop) folder "$@"; "$1" "$2" ;;
*) usage ;;
esac
