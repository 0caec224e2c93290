#!/usr/bin/env bash
# Builds the fuzzers with Clang, AddressSanitizer and UndefinedBehaviorSanitizer in build/fuzz, and runs them side by side.
#   scripts/fuzz.sh [--seconds N | --runs N] [--jobs N] [NAME...]
# NAME: bundle, gguf, image, safetensors, sm61, space, tokenizer (default: all). --seconds: for each (default 60); --runs:
# inputs for each instead. --jobs: how many at once (default: one for each processor). Corpora stay in
# build/fuzz/fuzz/corpus, inputs that fail lie in build/fuzz/fuzz/findings: give one to its fuzzer to see it again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

jobs=$(nproc) names=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) export PASCALINE_FUZZ_SECONDS=$2; shift ;;
    --runs) export PASCALINE_FUZZ_RUNS=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) die "unknown argument '$1' (known: --seconds, --runs, --jobs)" ;;
    *) names+=("$1") ;;
  esac
  shift
done
cd "$project_root"

only=() targets=(--target fuzzers)
if [ ${#names[@]} -gt 0 ]; then
  only=(-R "^fuzz\.($(IFS='|'; echo "${names[*]}"))$")
  targets=(--target write_fuzz_seeds "${names[@]/%/_fuzzer}")
fi
say "Build (fuzz)"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz "${targets[@]}"
say "Fuzzers"
rm -rf build/fuzz/fuzz/logs
ctest --test-dir build/fuzz -L fuzz "${only[@]}" --output-on-failure --no-tests=error --parallel "$jobs"
for log in build/fuzz/fuzz/logs/*.log; do
  [ -e "$log" ] || continue
  printf '%-12s %s\n' "$(basename "$log" .log)" "$(sed -n 's/^stat::number_of_executed_units: */inputs /p; s/^stat::average_exec_per_sec: */a second /p' "$log" | paste -sd' ')"
done
