#!/bin/sh
# Fetches the library of the embedded ClickHouse engine into the user's cache folder, checks it, and
# prints its path. It does what chdb.Ensure does, into the same place and under the same lock, for
# machines that are prepared ahead (CI images, laptops about to go offline).
#
# CHDB_LIB_PATH names a library to use instead: then nothing is fetched.
set -eu

version=26.7.3-stable.1
package=@chdb/lib-linux-x64-gnu
tarball_sha256=c0d32b129e988f2b9a9a31c9141aecf5e1e2453f9a079efc4d36ab8e3f92b2ad
library_bytes=566330096
library_sha256=36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5

fail() {
	echo "fetch-chdb: $*" >&2
	exit 1
}

if [ -n "${CHDB_LIB_PATH:-}" ]; then
	[ -f "$CHDB_LIB_PATH" ] || fail "CHDB_LIB_PATH is $CHDB_LIB_PATH, which is no file"
	echo "$CHDB_LIB_PATH"
	exit 0
fi

platform="$(uname -s)/$(uname -m)"
[ "$platform" = Linux/x86_64 ] ||
	fail "there is no published build of the library $version for $platform: set CHDB_LIB_PATH to a libchdb you have, or use a clickhouse-server of your own"

dir="${XDG_CACHE_HOME:-$HOME/.cache}/pointsman/chdb/$version"
library="$dir/libchdb.so"

present() {
	[ -f "$library" ] && [ "$(wc -c <"$library")" -eq "$library_bytes" ]
}

if ! present; then
	command -v npm >/dev/null ||
		fail "npm is not installed: install Node.js with npm (Debian and Ubuntu: apt-get install npm; Fedora: dnf install npm), or set CHDB_LIB_PATH to a libchdb.so of version $version"
	for tool in flock sha256sum tar; do
		command -v "$tool" >/dev/null || fail "$tool is not installed"
	done
	mkdir -p "$dir"
	exec 9>"$dir.lock"
	flock 9
	if ! present; then
		tmp="$(mktemp -d "$dir/fetch-XXXXXX")"
		trap 'rm -rf "$tmp"' EXIT INT TERM
		echo "fetch-chdb: downloading $package@$version (178 MB, 566 MB unpacked)" >&2
		(cd "$tmp" && npm pack "$package@$version" --silent --ignore-scripts >name) ||
			fail "\`npm pack $package@$version\` failed: check the network and npm's registry and proxy settings (\`npm ping\`), or set CHDB_LIB_PATH to a libchdb.so of version $version"
		tarball="$tmp/$(tail -n 1 "$tmp/name")"
		echo "$tarball_sha256  $tarball" | sha256sum -c --status || fail "the package has the wrong checksum"
		tar -xzf "$tarball" -C "$tmp" package/libchdb.so
		echo "$library_sha256  $tmp/package/libchdb.so" | sha256sum -c --status || fail "the library has the wrong checksum"
		chmod 755 "$tmp/package/libchdb.so"
		sync "$tmp/package/libchdb.so" 2>/dev/null || sync
		mv "$tmp/package/libchdb.so" "$library"
	fi
fi
echo "$library"
