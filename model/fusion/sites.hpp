#pragma once

#include <cstdint>
#include <span>

#include "model/checkpoint/model_weights.hpp"
#include "model/fusion/attention_choice.hpp"
#include "model/fusion/site_key.hpp"
#include "runtime/ops/norm_epsilon.hpp"
#include "runtime/ops/sample_next.hpp"
#include "runtime/ops/tensor.hpp"
#include "runtime/ops/token_heads.hpp"

// The sites of a model: stretches of a pass that may be computed in several ways, which give the same. A stretch goes
// as far as anything is joined to anything: half a layer, so that no choice depends on another one.
//
// To add a way to compute one:
//  1. Write the operation (CONTRIBUTING.md, "Adding an operation").
//  2. In the file of the site's list (decode_sites.cpp, prompt_sites.cpp, sparse_sites.cpp,
//     vision_sites.cpp) write a function
//     `void run_NAME(LinearLayers& linear, const SomeSite& site)` that does all of the site with it: what the
//     first alternative, "single", changes must hold the same afterwards, what is marked as scratch anything. What it
//     does not join it takes from the functions that the others are made of.
//  3. Add `{name, what, fits, extra_launches, run}` to the list, after "single". `fits` sees the key alone, so that a
//     plan can be shown and checked without a model; what it needs to know and the key lacks becomes a dimension of the
//     key (sites.cpp), 0 or 1 where it is a yes or no.
//  4. Name a kernel that the site did not launch before in site_space.cpp: its source is part of what was measured.
// Nothing else: what is chosen, measured, stored, shown and forced by name follows from the list.
namespace pascaline {

class LinearLayers;
template <typename Site>
struct SiteList;

/// The first half of a decoder's layer, in place: `hidden += output · attention(rotate(qkv · norm(hidden)))`, with the
/// keys and values of these rows into the cache.
struct AttentionSite : ops::TokenHeads {  // of all ROWS tokens
  TensorView length;                      ///< as of ops::AttentionDecodeQkv
  TensorView hidden;                      ///< [ROWS, HIDDEN], float32; changed
  TensorView input_norm;                  ///< [HIDDEN]
  StackedMatrix qkv_weight;  ///< [(HEADS + 2·KV_HEADS)·HEAD_DIM, HIDDEN]: a part ends where queries or keys do
  TensorView slots;          ///< [ROWS], int32: rows of the cache
  TensorView output;         ///< [HIDDEN, HEADS·HEAD_DIM]: the projection after attention
  // Scratch. Of one row no two share memory; of several `input` may share that of `q`, `qkv` that of `attended`.
  TensorView input;  ///< [ROWS, HIDDEN]
  TensorView qkv;    ///< [ROWS, HEADS + 2·KV_HEADS, HEAD_DIM]; of several parts that for each part, one after another
  TensorView q;      ///< [ROWS, HEADS, HEAD_DIM]
  TensorView attended;  ///< as q

  std::int64_t cached = 0;  ///< rows of the cache that count besides these; of one row `length` tells it

  [[nodiscard]] std::int64_t rows() const noexcept { return hidden.shape[0]; }
  /// Keys that may be seen: of one row those that the cache has room for.
  [[nodiscard]] std::int64_t keys() const noexcept;
  /// site_decode_attention (one row), site_few_attention (up to ops::kFewRows) or site_prompt_attention.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<AttentionSite>& list() const noexcept;
};

/// The same where tokens attend to some of the keys before them only. Where blocks are chosen, the means of the keys of
/// each block follow the cache, whether they are needed or not: `means` of the blocks that these rows fill change.
struct SparseAttentionSite : AttentionSite {
  AttentionChoice choice;
  // With chosen blocks only.
  TensorView means;  ///< [blocks of keys, KV_HEADS, HEAD_DIM], float32; changed
  // Scratch.
  TensorView scores;  ///< [KV_HEADS, blocks of ROWS, blocks of keys], float32
  TensorView lists;   ///< [KV_HEADS, blocks of ROWS, WIDTH], int32: blocks that are seen

