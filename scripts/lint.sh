#!/usr/bin/env bash
# Runs clang-tidy (checks in .clang-tidy) over the C++ sources that the single preset compiles, tests left out.
#   scripts/lint.sh [--deep] [--since REVISION]
#     --deep   also the static analyzer, which takes longer than all else together
#     --since  only sources that changed since the revision, or whose own header did
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$project_root"

since=
checks=-clang-analyzer-*
while [ $# -gt 0 ]; do
  case $1 in
    --since) since=${2:?--since needs a revision}; shift ;;
    --deep) checks= ;;
    *) die "unknown argument '$1' (known: --deep, --since REVISION)" ;;
  esac
  shift
done
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
# are therefore checked a group at a time, the groups first as they take longest; every other source on its own. Two
# checks look only at the file that clang-tidy is given, not at a group's members: names that a source takes and never
# uses are looked for in its text instead. The analyzer too is left to look at each source on its own.
# members_of GROUP: the sources that a group includes.
members_of() { sed -n 's/^#include "\(.*\.cpp\)"$/\1/p' "$1"; }
# unused_names SOURCE...: `using a::b;` and `namespace a = b;` whose name stands nowhere else in the source.
unused_names() {
  awk '
    function told(  i) {
      for (i = 1; i <= names; ++i) if (seen[name[i]] < 2) { print file ": " name[i] " is declared and not used"; found = 1 }
      names = 0
      delete seen
    }
    FNR == 1 { told(); file = FILENAME }
    /^ *(using [^=]*::[a-z_A-Z0-9]+;|namespace [a-z_0-9]+ = )/ && !/^ *using namespace / {
      declared = $0
      sub(/ = .*/, "", declared)
      sub(/;.*/, "", declared)
      sub(/.*[ :]/, "", declared)
      name[++names] = declared
    }
    { sub("//.*", ""); n = split($0, words, /[^a-zA-Z_0-9]+/); for (i = 1; i <= n; ++i) ++seen[words[i]] }
    END { told(); exit found }' "$@"
}
groups=() single=("${sources[@]}") unused=true
if [ -z "$since" ] && [ "$checks" = -clang-analyzer-* ]; then
  cmake --preset lint >/dev/null || die "the lint preset cannot be configured: see cmake --preset lint"
  mapfile -t groups < <(files_of lint | grep '/Unity/unity_[^/]*$' | grep -v '/nanobind[^/]*/Unity/')
  mapfile -t single < <(printf '%s\n' "${sources[@]}" |
    grep -Fxv -f <(for group in "${groups[@]}"; do members_of "$group"; done))
  unused_names "${sources[@]}" || unused=false
fi

# lint_one CHECKS SOURCE_OR_GROUP: a line a file as it is finished, so that progress is seen; findings follow it.
lint_one() {
  local output status=0 verdict= preset=single names
  names=${2#"$project_root/"}
  if [[ $2 == "$project_root"/build/lint/* ]]; then
    preset=lint
    names=$(members_of "$2" | sed "s|^$project_root/||")
  fi
  # The analyzer's search is cut at a fifth of its default, which halves the time. What GCC 12's library uses of its own
  # that has been deprecated since is no finding.
  output=$("$tool" --quiet --checks="$1" --header-filter="$headers" -p "build/$preset" --extra-arg=-Xclang \
    --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=50000 \
    --extra-arg=-Wno-deprecated-declarations "$2" 2>/dev/null) || status=$?
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
  exit 0
fi
started=$SECONDS
status=0
$unused || status=1
{
  for file in "${groups[@]}" "${single[@]}"; do printf '%s\0' "$checks" "$file"; done
} | xargs -0 -r -n 2 -P "$(nproc)" bash -c 'lint_one "$1" "$2" || exit 1' lint || status=$?
if [ "$status" = 0 ]; then say "  clang-tidy: ${#sources[@]} files clean in $((SECONDS - started)) s"
else say "  clang-tidy: findings above ($((SECONDS - started)) s)"; fi
[ "$status" = 0 ]
