#!/usr/bin/env bash
# The figures of quantized weights that docs/measurements.md has, on this machine's GPU: bytes a second of each layer's
# weights, times of a prompt and a token for each type of weights, tuned, and what memory is taken under a limit.
# Weights are random; of the model only its configuration is used.
#   bench/quantized.sh PROGRAMS OUT [--budget TIME] [--target ARCH] [--types LIST] [--layers] [--models] [--memory]
# PROGRAMS is a build's bin folder with pascaline, stream_weights and compare_placement; OUT gets databases and logs.
# --budget: time to tune the shapes of each type of weights (default 60s; 0: not tuned). --types: the types of weights of
# whole models (default float16,float32,int8,q8_0,q4_k). Without --layers, --models and --memory all three are done.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

[ $# -ge 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
programs=$(realpath -e -- "$1") out=$2
shift 2
budget=60s target=sm_61 types=float16,float32,int8,q8_0,q4_k parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --budget) budget=$2; shift ;;
    --target) target=$2; shift ;;
    --types) types=$2; shift ;;
    --layers | --models | --memory) parts+=("$1") ;;
    *) die "unknown argument '$1'" ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || parts=(--layers --models --memory)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }
mkdir -p "$out/model"
cp "$project_root/tests/runtime/checkpoint/data/qwen3_vl_2b.json" "$out/model/config.json"
sizes=(--random-weights --context 2560)

# tune TYPE: a database of the shapes that a model with these weights launches.
tune() {
  [ "$budget" = 0 ] && return
  "$programs/pascaline" sweep --model "$out/model" --weights "$1" --target "$target" --prompt-tokens 512 \
    --phase prompt token --context 2560 --budget "$budget" --preheat 0 --sample-budget-ms 30 --finalists 3 --rounds 10 \
    --db "$out/$1.db" >"$out/sweep_$1.log" 2>&1 || die "tuning for $1 failed: $out/sweep_$1.log"
}

# with_database TYPE: the options that choose its kernels.
with_database() {
  if [ -f "$out/$1.db" ]; then echo --db "$out/$1.db"; else echo --untuned; fi
}

if wants --models; then
  for type in ${types//,/ }; do
    tune "$type"
    say "Model, weights $type"
    # shellcheck disable=SC2046
    "$programs/pascaline" bench-model --model "$out/model" "${sizes[@]}" --weights "$type" --target "$target" \
      --prompt-tokens 512 --no-image --repeats 8 $(with_database "$type")
  done
fi
if wants --layers; then
  say "Bytes a second of each layer's weights, one token"
  for layer in qkv output gate_up down head; do
    for type in float16 q8_0 q6_k q4_k; do
      database=()
      [ -f "$out/$type.db" ] && database=(--db "$out/$type.db")
      rounded=()
      [ "$type" = float16 ] || rounded=(--rounded)
      echo "$layer $type: $("$programs/stream_weights" --target "$target" --weight "$type" --only "$layer" --graph \
        "${rounded[@]}" "${database[@]}" | tail -n 1)"
    done
  done
fi
if wants --memory; then
  # Limit, --offload, --vision: under 1000M the vision tower's weights do not fit, and are streamed by themselves.
  for options in "1900M auto auto" "1000M auto auto" "1000M stream auto" "1000M stream cpu"; do
    read -r limit offload vision <<<"$options"
    say "q4_k under a limit of $limit, --offload $offload, --vision $vision, 2048 tokens, one image of 512 x 512"
    "$programs/compare_placement" --model "$out/model" --weights q4_k --memory-limit "$limit" --offload "$offload" \
      --vision "$vision" \
      --context 2048 --image 512 --target "$target" --tokens 64 || echo "tokens differ"
  done
fi