  // Of this site, never asked of it as of the other: sites are passed by their own type.
  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  /// site_decode_sparse_attention (one row) or site_prompt_sparse_attention.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<SparseAttentionSite>& list() const noexcept;
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)
};

/// The second half of a decoder's layer, in place: `hidden += down · swiglu(gate_up · norm(hidden))`.
struct MlpSite {
  TensorView hidden;     ///< [ROWS, HIDDEN], float32; changed
  TensorView post_norm;  ///< [HIDDEN]
  TensorView gate_up;    ///< [2·INTERMEDIATE, HIDDEN]: rows of gate and up in turn
  TensorView down;       ///< [HIDDEN, INTERMEDIATE]
  // Scratch; no two share memory.
  TensorView input;  ///< [ROWS, HIDDEN]
  TensorView gated;  ///< [ROWS, INTERMEDIATE]

  NormEpsilon epsilon = {};

  [[nodiscard]] std::int64_t rows() const noexcept { return hidden.shape[0]; }
  /// site_decode_mlp (one row), site_few_mlp (up to ops::kFewRows) or site_prompt_mlp.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<MlpSite>& list() const noexcept;
};

/// What follows the last layer: `logits = head · norm(hidden)`.
struct HeadSite {
  TensorView hidden;  ///< [ROWS, HIDDEN], float32
  TensorView norm;    ///< [HIDDEN]
  TensorView head;    ///< [VOCABULARY, HIDDEN]
  TensorView logits;  ///< [ROWS, VOCABULARY], float32; written
  TensorView input;   ///< [ROWS, HIDDEN]: scratch

  NormEpsilon epsilon = {};

  /// site_head.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<HeadSite>& list() const noexcept;
};

/// What follows the logits of a decoding step: the next token, one more in length, slot and positions, and the token's
/// embedding where the next step begins.
struct NextTokenSite {
  ops::SampleNext next;

  /// site_next_token.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<NextTokenSite>& list() const noexcept;
};

/// The first half of a vision block, in place: `hidden += projection · attention(rotate(qkv · norm(hidden)))`.
struct VisionAttentionSite {
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

  /// site_vision_attention.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<VisionAttentionSite>& list() const noexcept;
};

/// The second half of a vision block, in place: `hidden += fc2 · gelu(fc1 · norm(hidden))`.
struct VisionMlpSite {
  TensorView hidden;  ///< [ROWS, HIDDEN], float32; changed
  NormWeights norm;   ///< [HIDDEN]
  LinearWeights fc1;  ///< [INTERMEDIATE, HIDDEN]
  LinearWeights fc2;  ///< [HIDDEN, INTERMEDIATE]
  // Scratch; no two share memory.
  TensorView input;  ///< [ROWS, HIDDEN]
  TensorView wide;   ///< [ROWS, INTERMEDIATE]

  /// site_vision_mlp.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<VisionMlpSite>& list() const noexcept;
};

/// What makes tokens of patches: `out = fc2 · gelu(fc1 · norm(hidden))`, with the patches of a token as one row, before
/// the normalisation or after it.
struct MergerSite {
  TensorView hidden;          ///< [TOKENS·merge², MERGED/merge²], float32
  NormWeights norm;           ///< as long as what is normalised: a patch, or a token of them
  LinearWeights fc1;          ///< [MERGED, MERGED]
  LinearWeights fc2;          ///< [OUT, MERGED]
  TensorView out;             ///< [TOKENS, OUT], float32; written
  bool merged_first = false;  ///< before the normalisation
  // Scratch; no two share memory.
  TensorView input;  ///< as hidden
  TensorView wide;   ///< [TOKENS, MERGED]

  /// site_merger.
  [[nodiscard]] SiteKey key() const;
  [[nodiscard]] const SiteList<MergerSite>& list() const noexcept;
};

}  // namespace pascaline
