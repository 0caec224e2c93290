#!/usr/bin/env bash
# From a bare machine to a tuned matmul: sets up, builds, tunes the matmuls of Qwen3-VL-2B for a short while on the
# first GPU (on the emulated device where there is none) and shows what was found. Can be run again; it resumes.
#   scripts/quickstart.sh [--device cuda:N|emulator]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

device=
case ${1:-} in
  "") ;;
  --device) device=${2:?--device needs a name, e.g. cuda:0 or emulator} ;;
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) die "unknown argument '$1' (known: --device NAME)" ;;
esac

cd "$project_root"
started=$SECONDS
program=build/release/bin/pascaline
results=build/quickstart

say "[1/4] Set-up"
scripts/setup.sh --program
source scripts/common.sh # what set-up just brought goes on PATH

say "[2/4] Build"
configure_options=(-DPASCALINE_BUILD_TESTS=OFF -DPASCALINE_BUILD_BENCH=OFF)
build_preset release pascaline || exit 1

say "[3/4] Tune"
mkdir -p "$results"
"$program" devices
if [ -z "$device" ]; then
  case $("$program" devices --json) in
    *'"cuda:0"'*) device=cuda:0 ;;
    *) device=emulator ;;
  esac
fi
say "  tuning on $device"

# ---- the commands that quickstart is about -------------------------------------------------------------------------
# On a GPU: the matmuls of a prompt of 512 tokens. On the emulated device, which runs every CUDA thread on the
# processor: three matmuls of a decoding step, a few trials each.
database=$results/tuned.db
if [ "$device" = emulator ] || [ "$device" = host ]; then
  tune=("$program" sweep --device "$device" --problem M=1,N=1024,K=2048 --problem M=1,N=2048,K=2048
    --problem M=1,N=2048,K=6144 --trials 12 --sample-budget-ms 300 --rounds 5 --db "$database")
  explain=("$program" explain --device "$device" --db "$database" --problem M=1,N=2048,K=2048
    --problem M=1,N=6144,K=2048 --problem M=5,N=1000,K=2000,STORAGE=float16)
else
  tune=("$program" sweep --device "$device" --workload search_spaces/workloads/qwen3-vl-2b-float32.json --kernel matmul
    --phase prompt --trials 40 --db "$database")
  explain=("$program" explain --device "$device" --db "$database" --problem M=512,N=2048,K=2048
    --problem M=600,N=6144,K=2048 --problem M=5,N=1000,K=2000,STORAGE=float16)
fi
report=("$program" report --db "$database" --output "$results/report.md")
# --------------------------------------------------------------------------------------------------------------------

say "  \$ ${tune[*]}"
"${tune[@]}" || die "the sweep failed (status $?); what it measured is in $database, and running this again goes on from there"

say "[4/4] What would be launched"
say "  \$ ${explain[*]}"
"${explain[@]}"
"${report[@]}"

say ""
say "Done in $((SECONDS - started)) s."
say "  database: $project_root/$results/tuned.db"
say "  report:   $project_root/$results/report.md"
say "For a whole night: $program sweep --model FOLDER --until 07:00   (it can be stopped; --resume goes on)"
