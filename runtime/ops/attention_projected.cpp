#include "runtime/ops/attention_projected.hpp"

#include "runtime/ops/attention_qkv_checks.hpp"
#include "runtime/ops/weight_checks.hpp"

namespace pascaline::ops {
namespace {

QkvSizes projected_sizes_of(const AttentionProjected& given) {
  return qkv_sizes(given, given.qkv.shape[0] - 2 * given.k_cache.shape[1]);
}

}  // namespace

bool AttentionProjected::check() const {
  const Checks check(kName);
  const QkvSizes of = projected_sizes_of(*this);
  const Extent hidden{"HIDDEN", x.shape[1]};
  check.require(of.heads.heads.value >= 1, "qkv has no heads besides those of keys and values");
  check_token(check, *this, of);
  check.dense({"x", &x}, {qkv.type}, {{"1", 1}, hidden});
  check_weight(check, {"weight", &weight}, hidden, {"HEADS*HEAD_DIM", of.heads.heads.value * of.heads.head_dim.value});
  check.dense({"C", &c}, {x.type}, {{"1", 1}, hidden});
  if (is_empty(c)) {
    return false;
  }
  check_token_sizes(check, *this, of);
  return true;
}

KernelProblem AttentionProjected::problem() const {
  const QkvSizes of = projected_sizes_of(*this);
  return {"attention_projected",
          {{"HEADS", of.heads.heads.value},
           {"KV_HEADS", of.heads.kv_heads.value},
           {"HEAD_DIM", of.heads.head_dim.value},
           {"KEYS", of.keys.value},
           {"POSITIONS", of.positions.value},
           {"SECTION_H", section_h},
           {"SECTION_W", section_w},
           {"NORM", is_given(q_weight) ? 1 : 0},
           {"EPSILON", is_given(q_weight) ? epsilon.nano : NormEpsilon().nano},
           {"HIDDEN", x.shape[1]}},
          {{"STORAGE", qkv.type}, {"CACHE", k_cache.type}, {"WEIGHT", weight.type}}};
}

}  // namespace pascaline::ops
