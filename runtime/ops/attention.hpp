#pragma once

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// `out = softmax(q · kᵀ / √HEAD_DIM + mask) · v` for each head; query head h reads key head h / (HEADS / KV_HEADS).
/// HEAD_DIM is a power of two from 16 to 256, HEADS a multiple of KV_HEADS. q, k and v may have rows farther apart than
/// they are long (parts of a projection), those of k and v equally far.
struct AttentionPrefillArguments {
  TensorView q;    ///< [QUERIES, HEADS, HEAD_DIM], float32 or float16
  TensorView k;    ///< [KEYS, KV_HEADS, HEAD_DIM], float32 or float16
  TensorView v;    ///< as k
  TensorView out;  ///< [QUERIES, HEADS, HEAD_DIM] of q's type, dense; overlaps nothing
  /// [SEGMENTS + 1], int32, ascending from 0 to QUERIES: query i sees the rows of its own segment. Left out: it sees
  /// all. Not with `causal`; needs KEYS = QUERIES. The contents lie on the device and are not checked.
  TensorView segment_starts;
  bool causal = true;  ///< query i sees keys 0 to KEYS - QUERIES + i: the new tokens are the last of the cache
};

/// Launches it; does not wait. Queries that see no key give zeros. Without queries there is nothing to do; without keys
/// nothing is defined, which is an error. Throws Error for what does not fit, and whatever `launch` throws.
void attention_prefill(Dispatcher& dispatcher, const AttentionPrefillArguments& arguments);

/// The same for one query a head, the newest token's, against the first `length` rows of a cache. HEADS / KV_HEADS is
/// at most 31 for a HEAD_DIM of 64, 18 for 128, 10 for 256: a block's shared memory holds the sums of such a group.
struct AttentionDecodeArguments {
  TensorView q;       ///< [HEADS, HEAD_DIM], float32 or float16
  TensorView k;       ///< [KEYS, KV_HEADS, HEAD_DIM], float32 or float16; rows may lie apart
  TensorView v;       ///< as k
  TensorView length;  ///< [1], int32, on the device; held to 0 … KEYS, and 0 gives zeros
  TensorView out;     ///< [HEADS, HEAD_DIM] of q's type; overlaps nothing
};

/// Launches it; does not wait. KEYS is what the cache has room for: at least 1. Throws as `attention_prefill`.
void attention_decode(Dispatcher& dispatcher, const AttentionDecodeArguments& arguments);

}  // namespace pascaline::ops
