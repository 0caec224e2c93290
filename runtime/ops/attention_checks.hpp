#pragma once

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

}  // namespace pascaline::ops
