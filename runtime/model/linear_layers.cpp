#include "runtime/model/linear_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/model/requirements.hpp"
#include "runtime/model/tensor_memory.hpp"

namespace pascaline {
namespace {

// Rows are filled up to whole chunks of the format, of which these are the longest.
constexpr std::int64_t kLongestChunk = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + DeviceMemory::kAlignment - 1) / DeviceMemory::kAlignment * DeviceMemory::kAlignment;
}

}  // namespace

std::uint64_t LinearLayers::bytes_for(std::int64_t rows, std::int64_t columns) noexcept {
  const std::int64_t filled = (columns + kLongestChunk - 1) / kLongestChunk * kLongestChunk;
  const auto values = static_cast<std::size_t>(rows * filled);
  return aligned(values) + aligned(values / kActivationBlock * sizeof(float));
}

std::int64_t LinearLayers::widest(const TextConfig& config) noexcept {
  return std::max({config.hidden, config.intermediate, config.heads * config.head_dim});
}

std::int64_t LinearLayers::widest(const VisionConfig& config) noexcept {
  return std::max({config.hidden, config.intermediate, config.heads * padded_head_dim(config), config.merged(),
                   config.patch_values()});
}

void LinearLayers::reserve(std::int64_t rows, std::int64_t columns) {
  const std::uint64_t bytes = bytes_for(rows, columns);
  if (bytes > room_.bytes()) {
    room_ = RawBuffer();
    room_ = executor_->memory().allocate_raw(bytes);
  }
}

void LinearLayers::run(const ops::Matmul& layer) {
  const std::int64_t rows = layer.a.shape[0];
  if (!is_matrix_format(layer.b.type) || rows <= ops::kFewRows) {
    executor_->run(layer);
    return;
  }
  const bool computes = executor_->on_processor();
  if (computes && !executor_->is_observed()) {
    executor_->run(layer);
    return;
  }
  const std::int64_t columns = ops::filled_columns(layer.b.type, layer.a.shape[1]);
  const std::int64_t blocks = ops::scale_rows(layer.b.type, layer.a.shape[1]);
  if (!computes && bytes_for(rows, columns) > room_.bytes()) {
    throw Error(fmt::format("there is no room for {} rows of {} columns as int8", rows, columns));
  }
  auto* const base = static_cast<std::byte*>(room_.data());
  ops::QuantizedRows rounded;
  rounded.values = TensorView(base, ElementType::int8, {rows, columns});
  rounded.scales = TensorView(base + aligned(bytes_of(rounded.values)), ElementType::float32, {blocks, rows});
  const ops::Quantize rounding{.x = layer.a, .y = rounded, .for_weight = layer.b.type};
  const ops::QuantizedMatmul product{.a = rounded,
                                     .b = layer.b,
                                     .c = layer.c,
                                     .bias = layer.bias,
                                     .residual = layer.residual,
                                     .epilogue = layer.epilogue};
  if (computes) {
    // The processor rounds as it multiplies; kernels that would do the same are two.
    executor_->tell(rounding.problem());
    executor_->tell(product.problem());
    executor_->run_untold(layer);
    return;
  }
  executor_->run(rounding);
  executor_->run(product);
}

}  // namespace pascaline
