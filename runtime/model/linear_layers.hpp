#pragma once

#include <cstdint>

#include "runtime/checkpoint/model_config.hpp"
#include "runtime/model/executor.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {

/// Runs the linear layers of a model. Those with a weight in a format of matrices take activations as int8: on a device,
/// rows that are more than a decoding step's are rounded into memory that it holds for that.
class LinearLayers {
 public:
  /// `executor` must outlive it.
  explicit LinearLayers(Executor& executor) : executor_(&executor) {}

  /// Makes room for rounding passes of so many rows of so many columns; what it had before must be out of use if that is
  /// more. Throws OutOfMemoryError.
  void reserve(std::int64_t rows, std::int64_t columns);
  /// Bytes of that room.
  [[nodiscard]] static std::uint64_t bytes_for(std::int64_t rows, std::int64_t columns) noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return room_.bytes(); }
  /// The longest row that a linear layer of the decoder, or of the vision tower, takes.
  [[nodiscard]] static std::int64_t widest(const TextConfig& config) noexcept;
  [[nodiscard]] static std::int64_t widest(const VisionConfig& config) noexcept;

  /// Runs the layer; does not wait. Throws Error without room for its rows, and as Executor::run.
  void run(const ops::Matmul& layer);

 private:
  Executor* executor_;
  RawBuffer room_;
};

}  // namespace pascaline
