# Shared by the scripts of this folder, which source it: where the project lies, and steps that show their progress.
# shellcheck shell=bash

project_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log_folder=$project_root/build/logs
project_lint_tool=$project_root/.toolkit/lint/clang_tidy/data/bin/clang-tidy # brought by setup.sh --dev

# Tools and libraries that setup.sh could not take from the distribution.
[ -d "$project_root/.venv/bin" ] && PATH=$project_root/.venv/bin:$PATH
[ -d "$project_root/.toolkit/prefix" ] && export CMAKE_PREFIX_PATH=$project_root/.toolkit/prefix${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}

say() { printf '%s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

ticker_pid=
stop_ticker() {
  [ -z "$ticker_pid" ] && return 0
  kill "$ticker_pid" 2>/dev/null || true
  wait "$ticker_pid" 2>/dev/null || true
  ticker_pid=
  [ -t 1 ] && printf '\r\033[K'
  return 0
}

trap stop_ticker EXIT

# The last line of a log that says something, printable.
last_line() { tail -c 2000 "$1" 2>/dev/null | tr '\r' '\n' | sed '/^[[:space:]]*$/d' | tail -n 1 | tr -cd '[:print:]'; }

# ticker WHAT LOG: until it is stopped, shows how long WHAT has taken and the last line of LOG; once a second on a
# terminal, every 15 seconds elsewhere.
ticker() {
  local what=$1 log=$2 seconds=0 last columns
  while kill -0 $$ 2>/dev/null; do
    sleep 1 </dev/null >/dev/null 2>&1
    seconds=$((seconds + 1))
    if [ -t 1 ]; then
      columns=$(tput cols 2>/dev/null || echo 80)
      last=$(last_line "$log")
      last="  $what: $seconds s  $last"
      printf '\r\033[K%s' "${last:0:columns-1}"
    elif [ $((seconds % 15)) = 0 ]; then
      last=$(last_line "$log")
      printf '  %s: %s s  %s\n' "$what" "$seconds" "${last:0:160}"
    fi
  done
}

# step WHAT LOG ADVICE COMMAND...: runs COMMAND with its output in build/logs/LOG.log, shows progress and the time
# taken; on failure the end of the log and ADVICE, and returns COMMAND's status. As the caller tests that status,
# `set -e` does not hold inside COMMAND: a shell function must return its failures itself.
step() {
  local what=$1 log=$log_folder/$2.log advice=$3 status=0 begin=$EPOCHREALTIME
  shift 3
  mkdir -p "$log_folder"
  : >"$log"
  [ -t 1 ] || say "  $what ..."
  ticker "$what" "$log" &
  ticker_pid=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_ticker
  local took
  took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  if [ "$status" = 0 ]; then
    say "  $what: done in $took s"
  else
    say "  $what: FAILED after $took s (status $status); the end of $log:"
    tail -n 30 "$log" | sed 's/^/    /'
    say "  What to do: $advice"
  fi
  return "$status"
}

# Configures, with `configure_options` if there are any, and builds: build_preset PRESET [TARGET...]
configure_options=()
build_preset() {
  local preset=$1
  shift
  cd "$project_root" || return
  step "configure ($preset)" "configure-$preset" \
    "read the first error above; a build folder of another CMake is cured by removing build/$preset" \
    cmake --preset "$preset" "${configure_options[@]}" || return
  step "build ($preset)" "build-$preset" \
    "read the first error in the log; if the compiler was killed, memory ran out: set CMAKE_BUILD_PARALLEL_LEVEL=1" \
    cmake --build --preset "$preset" ${1:+--target "$@"}
}

# The configured package sources in FOLDER with more components, and `apt` to use them: /etc/apt stays as it is.
# apt_elsewhere FOLDER COMPONENTS [SUITE]: SUITE replaces this release's name and asks for source packages.
apt_elsewhere() {
  local folder=$1 component=$2 suite=${3:-} file edit
  mkdir -p "$folder"/{parts,lists/partial,cache/archives/partial}
  : >"$folder/sources.list"
  edit="/^Components:.*main/ { /[[:space:]]$component([[:space:]]|\$)/! s/\$/ $component/ }
        /^[[:space:]]*deb[[:space:]].*[[:space:]]main([[:space:]]|\$)/ { /[[:space:]]$component([[:space:]]|\$)/! s/(^[^#]*)/\\1 $component / }"
  if [ -n "$suite" ]; then
    edit+="
        s/\\b$(. /etc/os-release && echo "$VERSION_CODENAME")\\b/$suite/g
        s/^Types:.*/Types: deb-src/
        s/^[[:space:]]*deb[[:space:]]/deb-src /"
  fi
  [ -r /etc/apt/sources.list ] && sed -E "$edit" /etc/apt/sources.list >"$folder/sources.list"
  for file in /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
    [ -r "$file" ] && sed -E "$edit" "$file" >"$folder/parts/$(basename "$file")"
  done
  apt=(apt-get -o "Dir::Etc::SourceList=$folder/sources.list" -o "Dir::Etc::SourceParts=$folder/parts"
    -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=root
    -o Debug::NoLocking=true -o Acquire::Retries=3)
  "${apt[@]}" update
}
