#pragma once

#include "runtime/ops/operation.hpp"
#include "runtime/ops/sparse_mask.hpp"

namespace pascaline::ops {

/// AttentionPrefill with a block-sparse causal mask: query i is at position KEYS − QUERIES + i, and KEYS is at least
/// QUERIES. The mask is a pattern, or lists of blocks. All tensors are dense.
struct AttentionSparsePrefill {
  static constexpr const char* kName = "attention_sparse_prefill";

  TensorView q;    ///< [QUERIES, HEADS, HEAD_DIM], float32 or float16
  TensorView k;    ///< [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8
  TensorView v;    ///< as k
  TensorView out;  ///< as q; overlaps nothing
  /// Without a pattern: [LISTS, blocks of QUERIES, WIDTH], int32, LISTS 1 or KV_HEADS: the blocks of keys that these
  /// queries see, ascending; a list ends before its first entry that is negative or lies behind its queries. Queries
  /// that see no key give zeros. The contents lie on the device and are not checked; `pack_block_lists` makes good
  /// ones.
  TensorView blocks = {};
  SparseMask mask = {};
  TensorView k_scales = {};  ///< [KEYS, KV_HEADS], float32; with int8 only
  TensorView v_scales = {};  ///< as k_scales

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("q", self.q, Use::read);
    visit("k", self.k, Use::read);
    visit("v", self.v, Use::read);
    visit("k_scales", self.k_scales, Use::read);
    visit("v_scales", self.v_scales, Use::read);
    visit("blocks", self.blocks, Use::read);
    visit("out", self.out, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// By OpenBLAS; throws Error if that is not installed.
  void compute() const;
};

/// AttentionDecode with the same: the query is at position `length` − 1. Kernels take as many HEADS / KV_HEADS as that.
struct AttentionSparseDecode {
  static constexpr const char* kName = "attention_sparse_decode";

  TensorView q;            ///< [HEADS, HEAD_DIM], float32 or float16
  TensorView k;            ///< [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8
  TensorView v;            ///< as k
  TensorView length;       ///< [1], int32, on the device; held to 0 … KEYS, and 0 gives zeros
  TensorView out;          ///< [HEADS, HEAD_DIM] of q's type or int8; overlaps nothing
  TensorView blocks = {};  ///< without a pattern: [LISTS, WIDTH], int32, as of one block of queries
  SparseMask mask = {};
  TensorView k_scales = {};  ///< [KEYS, KV_HEADS], float32; with int8 only
  TensorView v_scales = {};  ///< as k_scales
  /// With out in int8, and HEAD_DIM a multiple of 32: float32 [HEADS · HEAD_DIM / 32, 1], as of one row.
  TensorView scales = {};

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("q", self.q, Use::read);
    visit("k", self.k, Use::read);
    visit("v", self.v, Use::read);
    visit("k_scales", self.k_scales, Use::read);
    visit("v_scales", self.v_scales, Use::read);
    visit("length", self.length, Use::read);
    visit("blocks", self.blocks, Use::read);
    visit("out", self.out, Use::write);
    visit("scales", self.scales, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  /// Of any number of query heads a key head. Reads what the mask lets through once.
  void compute() const;
};

}  // namespace pascaline::ops
