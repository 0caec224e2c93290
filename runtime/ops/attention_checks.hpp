#pragma once

#include "runtime/ops/checks.hpp"
#include "runtime/ops/token_heads.hpp"

namespace pascaline::ops {

/// Sizes that every attention has.
struct Heads {
  Extent heads;
  Extent kv_heads;
  Extent head_dim;
};

/// Each is at least 1, HEADS a multiple of KV_HEADS, HEAD_DIM a multiple of 8 from 8 to 256.
void check_heads(const Checks& check, const Heads& of);
/// The result of attention of one query a head: [HEADS, HEAD_DIM] of `type`, or int8 with scales for each 32 columns.
void check_decoded(const Checks& check, Operand out, Operand scales, ElementType type, const Heads& of);
/// Types and extents of the cache that tokens go to.
void check_token_cache(const Checks& check, const TokenHeads& given, Extent rows, Extent kv_heads, Extent head_dim);
/// What heads of so many tokens are normalised and turned with: weights of the norms of queries and keys both, or
/// neither, tables, positions.
void check_rotation(const Checks& check, const TokenHeads& given, Extent tokens, Extent head_dim, Extent positions);
/// Sections are of a head's slots.
void check_sections(const Checks& check, const TokenHeads& given, Extent head_dim);

}  // namespace pascaline::ops
