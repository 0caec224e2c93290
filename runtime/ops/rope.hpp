#pragma once

#include <cstdint>

#include "runtime/ops/operation.hpp"
#include "runtime/ops/token_heads.hpp"

namespace pascaline::ops {

/// What products give QkNormRope: rows of all heads, or matrices one after another, each of some heads of all tokens.
enum class QkvParts : std::uint8_t {
  joined = 0,
  queries_apart = 1,  ///< queries; keys and values
  values_apart = 2,   ///< queries and keys; values
  all_apart = 3
};

/// From the projection of queries, keys and values to attention over a cache: RMSNorm of query and key heads where
/// there are weights for it, interleaved M-RoPE of both, keys and values into their cache. Slot j of a head is the pair
/// of elements j and j + HEAD_DIM / 2; it turns by position H if j mod 3 = 1 and j < 3 · section_h, by W if j mod 3 = 2
/// and j < 3 · section_w, else by T. HEAD_DIM is even. A cache in int8 gets integers and scales (docs/formats.md). All
/// dense but qkv; tensors of float32, float16 and int8 aligned to 16 bytes. Without tokens there is nothing to do;
/// without heads, positions or cache rows nothing is defined, which is an error.
struct QkNormRope : TokenHeads {
  static constexpr const char* kName = "qk_norm_rope";

  TensorView qkv;  ///< [TOKENS, HEADS + 2·KV_HEADS, HEAD_DIM], float32 or float16; rows may lie apart
  /// [TOKENS], int32: each token's row of the caches. Not checked: one that is no row is skipped, none may stand twice.
  TensorView slots;
  TensorView q;                       ///< [TOKENS, HEADS, HEAD_DIM] of qkv's type; overlaps nothing
  QkvParts parts = QkvParts::joined;  ///< qkv is dense unless they are joined

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("qkv", self.qkv, Use::read);
    visit("q_weight", self.q_weight, Use::read);
    visit("k_weight", self.k_weight, Use::read);
    visit("cosine", self.cosine, Use::read);
    visit("sine", self.sine, Use::read);
    visit("positions", self.positions, Use::read);
    visit("slots", self.slots, Use::read);
    visit("k_cache", self.k_cache, Use::change);
    visit("v_cache", self.v_cache, Use::change);
    visit("k_scales", self.k_scales, Use::change);
    visit("v_scales", self.v_scales, Use::change);
    visit("q", self.q, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// Rotates the query and key heads of patches in place: the first HEAD_DIM / 4 slots by a patch's row, the others by
/// its column. Slot j of a head is the pair of elements 2j and 2j + 1. HEAD_DIM is a multiple of 4. Without patches or
/// heads there is nothing to do.
struct RopeVision {
  static constexpr const char* kName = "rope_vision";

  TensorView qkv;     ///< [PATCHES, 3, HEADS, HEAD_DIM]: query, key, value; float32 or float16; patches may lie apart
  TensorView cosine;  ///< [POSITIONS, HEAD_DIM/4], float32
  TensorView sine;    ///< as cosine
  /// [2, PATCHES], int32: row and column of each patch. Not checked: those outside of the tables take the nearest row.
  TensorView positions;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("qkv", self.qkv, Use::change);
    visit("cosine", self.cosine, Use::read);
    visit("sine", self.sine, Use::read);
    visit("positions", self.positions, Use::read);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
