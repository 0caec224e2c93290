#include "runtime/ops/attention_layer.hpp"

#include "runtime/ops/attention_qkv_checks.hpp"
#include "runtime/ops/weight_checks.hpp"

namespace pascaline::ops {
namespace {

QkvSizes layer_sizes_of(const AttentionLayer& given) {
  const std::int64_t kv_heads = given.k_cache.shape[1];
  const std::int64_t head_dim = given.k_cache.shape[2];
  const std::int64_t heads = head_dim > 0 ? given.qkv_weight.shape[0] / head_dim - 2 * kv_heads : 0;
  return qkv_sizes(given, heads, head_dim);
}

}  // namespace

bool AttentionLayer::takes(ElementType qkv, ElementType output) noexcept {
  return is_packed_format(qkv) && is_packed_format(output);
}

bool AttentionLayer::check() const {
  const Checks check(kName);
  const QkvSizes of = layer_sizes_of(*this);
  const Extent hidden{"HIDDEN", x.shape[1]};
  const std::int64_t width = of.heads.heads.value * of.heads.head_dim.value;
  check.require(of.heads.heads.value >= 1, "qkv_weight has no rows besides those of keys and values");
  check_cache(check, *this, of);
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {{"1", 1}, hidden});
  check.dense({"norm", &norm}, {ElementType::float32}, {hidden});
  check_epsilon(check, epsilon);
  check_weight(check, {"qkv_weight", &qkv_weight},
               {"(HEADS+2*KV_HEADS)*HEAD_DIM", width + 2 * of.heads.kv_heads.value * of.heads.head_dim.value}, hidden);
  check_weight(check, {"output_weight", &weight}, hidden, {"HEADS*HEAD_DIM", width});
  check.require(takes(qkv_weight.type, weight.type),
                "qkv_weight and output_weight do not have packed formats both; run its operations one after the other");
  check.dense({"C", &c}, {x.type}, {{"1", 1}, hidden});
  return check_token_sizes(check, *this, of, c);
}

KernelProblem AttentionLayer::problem() const {
  KernelProblem problem =
      token_problem("attention_layer_q", *this, layer_sizes_of(*this), epsilon,
                    {{"STORAGE", x.type}, {"CACHE", k_cache.type}, {"WEIGHT", qkv_weight.type}, {"BACK", weight.type}});
  problem.add({"HIDDEN", x.shape[1]});
  return problem;
}

}  // namespace pascaline::ops
