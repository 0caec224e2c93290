#include "runtime/ops/attention_projected.hpp"

#include "runtime/ops/attention_qkv_checks.hpp"
#include "runtime/ops/weight_checks.hpp"

namespace pascaline::ops {
namespace {

QkvSizes projected_sizes_of(const AttentionProjected& given) {
  return qkv_sizes(given, given.qkv.shape[0] - 2 * given.k_cache.shape[1], given.qkv.shape[1]);
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
  return check_token_sizes(check, *this, of, c);
}

KernelProblem AttentionProjected::problem() const {
  KernelProblem problem =
      token_problem(kName, *this, projected_sizes_of(*this), is_given(q_weight) ? epsilon : NormEpsilon(),
                    {{"STORAGE", qkv.type}, {"CACHE", k_cache.type}, {"WEIGHT", weight.type}});
  problem.add({"HIDDEN", x.shape[1]});
  return problem;
}

}  // namespace pascaline::ops
