#!/usr/bin/env bash
# From a bare machine to a tuned model: sets up, builds the program, tunes what a tiny Qwen3-VL (examples/tiny_qwen3_vl,
# random weights) launches for a short while on the first GPU, or on the emulated device where there is none, has the
# model answer a question about an image with the tuned kernels, and writes the report. Can be run again: what is known
# is not measured again.
#   scripts/quickstart.sh [--device cuda:N|emulator]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

device=
case ${1:-} in
  "") ;;
  --device) device=${2:?--device needs a name, e.g. cuda:0 or emulator} ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) die "unknown argument '$1' (known: --device NAME)" ;;
esac

cd "$project_root"
started=$SECONDS
program=build/release/bin/pascaline
results=build/quickstart

say "[1/5] Set-up"
scripts/setup.sh --program
source scripts/common.sh # what set-up just brought goes on PATH

say "[2/5] Build"
configure_options=(-DPASCALINE_BUILD_TESTS=OFF -DPASCALINE_BUILD_BENCH=OFF)
build_preset release pascaline || exit 1

say "[3/5] Tune"
mkdir -p "$results"
"$program" devices
if [ -z "$device" ]; then
  case $("$program" devices --json) in
    *'"cuda:0"'*) device=cuda:0 ;;
    *) device=emulator ;;
  esac
fi
say "  tuning on $device"

# Runs a command of the program and shows it as it can be typed.
pascaline() {
  local word shown=
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_.,/=:-]+$ ]]; then shown+=" $word"; else shown+=" ${word@Q}"; fi
  done
  say "  \$ pascaline$shown"
  "$program" "$@"
}

# ---- the commands that quickstart is about -------------------------------------------------------------------------
model=examples/tiny_qwen3_vl
database=$results/tuned.db
sizes=(--prompt-tokens 32 --image-size 64 96)
# Each shape gets its default and a few trials, then the time goes where it promises most. Times of the emulated device are
# rough however long it is looked at: little time for each trial leaves time for more of them.
pascaline sweep --model "$model" --device "$device" "${sizes[@]}" --budget 60s --sample-budget-ms 100 --db "$database" \
  --log "$results/sweep.log" ||
  die "the sweep failed (status $?); what it measured is in $database, and running this again continues from there"

say "[4/5] Use it"
say "  (the weights are random, so the answer is noise; it shows that image, prompt and tuned kernels work together)"
pascaline generate --model "$model" --device "$device" --db "$database" --image "$model/image.png" \
  --prompt "What is in the image?" --max-tokens 24 --seed 1

say "[5/5] Report"
pascaline report --db "$database" --format html --output "$results/report.html"
# --------------------------------------------------------------------------------------------------------------------

say ""
say "Done in $((SECONDS - started)) s."
# The last words of the sweep: how much faster the model is, for sure, and what was left as it was.
for wanted in "whole model: " "[0-9]* of [0-9]* shapes, .* left at "; do
  sed -n "s/^.\{21\}\($wanted.*\)/  \1/p" "$results/sweep.log" | tail -n 1
done
say "  database: $project_root/$database"
say "  report:   $project_root/$results/report.html (open it in a browser)"
say "Next, with the program on the PATH:"
say "  export PATH=\"$project_root/build/release/bin:\$PATH\""
say "  pascaline kernels                                   # what can be tuned"
say "  pascaline explain --db $project_root/$database --device $device --kernel matmul --problem M=32,N=256,K=64,EPILOGUE=5,WEIGHT=float16"
say "  pascaline sweep --model FOLDER --until 07:00        # a night for a model of your own; --resume continues"
