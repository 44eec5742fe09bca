#!/usr/bin/env bash
# Spark 4.1.0 with its Spark Connect server, in one process, on loopback, for tests and for trying things out by hand. Needs Java 17 or
# newer; and once, to fetch it, Python 3 with venv and pip: the Python package pyspark brings all of Spark.
#
#   spark.sh java          print the java that is used
#   spark.sh fetch         print the folder with Spark (SPARK_HOME), fetched and checked
#   spark.sh start DIR     start a server with its data below DIR, on a free port
#   spark.sh ready DIR     wait until the server of DIR takes connections; prints its address
#   spark.sh stop DIR      stop the server that was started from DIR
#
# POINTSMAN_SPARK_JAVA names the java to use, POINTSMAN_CACHE another cache folder than ~/.cache/pointsman.
set -euo pipefail

version=4.1.0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${POINTSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pointsman}
home=$cache/spark/$version

die() { echo "spark.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 not found: $2"; }

new_enough() { # of a java: 17 or newer
  local major
  major=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ -n "$major" ] && [ "$major" -ge 17 ]
}

java_17() {
  local java
  if [ -n "${POINTSMAN_SPARK_JAVA:-}" ]; then
    [ -x "$POINTSMAN_SPARK_JAVA" ] && new_enough "$POINTSMAN_SPARK_JAVA" || die "POINTSMAN_SPARK_JAVA names no java 17 or newer"
    echo "$POINTSMAN_SPARK_JAVA"
    return
  fi
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    if [ -n "$java" ] && [ -x "$java" ] && new_enough "$java"; then
      echo "$java"
      return
    fi
  done
  die "java not found: install a Java 17 or newer (Debian: apt-get install default-jre-headless), or name it in POINTSMAN_SPARK_JAVA"
}

checked() { cmp -s "$here/requirements.txt" "$home/requirements.txt"; } # written last

fetch() {
  mkdir -p "$cache/spark"
  exec 9>"$cache/spark/.lock" # two test runs at once fetch once
  flock 9
  if ! checked; then
    need python3 "install Python 3 (Debian: apt-get install python3)"
    python3 -c 'import venv, ensurepip' 2>/dev/null || die "venv and pip not found: install Python's venv (Debian: apt-get install python3-venv)"
    tmp=$(mktemp -d "$cache/spark/.fetch-XXXXXX") # global, since the trap outlives this function
    trap 'rm -rf "$tmp"' EXIT
    echo "spark.sh: fetching Spark $version (435 MB, 490 MB unpacked) into $home" >&2
    python3 -m venv "$tmp/venv" >&2 || die "Python could not make a venv"
    # pip checks the digests in requirements.txt.
    "$tmp/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --no-cache-dir --require-hashes \
      --no-deps -r "$here/requirements.txt" >&2 || die "pip could not fetch pyspark"
    mkdir "$tmp/spark"
    mv "$tmp"/venv/lib/python3*/site-packages/pyspark/jars "$tmp/spark/jars"
    mkdir "$tmp/spark/conf"
    cp "$here/requirements.txt" "$tmp/spark/"
    rm -rf "$home"
    mv "$tmp/spark" "$home"
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
  java=$(java_17)
  fetch >/dev/null
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  [ -e "$dir/pid" ] && ours "$(cat "$dir/pid")" "$dir" && die "the server of $dir is running"
  [ -e "$dir/address" ] || echo "127.0.0.1:$(free_port)" >"$dir/address"
  port=$(sed 's/.*://' "$dir/address")
  cd "$dir"
  # shellcheck disable=SC2046 # each line is an argument
  SPARK_HOME=$home SPARK_LOCAL_IP=127.0.0.1 nohup "$java" -cp "$home/conf:$home/jars/*" $(cat "$here/jvm.options") \
    org.apache.spark.deploy.SparkSubmit --class org.apache.spark.sql.connect.service.SparkConnectServer \
    --master 'local[2]' --properties-file "$here/spark.conf" --conf "spark.connect.grpc.binding.port=$port" \
    --conf "spark.sql.warehouse.dir=$dir/warehouse" --conf "spark.local.dir=$dir/local" spark-internal \
    >>log 2>&1 </dev/null 9>&- &
  echo $! >pid
}

ready() {
  local dir=$1 address deadline=$((SECONDS + 180))
  address=$(cat "$dir/address")
  while [ $SECONDS -lt $deadline ]; do
    if (exec 3<>"/dev/tcp/${address/://}") 2>/dev/null; then
      echo "$address"
      return
    fi
    sleep 0.5
  done
  die "nobody listens at $address, see $dir/log"
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
java) java_17 ;;
fetch) fetch ;;
start) [ $# -eq 2 ] || die "start what? give a folder"; start "$2" ;;
ready) [ $# -eq 2 ] || die "ready where? give the folder"; ready "$2" ;;
stop) [ $# -eq 2 ] || die "stop what? give the folder"; stop "$2" ;;
*) sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | sed -n 's/^# \{0,1\}//p'; exit 2 ;;
esac
