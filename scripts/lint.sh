#!/usr/bin/env bash
# Checks words (scripts/check_words.py) and includes (scripts/check_includes.py) of the whole tree, and runs clang-tidy
# (checks in .clang-tidy) over the C++ sources that the single preset compiles, except tests.
#   scripts/lint.sh [--since REVISION]
#     --since  clang-tidy only for sources that changed since the revision, or whose own header did. Commit subjects since
#              the revision are checked, too. Without --since they are checked since origin/main, where the clone has it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$project_root"

since=
while [ $# -gt 0 ]; do
  case $1 in
    --since) since=${2:?--since needs a revision}; shift ;;
    *) die "unknown argument '$1' (known: --since REVISION)" ;;
  esac
  shift
done
subjects=$since
[ -n "$subjects" ] || ! git rev-parse -q --verify 'origin/main^{commit}' >/dev/null || subjects=origin/main
status=0
scripts/check_words.py ${subjects:+--since "$subjects"} || status=1
scripts/check_includes.py || status=1

# From release 22 on it no longer looks for findings in the libraries' headers, which makes it five times as fast.
tool=$project_lint_tool
[ -x "$tool" ] || tool=$(command -v clang-tidy) || die "clang-tidy is missing: run scripts/setup.sh --dev"
# Each time, as sources may have been added since.
step "configure (single)" configure-single "read the first error above" cmake --preset single || exit 1

# files_of PRESET: what it compiles, a file a line.
files_of() { sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "build/$1/compile_commands.json" | sort -u; }

mapfile -t sources < <(files_of single | grep -F "$project_root/" |
  grep -v -e "^$project_root/build/" -e "^$project_root/tests/" -e "^$project_root/.toolkit/")
if [ -n "$since" ]; then
  mapfile -t changed < <({ git diff --name-only --diff-filter=d "$since" -- '*.cpp' '*.hpp'
    git ls-files --others --exclude-standard -- '*.cpp' '*.hpp'; } | sed 's/\.[ch]pp$/.cpp/')
  mapfile -t sources < <(printf '%s\n' "${sources[@]}" | grep -Fx -f <(printf "$project_root/%s\n" "${changed[@]:-none}"))
fi

# Most of the time goes into the libraries' headers. Where all sources are checked, those that the lint preset groups
# are therefore checked a group at a time, the groups first as they take longest; every other source on its own.
# members_of GROUP: the sources that a group includes.
members_of() { sed -n 's/^#include "\(.*\.cpp\)"$/\1/p' "$1"; }
groups=() single=("${sources[@]}")
if [ -z "$since" ]; then
  cmake --preset lint >/dev/null || die "the lint preset cannot be configured: see cmake --preset lint"
  mapfile -t groups < <(files_of lint | grep '/Unity/unity_[^/]*$' | grep -v '/nanobind[^/]*/Unity/')
  mapfile -t single < <(printf '%s\n' "${sources[@]}" |
    grep -Fxv -f <(for group in "${groups[@]}"; do members_of "$group"; done))
fi

# lint_one SOURCE_OR_GROUP: a line a file as it is finished, so that progress is seen; findings follow it.
lint_one() {
  local output status=0 verdict= preset=single names
  names=${1#"$project_root/"}
  if [[ $1 == "$project_root"/build/lint/* ]]; then
    preset=lint
    names=$(members_of "$1" | sed "s|^$project_root/||")
  fi
  # GCC 12's library uses functions of its own that were deprecated later: these are not findings.
  output=$("$tool" --quiet --header-filter="$headers" -p "build/$preset" --extra-arg=-Wno-deprecated-declarations "$1" \
    2>/dev/null) || status=$?
  if [ $status != 0 ]; then
    [ $preset = lint ] && verdict="$verdict: FAILED, this or another of its group" || verdict="$verdict: FAILED"
  fi
  printf '%s\n' "$names" | sed "s|^|  clang-tidy |; s|\$|$verdict|"
  [ -n "$output" ] && printf '%s\n' "$output"
  return "$status"
}
export -f lint_one members_of
# In a group the sources count as headers.
headers='/(core|db|runtime|tuner|report|cli|python)/[^/]*(/[^/]*)*\.[ch]pp$'
export tool project_root headers

if [ ${#sources[@]} = 0 ]; then
  say "  clang-tidy: no sources to check"
  exit "$status"
fi
started=$SECONDS
tidy=0
printf '%s\0' "${groups[@]}" "${single[@]}" |
  xargs -0 -r -n 1 -P "$(nproc)" bash -c 'lint_one "$1" || exit 1' lint || tidy=$?
if [ "$tidy" = 0 ]; then say "  clang-tidy: ${#sources[@]} files clean in $((SECONDS - started)) s"
else say "  clang-tidy: findings above ($((SECONDS - started)) s)"; fi
[ "$status$tidy" = 00 ]
