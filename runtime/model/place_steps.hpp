#pragma once

#include "runtime/model/linear_layers.hpp"
#include "runtime/model/places.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"
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

}  // namespace pascaline
