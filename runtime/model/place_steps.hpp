#pragma once

#include "runtime/model/linear_layers.hpp"
#include "runtime/model/places.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
#include "runtime/ops/normalising_matmul.hpp"
#include "runtime/ops/rope.hpp"

// What several ways to compute a place have in common.
namespace pascaline {

/// The normalisation of the rows, and the product with what it gives.
[[nodiscard]] ops::Rmsnorm input_norm_of(const AttentionPlace& place);
[[nodiscard]] ops::Matmul projection_of(const AttentionPlace& place);
/// The product after attention, of its result in `attended`.
[[nodiscard]] ops::Matmul output_of(const AttentionPlace& place, const TensorView& attended);
/// Heads normalised and turned; keys and values into the cache, queries into `q`.
[[nodiscard]] ops::QkNormRope rotation_of(const AttentionPlace& place);

[[nodiscard]] ops::Rmsnorm post_norm_of(const MlpPlace& place);
[[nodiscard]] ops::Matmul gate_up_of(const MlpPlace& place);
[[nodiscard]] ops::Matmul down_of(const MlpPlace& place);

/// Whether a product with a weight of that type, of so many rows, can normalise them. Few rows have a kernel of their
/// own, and rows for packed formats are rounded by the normalisation itself.
[[nodiscard]] bool can_normalise(ElementType weight, std::int64_t rows) noexcept;
/// For `extra_launches` of these: reading rows once and storing a number for each saves about what normalising them
/// again in every tile of the product takes, so that without measurements there is no reason to.
[[nodiscard]] double more_for_normalising(const PlaceKey& key);
/// The statistics of the norm's rows, into the memory of its result, which a product that normalises needs no more.
[[nodiscard]] ops::RowStatistics statistics_of(const ops::Rmsnorm& norm);
[[nodiscard]] ops::RowStatistics statistics_of(const ops::Layernorm& norm);
/// The norm's rows and statistics, and the product with what it would give.
void run_normalising(LinearLayers& linear, const ops::Rmsnorm& norm, const ops::Matmul& layer);
void run_normalising(LinearLayers& linear, const ops::Layernorm& norm, const ops::Matmul& layer);

}  // namespace pascaline
