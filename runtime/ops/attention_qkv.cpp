#include "runtime/ops/attention_qkv.hpp"

#include "runtime/ops/attention_qkv_checks.hpp"

namespace pascaline::ops {
namespace {

QkvSizes qkv_sizes_of(const AttentionDecodeQkv& given) { return qkv_sizes(given, given.out.shape[0]); }

}  // namespace

bool AttentionDecodeQkv::check() const {
  const Checks check(kName);
  const QkvSizes of = qkv_sizes_of(*this);
  check_token(check, *this, of);
  check_decoded(check, {"out", &out}, {"scales", &scales}, qkv.type, of.heads);
  if (is_empty(out)) {
    return false;
  }
  check_token_sizes(check, *this, of);
  return true;
}

KernelProblem AttentionDecodeQkv::problem() const {
  const QkvSizes of = qkv_sizes_of(*this);
  return {"attention_decode_qkv",
          {{"HEADS", of.heads.heads.value},
           {"KV_HEADS", of.heads.kv_heads.value},
           {"HEAD_DIM", of.heads.head_dim.value},
           {"KEYS", of.keys.value},
           {"POSITIONS", of.positions.value},
           {"SECTION_H", section_h},
           {"SECTION_W", section_w},
           {"NORM", is_given(q_weight) ? 1 : 0},
           {"EPSILON", is_given(q_weight) ? epsilon.nano : NormEpsilon().nano}},
          {{"STORAGE", qkv.type}, {"CACHE", k_cache.type}, {"OUTPUT", out.type}}};
}

}  // namespace pascaline::ops
