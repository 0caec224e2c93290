#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/model_config.hpp"

namespace pascaline {

/// A tensor of the model under its official name, e.g. `model.language_model.norm.weight`.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;  ///< row-major, outermost first

  [[nodiscard]] std::int64_t elements() const noexcept;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// Product of the extents; -1 if one is negative or the product exceeds 64 bits.
[[nodiscard]] std::int64_t element_count(std::span<const std::int64_t> shape) noexcept;

/// Exactly the tensors that the configuration implies: the decoder's in order of use, then the vision tower's, and
/// `lm_head.weight` last if the head is not tied.
[[nodiscard]] std::vector<TensorSpec> required_tensors(const ModelConfig& config);

/// Elements of all of them; throws ModelError above 10^12.
[[nodiscard]] std::int64_t parameter_count(const ModelConfig& config);

}  // namespace pascaline
