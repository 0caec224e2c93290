#!/usr/bin/env bash
# Formats the project's C++, CUDA and JavaScript sources with clang-format; with --check only says which files are not formatted.
#   scripts/format.sh [--check]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$project_root"

# Releases of clang-format differ in what they make of the same style: 14 is the one that counts.
tool=$(command -v clang-format-14 || command -v clang-format) || die "clang-format is missing: run scripts/setup.sh --dev"
case $("$tool" --version) in
  *"version 14."*) ;;
  *) warn "$("$tool" --version) is not the release 14 that the project is formatted with" ;;
esac
# Not the kernels of the T1 fixtures, which are compared byte by byte.
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.hpp' '*.cpp' '*.cu' '*.cuh' '*.h' '*.js' \
  ':!tests/python/t1' |
  while read -r file; do if [ -e "$file" ]; then echo "$file"; fi; done)

case ${1:-} in
  "") printf '%s\0' "${files[@]}" | xargs -0 -r -n 16 -P "$(nproc)" "$tool" -i ;;
  --check)
    status=0
    # It names the file in every line of what it finds, and prints nothing else.
    wrong=$(printf '%s\0' "${files[@]}" | xargs -0 -r -n 32 -P "$(nproc)" "$tool" --dry-run --Werror 2>&1 |
      sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: .*/    \1/p' | sort -u) || status=$?
    if [ -n "$wrong" ]; then
      printf '  format: not as .clang-format says; scripts/format.sh fixes it:\n%s\n' "$wrong"
      exit 1
    fi
    [ "$status" = 0 ] || die "$tool ended with status $status"
    say "  format: ${#files[@]} files fine"
    ;;
  *) die "unknown argument '$1' (known: --check)" ;;
esac
