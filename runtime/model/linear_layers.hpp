#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/checkpoint/model_config.hpp"
#include "runtime/model/executor.hpp"
#include "runtime/model/fusion.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline {

/// Runs the linear layers of a model. Those with a weight in a packed format take activations as int8: on a device,
/// rows are rounded into memory that it holds for that, by the operation that they come from where that can. A decoding
/// step's others are rounded by the product itself.
class LinearLayers {
 public:
  /// `executor` must outlive it.
  explicit LinearLayers(Executor& executor, Fusion fusion = Fusion::automatic)
      : executor_(&executor), fuses_(fusion == Fusion::automatic && !executor.on_processor()) {}

  /// Whether operations that a kernel does in one launch are run so. The processor has nothing to launch.
  [[nodiscard]] bool fuses() const noexcept { return fuses_; }

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
  /// Memory for such rows, until the next layer runs. Throws Error without room for them.
  [[nodiscard]] ops::QuantizedRows rows_for(const ops::Matmul& layer) const { return room_for(layer, 0); }
  /// Runs the layer on rows that were rounded for it; its `a` is not read.
  void run_rounded(const ops::Matmul& layer, const ops::QuantizedRows& rows);
  /// Runs a normalisation and then the layer whose rows it gives. Where these are to be rounded, the normalisation does
  /// that at once, and what its y is then is anything.
  template <typename Norm>
  void run_normed(const Norm& norm, const ops::Matmul& layer) {
    if constexpr (std::is_same_v<Norm, ops::Rmsnorm>) {
      if (normalises(norm, layer)) {
        executor_->run(ops::NormedMatmul{.a = norm.x,
                                         .norm = norm.weight,
                                         .b = layer.b,
                                         .c = layer.c,
                                         .bias = layer.bias,
                                         .residual = layer.residual,
                                         .epilogue = layer.epilogue,
                                         .epsilon = norm.epsilon});
        return;
      }
    }
    if (!takes_whole_rows(layer)) {
      executor_->run(norm);
      run(layer);
      return;
    }
    run_rounded(layer, round_normed(norm, layer));
  }
  /// Runs a normalisation, a layer with the epilogue swiglu, and the layer whose rows that one gives; `gate_up.c` is
  /// anything afterwards.
  void run_gated(const ops::Rmsnorm& norm, const ops::Matmul& gate_up, const ops::Matmul& down);

 private:
  // Runs a normalisation that rounds its rows for the layer.
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
  // Whether the layer may be given rounded rows, whether these need no zeros behind them, and whether they have to be
  // rounded before.
  [[nodiscard]] bool takes_rounded_rows(const ops::Matmul& layer) const noexcept;
  [[nodiscard]] bool takes_whole_rows(const ops::Matmul& layer) const noexcept;
  [[nodiscard]] bool needs_rounded_rows(const ops::Matmul& layer) const noexcept;
  // Whether the layer's kernel does what the normalisation would. Every block of threads does that for itself, which
  // pays for a single row: that is no more than what it waits for its first weights.
  [[nodiscard]] bool normalises(const ops::Rmsnorm& norm, const ops::Matmul& layer) const noexcept;
  // Memory for the rounded rows of the layer, of the first or the second half of the room.
  [[nodiscard]] ops::QuantizedRows room_for(const ops::Matmul& layer, std::uint64_t half) const;

  Executor* executor_;
  bool fuses_;
  RawBuffer room_;
};

}  // namespace pascaline
