#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "model/fusion/sites.hpp"
#include "model/linear_layers.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/attention_qkv.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/normalising_matmul.hpp"
#include "runtime/ops/rope.hpp"

// What several ways to compute a site have in common.
namespace pascaline {

/// Products of the same rows with the parts of a weight.
struct PartProducts {
  std::array<ops::Matmul, StackedMatrix::kMost> products;
  std::size_t count = 0;

  [[nodiscard]] std::span<const ops::Matmul> all() const& noexcept { return {products.data(), count}; }
  std::span<const ops::Matmul> all() const&& = delete;  // they lie in this
};

/// The normalisation of the rows, and the products with what it gives.
[[nodiscard]] ops::Rmsnorm input_norm_of(const AttentionSite& site);
[[nodiscard]] PartProducts projection_of(const AttentionSite& site);
/// Runs both one after the other.
void project(LinearLayers& linear, const AttentionSite& site);
/// The same with rows that each product normalises: of one row, or of several whose statistics are taken before.
void project_normalising_row(LinearLayers& linear, const AttentionSite& site);
void project_normalising(LinearLayers& linear, const AttentionSite& site);
/// The product after attention, of its result in `attended`.
[[nodiscard]] ops::Matmul output_of(const AttentionSite& site, const TensorView& attended);
/// Heads normalised and turned; keys and values into the cache, queries into `q`.
[[nodiscard]] ops::QkNormRope rotation_of(const AttentionSite& site);

/// Attention of several tokens to all before them.
[[nodiscard]] ops::AttentionPrefill prompt_attention_of(const AttentionSite& site);
/// A token's attention, with norms, positions and cache of its queries and keys.
[[nodiscard]] ops::AttentionDecodeQkv rotated_attention_of(const AttentionSite& site, const ops::QuantizedRows& to);
/// A token's attention, which `attend(to)` runs, and the product after it: where that takes rounded rows, attention
/// rounds its result for it.
template <typename Attend>
void attend_and_project(LinearLayers& linear, const AttentionSite& site, const Attend& attend) {
  const ops::Matmul output = output_of(site, site.attended);
  const std::int64_t heads = site.q.shape[1];
  const std::int64_t head_dim = site.q.shape[2];
  if (head_dim % kActivationBlock == 0 && linear.takes_rounded_blocks(output)) {
    const ops::QuantizedRows rounded = linear.rows_for(output);
    attend(ops::QuantizedRows{reshaped(rounded.values, {heads, head_dim}), rounded.scales});
    linear.run_rounded(output, rounded);
    return;
  }
  attend(ops::QuantizedRows{reshaped(site.attended, {heads, head_dim}), {}});
  linear.run(output);
}

/// Whether a product of one row with a weight of that type can normalise it.
[[nodiscard]] bool can_normalise_row(ElementType weight, std::int64_t columns) noexcept;
/// For `extra_launches` of that: what the blocks of threads that take so many rows of a weight do again.
[[nodiscard]] double more_for_norm(ElementType weight, std::int64_t weight_rows) noexcept;
/// The product that normalises its row.
[[nodiscard]] ops::NormedMatmul joined(const ops::Rmsnorm& norm, const ops::Matmul& layer);
/// These of the projection to queries, keys and values, for keys of sites.
[[nodiscard]] bool normalises_qkv(const SiteKey& key);
[[nodiscard]] double more_for_qkv(const SiteKey& key);
[[nodiscard]] bool normalises_prompt_qkv(const SiteKey& key);

/// Ways to compute the MLP: each operation by itself; the norm by the product after it; all of it in one launch.
void single_mlp(LinearLayers& linear, const MlpSite& site);
void normed_mlp(LinearLayers& linear, const MlpSite& site);  ///< of up to ops::kFewRows
void whole_mlp(LinearLayers& linear, const MlpSite& site);   ///< likewise
/// Whether there are kernels for that, for keys of sites.
[[nodiscard]] bool normalises_gate_up(const SiteKey& key);
[[nodiscard]] bool is_whole(const SiteKey& key);
/// What they are made of.
[[nodiscard]] ops::Rmsnorm post_norm_of(const MlpSite& site);
[[nodiscard]] ops::Matmul gate_up_of(const MlpSite& site);
[[nodiscard]] ops::Matmul down_of(const MlpSite& site);

/// Whether a product with a weight of that type, of so many rows, can normalise them. Few rows have a kernel of their
/// own, and rows for packed formats are rounded by the normalisation itself.
[[nodiscard]] bool can_normalise(ElementType weight, std::int64_t rows) noexcept;
/// For `extra_launches` of these: reading rows once and storing a number for each saves about what normalising them
/// again in every tile of the product takes, so that without measurements there is no reason to.
[[nodiscard]] double more_for_normalising(const SiteKey& key);
/// The statistics of the norm's rows, into the memory of its result, which a product that normalises needs no more.
[[nodiscard]] ops::RowStatistics statistics_of(const ops::Rmsnorm& norm);
[[nodiscard]] ops::RowStatistics statistics_of(const ops::Layernorm& norm);
/// The norm's rows and statistics, and the product with what it would give.
void run_normalising(LinearLayers& linear, const ops::Rmsnorm& norm, const ops::Matmul& layer);
void run_normalising(LinearLayers& linear, const ops::Layernorm& norm, const ops::Matmul& layer);

}  // namespace pascaline
