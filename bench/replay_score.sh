#!/usr/bin/env bash
# Every searcher on every recorded space of a folder: a table, or JSON (searcher, evaluations, geometric mean over the
# spaces of the median of best found / optimum; the same for each of `spaces`; quartiles and scores under `details`).
#   bench/replay_score.sh FOLDER [--repeats N] [--json]
# Everything else is passed on to `pascaline replay`, e.g. --searcher auto,random, --no-score, --jobs 8. Builds the
# release preset if nothing is built.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

case ${1:-} in
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  "" | -*) die "give a folder of recorded spaces first: bench/replay_score.sh FOLDER [--repeats N] [--json]" ;;
esac
folder=$(realpath -e -- "$1" 2>/dev/null) || die "there is no folder '$1'"
shift
program=
for preset in release dev; do
  [ -z "$program" ] && [ -x "$project_root/build/$preset/bin/pascaline" ] && program=$project_root/build/$preset/bin/pascaline
done
if [ -z "$program" ]; then
  cd "$project_root"
  build_preset release pascaline >&2 || exit 1
  program=$project_root/build/release/bin/pascaline
fi
exec "$program" replay "$folder" --searcher all "$@"
