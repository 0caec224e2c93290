#pragma once

#include "runtime/formats/weight_format.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline {

/// A linear layer's weight in device memory that somebody else owns: its values and what its format needs beside them.
struct WeightView {
  WeightView() = default;
  /// A dense one; implicit, as a plain tensor is a weight, too.
  WeightView(const TensorView& dense) : values(dense) {}  // NOLINT(google-explicit-*)
  WeightView(const TensorView& of_values, const TensorView& of_scales, const TensorView& of_zeros, WeightFormat held_as)
      : values(of_values), scales(of_scales), zeros(of_zeros), format(held_as) {}

  TensorView values;
  TensorView scales;  ///< left out where the format has none
  TensorView zeros;   ///< as scales
  WeightFormat format = WeightFormat::dense;
};

}  // namespace pascaline
