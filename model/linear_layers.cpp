#include "model/linear_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "model/requirements.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/formats/int8_activations.hpp"

namespace pascaline {
namespace {

// Rows are filled up to whole chunks of the format, of which these are the longest.
constexpr std::int64_t kLongestChunk = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + DeviceMemory::kAlignment - 1) / DeviceMemory::kAlignment * DeviceMemory::kAlignment;
}

std::uint64_t half_of_room(std::int64_t rows, std::int64_t columns) {
  const std::int64_t filled = (columns + kLongestChunk - 1) / kLongestChunk * kLongestChunk;
  const auto values = static_cast<std::size_t>(rows * filled);
  return aligned(values) + aligned(values / kActivationBlock * sizeof(float));
}

}  // namespace

// Two layers' rows: those that a layer reads, and those that it gives the next.
std::uint64_t LinearLayers::bytes_for(std::int64_t rows, std::int64_t columns) noexcept {
  return 2 * half_of_room(rows, columns);
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

bool LinearLayers::takes_rounded_rows(const ops::Matmul& layer) const noexcept {
  return is_packed_format(layer.b.type) && !executor_->on_processor();
}

bool LinearLayers::takes_whole_rows(const ops::Matmul& layer) const noexcept {
  return takes_rounded_rows(layer) && ops::filled_columns(layer.b.type, layer.a.shape[1]) == layer.a.shape[1];
}

bool LinearLayers::takes_rounded_blocks(const ops::Matmul& layer) const noexcept {
  return takes_whole_rows(layer) && layer.b.type != ElementType::int8_row;
}

bool LinearLayers::needs_rounded_rows(const ops::Matmul& layer) const noexcept {
  return takes_rounded_rows(layer) && layer.a.shape[0] > ops::kFewRows;
}

ops::QuantizedRows LinearLayers::room_for(const ops::Matmul& layer, std::uint64_t half) const {
  const std::int64_t rows = layer.a.shape[0];
  const std::int64_t columns = ops::filled_columns(layer.b.type, layer.a.shape[1]);
  if (bytes_for(rows, columns) > room_.bytes()) {
    throw Error(fmt::format("there is no room for {} rows of {} columns as int8", rows, columns));
  }
  auto* const base = static_cast<std::byte*>(room_.data()) + half * (room_.bytes() / 2);
  ops::QuantizedRows rounded;
  rounded.values = TensorView(base, ElementType::int8, {rows, columns});
  rounded.scales = TensorView(base + aligned(bytes_of(rounded.values)), ElementType::float32,
                              {ops::scale_rows(layer.b.type, layer.a.shape[1]), rows});
  return rounded;
}

void LinearLayers::run_rounded(const ops::Matmul& layer, const ops::QuantizedRows& rows) {
  executor_->run(ops::QuantizedMatmul{.a = rows,
                                      .b = layer.b,
                                      .c = layer.c,
                                      .bias = layer.bias,
                                      .residual = layer.residual,
                                      .epilogue = layer.epilogue});
}

void LinearLayers::run(const ops::Matmul& layer) {
  if (!needs_rounded_rows(layer)) {
    executor_->run(layer);
    return;
  }
  run_rounded(layer, round(layer));
}

ops::QuantizedRows LinearLayers::round(const ops::Matmul& layer) {
  const ops::QuantizedRows rounded = room_for(layer, 0);
  executor_->run(ops::Quantize{.x = layer.a, .y = rounded, .for_weight = layer.b.type});
  return rounded;
}

bool LinearLayers::takes_same_rows(const ops::Matmul& a, const ops::Matmul& b) {
  const std::int64_t columns = a.a.shape[1];
  return is_packed_format(a.b.type) && is_packed_format(b.b.type) &&
         ops::filled_columns(a.b.type, columns) == ops::filled_columns(b.b.type, columns) &&
         ops::scale_rows(a.b.type, columns) == ops::scale_rows(b.b.type, columns);
}

void LinearLayers::run_gated(const ops::Rmsnorm& norm, const ops::Matmul& gate_up, const ops::Matmul& down) {
  if (!takes_whole_rows(gate_up) || !takes_rounded_blocks(down)) {
    run_normed(norm, gate_up);
    run(down);
    return;
  }
  const ops::QuantizedRows gated = next_rows_for(down);
  const ops::QuantizedRows input = round_normed(norm, gate_up);
  executor_->run(
      ops::QuantizedMatmul{.a = input, .b = gate_up.b, .rounded = gated, .epilogue = ops::Epilogue::swiglu_int8});
  run_rounded(down, gated);
}

}  // namespace pascaline
