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
# shellcheck source=test/real/server.sh
. "$here/../server.sh"
home=$cache/spark/$version

java_17() {
  java_of 17 POINTSMAN_SPARK_JAVA "java not found: install a Java 17 or newer (Debian: apt-get install default-jre-headless)"
}

checked() { cmp -s "$here/requirements.txt" "$home/requirements.txt"; } # written last

fetch() {
  alone spark
  if ! checked; then
    need python3 "install Python 3 (Debian: apt-get install python3)"
    python3 -c 'import venv, ensurepip' 2>/dev/null || die "venv and pip not found: install Python's venv (Debian: apt-get install python3-venv)"
    scratch spark
    say "fetching Spark $version (435 MB, 490 MB unpacked) into $home"
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

start() {
  local dir java
  java=$(java_17)
  fetch >/dev/null
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  running "$dir" && die "the server of $dir is running"
  if [ ! -e "$dir/address" ]; then
    free_port
    echo "127.0.0.1:$port" >"$dir/address"
  fi
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
    if answers "$address"; then
      echo "$address"
      return
    fi
    sleep 0.5
  done
  die "nobody listens at $address, see $dir/log"
}

stop() { end "$(cd "$1" && pwd)"; }

case "${1:-}" in
java) java_17 ;;
fetch) fetch ;;
start | ready | stop) folder "$@"; "$1" "$2" ;;
*) usage ;;
esac
