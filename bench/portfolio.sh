#!/usr/bin/env bash
# The portfolios of search spaces, on this machine's GPU: made from measurements, and judged.
#   bench/portfolio.sh PROGRAMS OUT [--make] [--judge] [--unseen] [--kernel K]... [--types LIST] [--trials N] [--pool N]
#                      [--size N] [--keep N] [--target ARCH] [--device ID] [--portfolio FILE]
# PROGRAMS is a build's bin folder with pascaline; OUT gets databases, logs and results.
# --make: sweeps all shapes that the runtime launches for Qwen3-VL-2B without a portfolio, measures the N (--pool,
#   default 2) fastest configurations of each shape on all other shapes of its kernel, and chooses: OUT/portfolio.json
#   (in the form of the search spaces) and OUT/portfolio.txt. --keep N: the first N of the search spaces' own stay in it.
# --judge: sweeps the same shapes anew with --portfolio FILE (default: OUT/portfolio.json if there is one, else the
#   search spaces' own) and tells, a kernel, how far the best of the first eight trials is from the best of all.
# --unseen: the same of the shapes of bench/portfolio_shapes.json, which no portfolio is made from.
# Without these three all are done. --kernel: only these kernels. All types have 183 shapes (43 of matmul_q, 38 of
# matmul); at 40 ms a trial a hundred trials of each take 12 minutes, so take parts. --types: the types of weights whose shapes are taken (default
# float16,float32,int8,q8_0,q4_k). --trials: of each shape (default: 60 to make, 100 to judge).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

[ $# -ge 2 ] || { sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
programs=$(realpath -e -- "$1") out=$2
shift 2
parts=() kernels=() types=float16,float32,int8,q8_0,q4_k trials="" pool=2 size=7 keep=0 target=() device=() portfolio=""
while [ $# -gt 0 ]; do
  case $1 in
    --make | --judge | --unseen) parts+=("$1") ;;
    --kernel) kernels+=(--kernel "$2"); shift ;;
    --types) types=$2; shift ;;
    --trials) trials=$2; shift ;;
    --pool) pool=$2; shift ;;
    --size) size=$2; shift ;;
    --keep) keep=$2; shift ;;
    --target) target=(--target "$2"); shift ;;
    --device) device=(--device "$2"); shift ;;
    --portfolio) portfolio=$2; shift ;;
    *) die "unknown argument '$1'" ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || parts=(--make --judge --unseen)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }
mkdir -p "$out/model"
cp "$project_root/tests/model/checkpoint/data/qwen3_vl_2b.json" "$out/model/config.json"
# Finals decide nothing here; what matters is that every trial is measured alike.
measuring=(--preheat 0 --sample-budget-ms 15 --finalists 1 --rounds 2)

# runtime_workload: writes OUT/runtime.json, the shapes for all types of weights.
runtime_workload() {
  local files=() type cache
  for type in ${types//,/ }; do
    cache=float16
    [ "$type" = float32 ] && cache=float32
    "$programs/pascaline" workload --model "$out/model" --untuned --weights "$type" --kv-cache "$cache" --chunk 1024 \
      --prompt-tokens 128 512 1024 --image-size 1024 1024 "${target[@]}" "${device[@]}" -o "$out/$type.json" \
      >"$out/workload_$type.log" 2>&1 || die "no workload for $type: $out/workload_$type.log"
    files+=("$out/$type.json")
  done
  python3 "$project_root/bench/merge_workloads.py" "$out/runtime.json" "${files[@]}"
}

# sweep NAME DATABASE WORKLOAD [OPTIONS]: with a log and the time it took.
sweep() {
  local name=$1 database=$2 workload=$3 begun=$SECONDS
  shift 3
  "$programs/pascaline" sweep --workload "$workload" "${kernels[@]}" "${target[@]}" "${device[@]}" --db "$database" \
    "${measuring[@]}" "$@" >"$out/$name.log" 2>&1 || die "the sweep failed: $out/$name.log"
  echo "$name: $((SECONDS - begun)) s"
}

# judge NAME WORKLOAD: sweeps beginning with the portfolio, and what its first eight trials came to.
judge() {
  local begin=()
  [ -z "$portfolio" ] && [ -f "$out/portfolio.json" ] && portfolio=$out/portfolio.json
  [ -n "$portfolio" ] && begin=(--portfolio "$portfolio")
  rm -f "$out/$1.db"*
  sweep "$1" "$out/$1.db" "$2" --trials "${trials:-100}" "${begin[@]}"
  "$programs/pascaline" portfolio --db "$out/$1.db" --first 8 | tee "$out/$1.txt"
}

if wants --make || wants --judge; then
  runtime_workload
fi
if wants --make; then
  say "Making"
  begin=(--portfolio none)
  [ "$keep" = 0 ] || begin=()
  sweep search "$out/make.db" "$out/runtime.json" --trials "${trials:-60}" "${begin[@]}"
  "$programs/pascaline" portfolio --db "$out/make.db" --pool "$pool" >"$out/pool.json"
  sweep pool "$out/make.db" "$out/runtime.json" --searcher none --portfolio "$out/pool.json"
  "$programs/pascaline" portfolio --db "$out/make.db" --size "$size" --keep "$keep" | tee "$out/portfolio.txt"
  "$programs/pascaline" portfolio --db "$out/make.db" --size "$size" --keep "$keep" --json >"$out/portfolio.json"
fi
if wants --judge; then
  say "Judging: shapes of the runtime"
  judge judge "$out/runtime.json"
fi
if wants --unseen; then
  say "Judging: shapes it was not made from"
  judge unseen "$project_root/bench/portfolio_shapes.json"
fi
