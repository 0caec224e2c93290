#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/ops/attention_checks.hpp"
#include "runtime/ops/kernel_problem.hpp"
#include "runtime/ops/token_heads.hpp"

// Of the operations that take a token from the projection of its queries, keys and values to attention.
namespace pascaline::ops {

struct QkvSizes {
  Heads heads;
  Extent keys;
  Extent positions;
};

[[nodiscard]] inline QkvSizes qkv_sizes(const TokenHeads& given, std::int64_t heads, std::int64_t head_dim) {
  return {{{"HEADS", heads}, {"KV_HEADS", given.k_cache.shape[1]}, {"HEAD_DIM", head_dim}},
          {"KEYS", given.k_cache.shape[0]},
          {"POSITIONS", given.cosine.shape[0]}};
}

/// Types and extents of the cache and its length.
template <typename Op>
void check_cache(const Checks& check, const Op& given, const QkvSizes& of) {
  check_token_cache(check, given, of.keys, of.heads.kv_heads, of.heads.head_dim);
  check.dense({"length", &given.length}, {ElementType::int32}, {{"1", 1}});
}

/// The same, and of the token.
template <typename Op>
void check_token(const Checks& check, const Op& given, const QkvSizes& of) {
  check_cache(check, given, of);
  check.dense({"qkv", &given.qkv}, {ElementType::float32, ElementType::float16},
              {{"HEADS+2*KV_HEADS", of.heads.heads.value + 2 * of.heads.kv_heads.value}, of.heads.head_dim});
}

/// Checks what attention needs of sizes, and what heads are normalised and turned with; false if the result is empty.
[[nodiscard]] inline bool check_token_sizes(const Checks& check, const TokenHeads& given, const QkvSizes& of,
                                            const TensorView& result) {
  if (is_empty(result)) {
    return false;
  }
  check_heads(check, of.heads);
  check.at_least_one(of.keys);
  check_rotation(check, given, {"1", 1}, of.heads.head_dim, of.positions);
  check.at_least_one(of.positions);
  check_sections(check, given, of.heads.head_dim);
  return true;
}

/// The problem of such an operation, without the dimensions that only some have.
template <std::size_t kTypes>
[[nodiscard]] KernelProblem token_problem(KernelName kernel, const TokenHeads& given, const QkvSizes& of,
                                          NormEpsilon epsilon, const NamedType (&types)[kTypes]) {
  return {kernel,
          {{"HEADS", of.heads.heads.value},
           {"KV_HEADS", of.heads.kv_heads.value},
           {"HEAD_DIM", of.heads.head_dim.value},
           {"KEYS", of.keys.value},
           {"POSITIONS", of.positions.value},
           {"SECTION_H", given.section_h},
           {"SECTION_W", given.section_w},
           {"NORM", is_given(given.q_weight) ? 1 : 0},
           {"EPSILON", epsilon.nano}},
          types};
}

}  // namespace pascaline::ops
