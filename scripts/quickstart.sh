#!/usr/bin/env bash
# From a bare machine to a tuned matmul: sets up, builds, tunes the matmuls of Qwen3-VL-2B for a short while on the
# first GPU (on the host device where there is none) and shows what was found. Can be run again; it resumes.
#   scripts/quickstart.sh [--device cuda:N|host]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

device=
case ${1:-} in
  "") ;;
  --device) device=${2:?--device needs a name, e.g. cuda:0 or host} ;;
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) die "unknown argument '$1' (known: --device NAME)" ;;
esac

cd "$project_root"
started=$SECONDS
program=build/release/bin/pascaline
results=build/quickstart

say "[1/4] Set-up"
scripts/setup.sh
source scripts/common.sh # what set-up just brought goes on PATH

say "[2/4] Build"
build_preset release pascaline || exit 1

say "[3/4] Tune"
mkdir -p "$results"
"$program" devices
if [ -z "$device" ]; then
  case $("$program" devices --json) in
    *'"cuda:0"'*) device=cuda:0 ;;
    *) device=host ;;
  esac
fi
say "  tuning on $device"

# ---- the commands that quickstart is about -------------------------------------------------------------------------
tune=("$program" sweep --workload search_spaces/workloads/qwen3-vl-2b.json --kernel matmul --quick
  --device "$device" --db "$results/tuned.db" --report "$results/report.md")
explain=("$program" explain --db "$results/tuned.db" --device "$device" matmul)
shapes=("M=512 N=2048 K=2048" "M=1 N=6144 K=2048" "M=300 N=2048 K=2048")
# --------------------------------------------------------------------------------------------------------------------

say "  \$ ${tune[*]}"
"${tune[@]}" || die "the sweep failed (status $?); what it measured is in $results/tuned.db, and running this again resumes it"

say "[4/4] What would be launched"
for shape in "${shapes[@]}"; do
  say "  \$ ${explain[*]} $shape"
  # shellcheck disable=SC2086
  "${explain[@]}" $shape
done

say ""
say "Done in $((SECONDS - started)) s."
say "  database: $project_root/$results/tuned.db"
say "  report:   $project_root/$results/report.md"
say "Overnight: leave out --quick; see '$program sweep --help'."
