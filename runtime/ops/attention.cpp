#include "runtime/ops/attention.hpp"

#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/attention_checks.hpp"

namespace pascaline::ops {
namespace {

Heads heads_of(const AttentionPrefill& given) {
  return {{"HEADS", given.q.shape[1]}, {"KV_HEADS", given.k.shape[1]}, {"HEAD_DIM", given.q.shape[2]}};
}

Heads heads_of(const AttentionDecode& given) {
  return {{"HEADS", given.q.shape[0]}, {"KV_HEADS", given.k.shape[1]}, {"HEAD_DIM", given.q.shape[1]}};
}

// Of either operation.
template <typename Attention>
void check_cache(const Checks& check, const Attention& given, const Heads& of) {
  const TensorView& k = given.k;
  const Extent keys{"KEYS", k.shape[0]};
  check.strided({"k", &k}, {ElementType::float32, ElementType::float16, ElementType::int8},
                {keys, of.kv_heads, of.head_dim});
  check.strided({"v", &given.v}, {k.type}, {keys, of.kv_heads, of.head_dim});
  check.require(is_empty(k) || row_stride(k) == row_stride(given.v), "rows of k and v must be equally far apart");
  check_scales(check, {"k_scales", &given.k_scales}, k, keys, of.kv_heads);
  check_scales(check, {"v_scales", &given.v_scales}, k, keys, of.kv_heads);
}

void check_segments(const Checks& check, const AttentionPrefill& given) {
  const TensorView& starts = given.segment_starts;
  if (!is_given(starts)) {
    return;
  }
  check.dense({"segment_starts", &starts}, {ElementType::int32}, {{"SEGMENTS+1", starts.shape[0]}});
  check.require(starts.shape[0] >= 2, "segment_starts must have at least 2 elements: 0 and QUERIES");
  check.require(!given.causal, "segment_starts are given with causal; segments see themselves, whole");
  check.require(given.k.shape[0] == given.q.shape[0], "segments need as many keys as queries");
}

}  // namespace

void check_heads(const Checks& check, const Heads& of) {
  check.at_least_one(of.heads);
  check.at_least_one(of.kv_heads);
  check.require(of.heads.value % of.kv_heads.value == 0,
                "HEADS is not a multiple of KV_HEADS; every head of keys serves as many heads of queries");
  const std::int64_t head_dim = of.head_dim.value;
  check.require(head_dim >= 1 && head_dim <= kMaxHeadDim && head_dim % kHeadDimStep == 0,
                "HEAD_DIM must be a multiple of 8 from 8 to 256");
}

void check_decoded(const Checks& check, Operand out, Operand scales, ElementType type, const Heads& of) {
  check.dense(out, {type, ElementType::int8}, {of.heads, of.head_dim});
  if (out.tensor->type == ElementType::int8) {
    check.require(of.head_dim.value % kActivationBlock == 0, "out is int8, and HEAD_DIM no multiple of 32");
    check.dense(scales, {ElementType::float32},
                {{"blocks", of.heads.value * of.head_dim.value / kActivationBlock}, {"1", 1}});
  } else {
    check.absent(scales, "out is not int8");
  }
}

bool AttentionPrefill::check() const {
  const Checks check(kName);
  const Extent queries{"QUERIES", q.shape[0]};
  const Heads of = heads_of(*this);
  check.strided({"q", &q}, {ElementType::float32, ElementType::float16}, {queries, of.heads, of.head_dim});
  check_cache(check, *this, of);
  check.dense({"out", &out}, {q.type}, {queries, of.heads, of.head_dim});
  check_segments(check, *this);
  if (is_empty(out)) {
    return false;
  }
  check_heads(check, of);
  check.require(k.shape[0] > 0, "k and v have no rows, so there is nothing to attend to; fill `out` instead");
  return true;
}

KernelProblem AttentionPrefill::problem() const {
  return {"attention_prefill",
          {{"HEADS", q.shape[1]},
           {"KV_HEADS", k.shape[1]},
           {"HEAD_DIM", q.shape[2]},
           {"QUERIES", q.shape[0]},
           {"KEYS", k.shape[0]},
           {"CAUSAL", causal ? 1 : 0},
           {"SEGMENTS", segments()},
           {"Q_STRIDE", row_stride(q)},
           {"KV_STRIDE", row_stride(k)}},
          {{"STORAGE", q.type}, {"CACHE", k.type}}};
}

bool AttentionDecode::check() const {
  const Checks check(kName);
  const Heads of = heads_of(*this);
  check.dense({"q", &q}, {ElementType::float32, ElementType::float16}, {of.heads, of.head_dim});
  check_cache(check, *this, of);
  check.dense({"length", &length}, {ElementType::int32}, {{"1", 1}});
  check_decoded(check, {"out", &out}, {"scales", &scales}, q.type, of);
  if (is_empty(out)) {
    return false;
  }
  check_heads(check, of);
  check.at_least_one({"KEYS", k.shape[0]});
  return true;
}

KernelProblem AttentionDecode::problem() const {
  return {"attention_decode",
          {{"HEADS", q.shape[0]},
           {"KV_HEADS", k.shape[1]},
           {"HEAD_DIM", q.shape[1]},
           {"KEYS", k.shape[0]},
           {"KV_STRIDE", row_stride(k)}},
          {{"STORAGE", q.type}, {"CACHE", k.type}, {"OUTPUT", out.type}}};
}

}  // namespace pascaline::ops
