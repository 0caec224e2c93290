#!/usr/bin/env bash
# Runs one fuzzer with its corpus, which it adds to; what it finds lies in WORK/findings.
#   fuzz/run_fuzzer.sh FUZZER WORK [SEEDS...]
# For $PASCALINE_FUZZ_SECONDS (60), or $PASCALINE_FUZZ_RUNS inputs if that is set; with the priority $PASCALINE_FUZZ_NICE.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
fuzzer=$1 work=$2
shift 2
name=$(basename "$fuzzer" _fuzzer)
mkdir -p "$work/corpus/$name" "$work/findings" "$work/logs"
# An input that takes so many seconds is a finding; with a low priority most of them may be waiting.
timeout=30
[ "${PASCALINE_FUZZ_NICE:-0}" = 0 ] || timeout=300
options=(-max_len=65536 -timeout="$timeout" -print_final_stats=1 -print_funcs=0 -artifact_prefix="$work/findings/$name-")
if [ -n "${PASCALINE_FUZZ_RUNS:-}" ]; then
  options+=(-runs="$PASCALINE_FUZZ_RUNS")
else
  options+=(-max_total_time="${PASCALINE_FUZZ_SECONDS:-60}")
fi
dictionary=$(dirname "${BASH_SOURCE[0]}")/$name.dict
[ -e "$dictionary" ] && options+=(-dict="$dictionary")
# Short traces of allocations make it several times as fast; a finding can be run again with longer ones.
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=2:quarantine_size_mb=32}
log=$work/logs/$name.log
status=0
nice -n "${PASCALINE_FUZZ_NICE:-0}" "$fuzzer" "${options[@]}" "$work/corpus/$name" "$@" >"$log" 2>&1 || status=$?
if [ "$status" != 0 ]; then tail -n 60 "$log"; else tail -n 12 "$log"; fi
exit "$status"
