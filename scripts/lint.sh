#!/usr/bin/env bash
# Runs clang-tidy (checks in .clang-tidy) over the C++ sources that the dev preset compiles, tests left out.
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
tool=$(command -v clang-tidy-14 || command -v clang-tidy) || die "clang-tidy is missing: run scripts/setup.sh --dev"
database=build/dev/compile_commands.json
[ -e "$database" ] || die "there is no $database: run cmake --preset dev"

mapfile -t sources < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$database" | sort -u |
  grep -F "$project_root/" | grep -v -e "^$project_root/build/" -e "^$project_root/tests/")
if [ -n "$since" ]; then
  mapfile -t changed < <({ git diff --name-only --diff-filter=d "$since" -- '*.cpp' '*.hpp'
    git ls-files --others --exclude-standard -- '*.cpp' '*.hpp'; } | sed 's/\.[ch]pp$/.cpp/')
  mapfile -t sources < <(printf '%s\n' "${sources[@]}" | grep -Fx -f <(printf "$project_root/%s\n" "${changed[@]:-none}"))
fi

# lint_one SOURCE: a line a file as it is finished, so that progress is seen; findings follow their file.
lint_one() {
  local output status=0
  # The analyzer's search is cut at a fifth of its default, which halves the time.
  output=$("$tool" --quiet --checks="$checks" -p build/dev --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang \
    --extra-arg=max-nodes=50000 "$1" 2>/dev/null) || status=$?
  printf '  clang-tidy %s%s\n' "${1#"$project_root/"}" "$([ $status = 0 ] || echo ': FAILED')"
  [ -n "$output" ] && printf '%s\n' "$output"
  return "$status"
}
export -f lint_one
export tool project_root checks

if [ ${#sources[@]} = 0 ]; then
  say "  clang-tidy: no sources to check"
  exit 0
fi
started=$SECONDS
status=0
printf '%s\0' "${sources[@]}" | xargs -0 -r -n 1 -P "$(nproc)" bash -c 'lint_one "$1" || exit 1' lint || status=$?
if [ "$status" = 0 ]; then say "  clang-tidy: ${#sources[@]} files clean in $((SECONDS - started)) s"
else say "  clang-tidy: findings above ($((SECONDS - started)) s)"; fi
[ "$status" = 0 ]
