#pragma once

#include <cstdint>
#include <span>

#include "model/checkpoint/model_weights.hpp"
#include "model/fusion/attention_choice.hpp"
#include "model/fusion/place_key.hpp"
#include "runtime/ops/norm_epsilon.hpp"
#include "runtime/ops/sample_next.hpp"
#include "runtime/ops/tensor.hpp"

// The places of a model: stretches of a pass that may be computed in several ways, which give the same. A stretch goes
// as far as anything is joined to anything: half a layer, so that no choice depends on another one.
//
// To add a way to compute one:
//  1. Write the operation (CONTRIBUTING.md, "Adding an operation").
//  2. In the file of the place's list (decode_places.cpp, prompt_places.cpp, sparse_places.cpp,
//     vision_places.cpp) write a function
//     `void run_NAME(LinearLayers& linear, const SomePlace& place)` that does all of the place with it: what the
//     first alternative, "single", changes must hold the same afterwards, what is marked as scratch anything. What it
//     does not join it takes from the functions that the others are made of.
//  3. Add `{name, what, fits, extra_launches, run}` to the list, after "single". `fits` sees the key alone, so that a
//     plan can be shown and checked without a model; what it needs to know and the key lacks becomes a dimension of the
//     key (places.cpp), 0 or 1 where it is a yes or no.
//  4. Name a kernel that the place did not launch before in place_space.cpp: its source is part of what was measured.
// Nothing else: what is chosen, measured, stored, shown and forced by name follows from the list.
namespace pascaline {

class LinearLayers;
template <typename Place>
struct PlaceList;

/// The first half of a decoder's layer, in place: `hidden += output · attention(rotate(qkv · norm(hidden)))`, with the
/// keys and values of these rows into the cache.
struct AttentionPlace {
  TensorView hidden;         ///< [ROWS, HIDDEN], float32; changed
  TensorView input_norm;     ///< [HIDDEN]
  StackedMatrix qkv_weight;  ///< [(HEADS + 2·KV_HEADS)·HEAD_DIM, HIDDEN]: a part ends where queries or keys do
  TensorView q_norm;         ///< [HEAD_DIM]; empty where heads are not normalised
  TensorView k_norm;         ///< as q_norm
  TensorView cosine;         ///< [POSITIONS, HEAD_DIM/2]
  TensorView sine;           ///< as cosine
  TensorView positions;      ///< [3, ROWS], int32
  TensorView slots;          ///< [ROWS], int32: rows of the cache
  TensorView length;         ///< [1], int32: cached tokens once these are
  TensorView k_cache;        ///< [KEYS, KV_HEADS, HEAD_DIM]; changed
  TensorView v_cache;        ///< as k_cache
  TensorView k_scales;       ///< [KEYS, KV_HEADS], of an int8 cache; changed
  TensorView v_scales;       ///< as k_scales
  TensorView output;         ///< [HIDDEN, HEADS·HEAD_DIM]: the projection after attention
  // Scratch. Of one row no two share memory; of several `input` may share that of `q`, `qkv` that of `attended`.
  TensorView input;  ///< [ROWS, HIDDEN]
  TensorView qkv;    ///< [ROWS, HEADS + 2·KV_HEADS, HEAD_DIM]; of several parts that for each part, one after another
  TensorView q;      ///< [ROWS, HEADS, HEAD_DIM]
  TensorView attended;  ///< as q

  std::int64_t cached = 0;  ///< rows of the cache that count besides these; of one row `length` tells it
  std::int64_t section_h = 0;
  std::int64_t section_w = 0;
  NormEpsilon epsilon = {};

  [[nodiscard]] std::int64_t rows() const noexcept { return hidden.shape[0]; }
  /// Keys that may be seen: of one row those that the cache has room for.
  [[nodiscard]] std::int64_t keys() const noexcept;
  /// place_decode_attention (one row), place_few_attention (up to ops::kFewRows) or place_prompt_attention.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<AttentionPlace>& list() const noexcept;
};

/// The same where tokens attend to some of the keys before them only. Where blocks are chosen, the means of the keys of
/// each block follow the cache, whether they are needed or not: `means` of the blocks that these rows fill change.
struct SparseAttentionPlace : AttentionPlace {
  AttentionChoice choice;
  // With chosen blocks only.
  TensorView means;  ///< [blocks of keys, KV_HEADS, HEAD_DIM], float32; changed
  // Scratch.
  TensorView scores;  ///< [KV_HEADS, blocks of ROWS, blocks of keys], float32
  TensorView lists;   ///< [KV_HEADS, blocks of ROWS, WIDTH], int32: blocks that are seen

