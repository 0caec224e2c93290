#include "runtime/ops/attention_qkv.hpp"

#include "runtime/ops/attention_checks.hpp"

namespace pascaline::ops {
namespace {

struct QkvSizes {
  Heads heads;
  Extent keys;
  Extent positions;
};

QkvSizes qkv_sizes_of(const AttentionDecodeQkv& given) {
  return {{{"HEADS", given.out.shape[0]}, {"KV_HEADS", given.k_cache.shape[1]}, {"HEAD_DIM", given.out.shape[1]}},
          {"KEYS", given.k_cache.shape[0]},
          {"POSITIONS", given.cosine.shape[0]}};
}

void check_qkv_caches(const Checks& check, const AttentionDecodeQkv& given, const QkvSizes& of) {
  const TensorView& k = given.k_cache;
  check.dense({"k_cache", &k}, {ElementType::float32, ElementType::float16, ElementType::int8},
              {of.keys, of.heads.kv_heads, of.heads.head_dim});
  check.dense({"v_cache", &given.v_cache}, {k.type}, {of.keys, of.heads.kv_heads, of.heads.head_dim});
  check_scales(check, {"k_scales", &given.k_scales}, k, of.keys, of.heads.kv_heads);
  check_scales(check, {"v_scales", &given.v_scales}, k, of.keys, of.heads.kv_heads);
}

}  // namespace

bool AttentionDecodeQkv::check() const {
  const Checks check(kName);
  const QkvSizes of = qkv_sizes_of(*this);
  check_qkv_caches(check, *this, of);
  check.dense({"qkv", &qkv}, {ElementType::float32, ElementType::float16},
              {{"HEADS+2*KV_HEADS", of.heads.heads.value + 2 * of.heads.kv_heads.value}, of.heads.head_dim});
  check.dense({"length", &length}, {ElementType::int32}, {{"1", 1}});
  check_decoded(check, {"out", &out}, {"scales", &scales}, qkv.type, of.heads);
  if (is_empty(out)) {
    return false;
  }
  check_heads(check, of.heads);
  check.at_least_one(of.keys);
  check_rotation(check, *this, {"1", 1}, of.heads.head_dim, of.positions);
  check.at_least_one(of.positions);
  check_sections(check, section_h, section_w, of.heads.head_dim);
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
