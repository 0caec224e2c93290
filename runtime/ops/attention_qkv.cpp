#include "runtime/ops/attention_qkv.hpp"

#include "runtime/ops/attention_qkv_checks.hpp"

namespace pascaline::ops {
namespace {

QkvSizes qkv_sizes_of(const AttentionDecodeQkv& given) {
  return qkv_sizes(given, given.out.shape[0], given.qkv.shape[1]);
}

}  // namespace

bool AttentionDecodeQkv::check() const {
  const Checks check(kName);
  const QkvSizes of = qkv_sizes_of(*this);
  check_token(check, *this, of);
  check_decoded(check, {"out", &out}, {"scales", &scales}, qkv.type, of.heads);
  return check_token_sizes(check, *this, of, out);
}

KernelProblem AttentionDecodeQkv::problem() const {
  return token_problem("attention_decode_qkv", *this, qkv_sizes_of(*this), is_given(q_weight) ? epsilon : NormEpsilon(),
                       {{"STORAGE", qkv.type}, {"CACHE", k_cache.type}, {"OUTPUT", out.type}});
}

}  // namespace pascaline::ops
