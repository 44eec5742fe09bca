# shellcheck shell=bash
# What the scripts of servers share; they source it. It is of no use by itself.

program=$(basename "$0")
cache=${POINTSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pointsman}
[[ $cache == /* ]] || cache=$PWD/$cache # servers run in folders of their own

die() { echo "$program: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 not found: $2"; }
say() { echo "$program: $*" >&2; }

# usage prints the comment at the head of the script.
usage() { sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 2; }

# alone NAME waits until no other run fetches the same: two test runs at once fetch once.
alone() {
  mkdir -p "$cache/$1"
  exec 9>"$cache/$1/.lock"
  flock 9
}

# scratch NAME makes a folder that goes away with the script, and leaves its name in $tmp.
scratch() {
  tmp=$(mktemp -d "$cache/$1/.fetch-XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
}

new_enough() { # JAVA MAJOR
  local major
  major=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ -n "$major" ] && [ "$major" -ge "$2" ]
}

# java_of MAJOR VARIABLE ADVICE prints a java that is new enough: the one that the variable names, or one that is found.
java_of() {
  local java named=${!2:-}
  if [ -n "$named" ]; then
    [ -x "$named" ] && new_enough "$named" "$1" || die "$2 names no java $1 or newer"
    echo "$named"
    return
  fi
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    if [ -n "$java" ] && [ -x "$java" ] && new_enough "$java" "$1"; then
      echo "$java"
      return
    fi
  done
  die "$3, or name its java in $2"
}

taken=()
# free_port finds a port outside the range that outgoing connections take theirs from, and leaves it in $port. A script gets none twice.
free_port() {
  for _ in $(seq 200); do
    port=$((20000 + RANDOM % 12000))
    if ! [[ " ${taken[*]:-} " == *" $port "* ]] && ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      taken+=("$port")
      return
    fi
  done
  die "no free port found"
}

answers() { (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; } # HOST:PORT

# ours PID DIR: a number may be another process's by now, and only one that runs in the folder is ours.
ours() { [ "$(readlink "/proc/$1/cwd" 2>/dev/null)" = "$2" ]; }

running() { [ -e "$1/pid" ] && ours "$(cat "$1/pid")" "$1"; } # DIR

# end DIR... ends the processes whose numbers are in the folders' files pid: all at once, and by force after 20 s.
end() {
  local dir pid deadline=$((SECONDS + 20))
  for dir in "$@"; do
    if running "$dir"; then kill "$(cat "$dir/pid")" 2>/dev/null || true; fi
  done
  for dir in "$@"; do
    [ -e "$dir/pid" ] || continue
    pid=$(cat "$dir/pid")
    while ours "$pid" "$dir"; do
      [ $SECONDS -lt $deadline ] || kill -9 "$pid" 2>/dev/null || true
      sleep 0.2
    done
    rm -f "$dir/pid"
  done
}

# folder COMMAND DIR checks that a command has its folder, and nothing else.
folder() { [ -n "${2:-}" ] && [ $# -eq 2 ] || die "$1 what? give a folder"; }