  // Of this place, never asked of it as of the other: places are passed by their own type.
  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  /// place_decode_sparse_attention (one row) or place_prompt_sparse_attention.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<SparseAttentionPlace>& list() const noexcept;
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)
};

/// The second half of a decoder's layer, in place: `hidden += down · swiglu(gate_up · norm(hidden))`.
struct MlpPlace {
  TensorView hidden;     ///< [ROWS, HIDDEN], float32; changed
  TensorView post_norm;  ///< [HIDDEN]
  TensorView gate_up;    ///< [2·INTERMEDIATE, HIDDEN]: rows of gate and up in turn
  TensorView down;       ///< [HIDDEN, INTERMEDIATE]
  // Scratch; no two share memory.
  TensorView input;  ///< [ROWS, HIDDEN]
  TensorView gated;  ///< [ROWS, INTERMEDIATE]

  NormEpsilon epsilon = {};

  [[nodiscard]] std::int64_t rows() const noexcept { return hidden.shape[0]; }
  /// place_decode_mlp (one row), place_few_mlp (up to ops::kFewRows) or place_prompt_mlp.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<MlpPlace>& list() const noexcept;
};

/// What follows the last layer: `logits = head · norm(hidden)`.
struct HeadPlace {
  TensorView hidden;  ///< [ROWS, HIDDEN], float32
  TensorView norm;    ///< [HIDDEN]
  TensorView head;    ///< [VOCABULARY, HIDDEN]
  TensorView logits;  ///< [ROWS, VOCABULARY], float32; written
  TensorView input;   ///< [ROWS, HIDDEN]: scratch

  NormEpsilon epsilon = {};

  /// place_head.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<HeadPlace>& list() const noexcept;
};

/// What follows the logits of a decoding step: the next token, one more in length, slot and positions, and the token's
/// embedding where the next step begins.
struct NextTokenPlace {
  ops::SampleNext next;

  /// place_next_token.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<NextTokenPlace>& list() const noexcept;
};

/// The first half of a vision block, in place: `hidden += projection · attention(rotate(qkv · norm(hidden)))`.
struct VisionAttentionPlace {
  TensorView hidden;          ///< [ROWS, HIDDEN], float32; changed
  NormWeights norm;           ///< [HIDDEN]
  LinearWeights qkv_weight;   ///< [3·HEADS·HEAD_DIM, HIDDEN]
  LinearWeights projection;   ///< [HIDDEN, HEADS·HEAD_DIM]
  TensorView cosine;          ///< [POSITIONS, HEAD_DIM/4]
  TensorView sine;            ///< as cosine
  TensorView positions;       ///< [2, ROWS], int32
  TensorView segment_starts;  ///< [SEGMENTS + 1], int32; empty of one segment
  // Scratch. `normed` may share the memory of `attended`.
  TensorView normed;    ///< [ROWS, HIDDEN]
  TensorView qkv;       ///< [ROWS, 3, HEADS, HEAD_DIM]
  TensorView attended;  ///< [ROWS, HEADS, HEAD_DIM]

  /// place_vision_attention.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<VisionAttentionPlace>& list() const noexcept;
};

/// The second half of a vision block, in place: `hidden += fc2 · gelu(fc1 · norm(hidden))`.
struct VisionMlpPlace {
  TensorView hidden;  ///< [ROWS, HIDDEN], float32; changed
  NormWeights norm;   ///< [HIDDEN]
  LinearWeights fc1;  ///< [INTERMEDIATE, HIDDEN]
  LinearWeights fc2;  ///< [HIDDEN, INTERMEDIATE]
  // Scratch; no two share memory.
  TensorView input;  ///< [ROWS, HIDDEN]
  TensorView wide;   ///< [ROWS, INTERMEDIATE]

  /// place_vision_mlp.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<VisionMlpPlace>& list() const noexcept;
};

/// What makes tokens of patches: `out = fc2 · gelu(fc1 · norm(hidden))`, with the patches of a token as one row, before
/// the normalisation or after it.
struct MergerPlace {
  TensorView hidden;          ///< [TOKENS·merge², MERGED/merge²], float32
  NormWeights norm;           ///< as long as what is normalised: a patch, or a token of them
  LinearWeights fc1;          ///< [MERGED, MERGED]
  LinearWeights fc2;          ///< [OUT, MERGED]
  TensorView out;             ///< [TOKENS, OUT], float32; written
  bool merged_first = false;  ///< before the normalisation
  // Scratch; no two share memory.
  TensorView input;  ///< as hidden
  TensorView wide;   ///< [TOKENS, MERGED]

  /// place_merger.
  [[nodiscard]] PlaceKey key() const;
  [[nodiscard]] const PlaceList<MergerPlace>& list() const noexcept;
};

}  // namespace pascaline
