#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/checkpoint/model_config.hpp"
#include "model/executor.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline {

/// Runs the linear layers of a model. Those with a weight in a packed format take activations as int8: on a device,
/// rows are rounded into memory that it holds for that, by the operation that they come from where that can. A decoding
/// step's others are rounded by the product itself.
class LinearLayers {
 public:
  /// `executor` must outlive it.
  explicit LinearLayers(Executor& executor) : executor_(&executor) {}

  [[nodiscard]] Executor& executor() const noexcept { return *executor_; }

  /// Makes room for rounding passes of so many rows of so many columns; what it had before must be out of use if that
  /// is more. Throws OutOfMemoryError.
  void reserve(std::int64_t rows, std::int64_t columns);
  /// Bytes of that room.
  [[nodiscard]] static std::uint64_t bytes_for(std::int64_t rows, std::int64_t columns) noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return room_.bytes(); }
  /// The longest row that a linear layer of the decoder, or of the vision tower, takes.
  [[nodiscard]] static std::int64_t widest(const TextConfig& config) noexcept;
  [[nodiscard]] static std::int64_t widest(const VisionConfig& config) noexcept;

  /// Runs the layer; does not wait. Throws Error without room for its rows, and as Executor::run.
  void run(const ops::Matmul& layer);
  /// Whether the layer can be given rows that were rounded with a scale for each block of 32 columns, none behind those
  /// that they have. Of `layer` only the weight and the shape of `a` count.
  [[nodiscard]] bool takes_rounded_blocks(const ops::Matmul& layer) const noexcept;
  /// Whether it can be given rounded rows with whichever scales its format has, none behind those that they have.
  [[nodiscard]] bool takes_whole_rows(const ops::Matmul& layer) const noexcept;
  /// Memory for such rows, until the next layer runs. Throws Error without room for them.
  [[nodiscard]] ops::QuantizedRows rows_for(const ops::Matmul& layer) const { return room_for(layer, 0); }
  /// Other memory, for rows that a layer gives whose own are in that of `rows_for`.
  [[nodiscard]] ops::QuantizedRows next_rows_for(const ops::Matmul& layer) const { return room_for(layer, 1); }
  /// Runs the layer on rows that were rounded for it; its `a` is not read.
  void run_rounded(const ops::Matmul& layer, const ops::QuantizedRows& rows);
  /// Runs a normalisation and then the layer whose rows it gives. Where these are to be rounded, the normalisation does
  /// that at once, and what its y is then is anything.
  template <typename Norm>
  void run_normed(const Norm& norm, const ops::Matmul& layer) {
    if (!takes_whole_rows(layer)) {
      executor_->run(norm);
      run(layer);
      return;
    }
    run_rounded(layer, round_normed(norm, layer));
  }
  /// The same with several layers, all of the rows of `norm.y`. What they take is made once where they take the same.
  template <typename Norm>
  void run_normed(const Norm& norm, std::span<const ops::Matmul> layers) {
    if (layers.size() == 1) {
      run_normed(norm, layers.front());
      return;
    }
    bool is_normed = false;
    std::optional<RoundedFor> rounded;
    for (const ops::Matmul& layer : layers) {
      const bool is_rounded = takes_whole_rows(layer) || needs_rounded_rows(layer);
      if (is_rounded && rounded && takes_same_rows(layer, rounded->layer)) {
        run_rounded(layer, rounded->rows);
        continue;
      }
      if (takes_whole_rows(layer)) {
        rounded = {layer, round_normed(norm, layer)};
        run_rounded(layer, rounded->rows);
        continue;
      }
      if (!is_normed) {
        executor_->run(norm);
        is_normed = true;
      }
      if (is_rounded) {
        rounded = {layer, round(layer)};
        run_rounded(layer, rounded->rows);
      } else {
        executor_->run(layer);
      }
    }
  }
  /// Runs a normalisation, a layer with the epilogue swiglu, and the layer whose rows that one gives; `gate_up.c` is
  /// anything afterwards.
  void run_gated(const ops::Rmsnorm& norm, const ops::Matmul& gate_up, const ops::Matmul& down);

  /// Runs a normalisation that rounds its rows for a layer that takes whole ones.
  template <typename Norm>
  ops::QuantizedRows round_normed(const Norm& norm, const ops::Matmul& layer) {
    const ops::QuantizedRows rows = room_for(layer, 0);
    Norm rounding = norm;
    rounding.y = rows.values;
    rounding.scales = rows.scales;
    rounding.by_row = layer.b.type == ElementType::int8_row;
    executor_->run(rounding);
    return rows;
  }

 private:
  // Rows in the first half of the room, and the layer that they were made for.
  struct RoundedFor {
    ops::Matmul layer;
    ops::QuantizedRows rows;
  };
  // Whether both take rounded rows of the same columns and with the same scales.
  [[nodiscard]] static bool takes_same_rows(const ops::Matmul& a, const ops::Matmul& b);
  // Rounds the layer's rows.
  [[nodiscard]] ops::QuantizedRows round(const ops::Matmul& layer);
  // Whether the layer may be given rounded rows, and whether they have to be rounded before.
  [[nodiscard]] bool takes_rounded_rows(const ops::Matmul& layer) const noexcept;
  [[nodiscard]] bool needs_rounded_rows(const ops::Matmul& layer) const noexcept;
  // Memory for the rounded rows of the layer, of the first or the second half of the room.
  [[nodiscard]] ops::QuantizedRows room_for(const ops::Matmul& layer, std::uint64_t half) const;

  Executor* executor_;
  RawBuffer room_;
};

}  // namespace pascaline
