#pragma once

#include <cstdint>

#include "runtime/ops/checks.hpp"

namespace pascaline::ops {

/// Sizes that every attention has.
struct Heads {
  Extent heads;
  Extent kv_heads;
  Extent head_dim;
};

/// Each is at least 1, HEADS a multiple of KV_HEADS, HEAD_DIM a power of two from 16 to 256.
void check_heads(const Checks& check, const Heads& of);
/// The result of attention of one query a head: [HEADS, HEAD_DIM] of `type`, or int8 with scales for each 32 columns.
void check_decoded(const Checks& check, Operand out, Operand scales, ElementType type, const Heads& of);
/// The weights of the norms of query and key heads: [HEAD_DIM] in float32 both, or neither.
void check_norm_weights(const Checks& check, Operand q_weight, Operand k_weight, Extent head_dim, NormEpsilon epsilon);
/// What heads of so many tokens are normalised and turned with, of either operation that does that.
template <typename Op>
void check_rotation(const Checks& check, const Op& given, Extent tokens, Extent head_dim, Extent positions) {
  const Extent half{"HEAD_DIM/2", head_dim.value / 2};
  check_norm_weights(check, {"q_weight", &given.q_weight}, {"k_weight", &given.k_weight}, head_dim, given.epsilon);
  check.dense({"cosine", &given.cosine}, {ElementType::float32}, {positions, half});
  check.dense({"sine", &given.sine}, {ElementType::float32}, {positions, half});
  check.dense({"positions", &given.positions}, {ElementType::int32}, {{"3", 3}, tokens});
}
/// Sections are of a head's slots.
void check_sections(const Checks& check, std::int64_t section_h, std::int64_t section_w, Extent head_dim);

}  // namespace pascaline::ops
