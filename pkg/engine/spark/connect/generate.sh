#!/usr/bin/env bash
# Writes the Go code of the messages of Spark Connect again, from the .proto files below proto/. Those are Spark 4.1.0's own, unchanged,
# taken from spark-connect_2.13-4.1.0.jar (which the Python package pyspark brings in pyspark/jars):
#
#   unzip spark-connect_2.13-4.1.0.jar 'spark/connect/*.proto' -x spark/connect/example_plugins.proto -d proto
#
# It needs protoc (Debian: protobuf-compiler and libprotobuf-dev) and protoc-gen-go (go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12), and
# says so where they are missing without failing: the files that it writes are committed.
#
# Names of messages and of files are registered per process, and a program that links another client of Spark Connect would register
# them twice and panic. So a copy of the files is compiled whose names have a prefix. Neither name is on the wire: messages are sent
# without their names, and client.go spells the service's out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
for tool in protoc protoc-gen-go; do
  command -v "$tool" >/dev/null || { echo "generate.sh: $tool not found: what it generates is left as it is" >&2; exit 0; }
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/pointsman/spark/connect"
for file in proto/spark/connect/*.proto; do
  sed -e 's|^package spark\.connect;|package pointsman.spark.connect;|' \
    -e 's|^import "spark/connect/|import "pointsman/spark/connect/|' \
    -e 's|^option go_package = .*|option go_package = "github.com/pointsman/pointsman/pkg/engine/spark/connect";|' \
    -e 's|\([ (<]\)spark\.connect\.|\1pointsman.spark.connect.|g' "$file" >"$tmp/pointsman/spark/connect/$(basename "$file")"
done
protoc -I "$tmp" --go_out="$tmp" --go_opt=module=github.com/pointsman/pointsman/pkg/engine/spark/connect "$tmp"/pointsman/spark/connect/*.proto
for file in "$tmp"/*.pb.go; do # without protoc's version, which is no part of what was generated
  sed '/^\/\/ \tprotoc  /d' "$file" >"$(basename "$file")"
done
