#pragma once

#include <cstdint>

#include "runtime/ops/norm_epsilon.hpp"
#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// `y = s / √(mean(s²) + epsilon) · weight` for each row, with s = x, or s = x + residual where there is one, which
/// then receives s. All dense, aligned to 16 bytes. Without rows or columns there is nothing to do.
struct Rmsnorm {
  static constexpr const char* kName = "rmsnorm";

  TensorView x;       ///< [ROWS, WIDTH], float32 or float16
  TensorView weight;  ///< [WIDTH], float32
  TensorView y;       ///< [ROWS, WIDTH], float32, float16 or int8; with a residual no wider than x; overlaps nothing
  TensorView residual = {};  ///< [ROWS, WIDTH] of x's type, or left out; overlaps nothing
  /// With y in int8, and WIDTH a multiple of 32: float32 [WIDTH / 32, ROWS], or [1, ROWS] with `by_row`.
  TensorView scales = {};
  bool by_row = false;  ///< y in int8 has a scale for each row; else for each 32 columns
  NormEpsilon epsilon = {};

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("weight", self.weight, Use::read);
    visit("y", self.y, Use::write);
    visit("scales", self.scales, Use::write);
    visit("residual", self.residual, Use::change);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// What `Rmsnorm` multiplies a row by, beside its weight; on the processor.
[[nodiscard]] float rmsnorm_factor(const float* row, std::int64_t width, NormEpsilon epsilon);

/// `y = (s − mean) / √(variance + 1e-6) · weight + bias` for each row, with the biased variance and s as in `Rmsnorm`.
struct Layernorm {
  static constexpr const char* kName = "layernorm";

  TensorView x;              ///< [ROWS, WIDTH], float32 or float16
  TensorView weight;         ///< [WIDTH], float32
  TensorView bias;           ///< [WIDTH], float32
  TensorView y;              ///< as for rmsnorm
  TensorView residual = {};  ///< as for rmsnorm
  TensorView scales = {};    ///< as for rmsnorm
  bool by_row = false;       ///< as for rmsnorm

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("weight", self.weight, Use::read);
    visit("bias", self.bias, Use::read);
    visit("y", self.y, Use::write);
    visit("scales", self.scales, Use::write);
    visit("residual", self.residual, Use::change);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// How a product normalises rows of what it reads; the kernels' dimension NORM.
enum class RowNorm : std::uint8_t {
  rms = 1,    ///< as Rmsnorm
  layer = 2,  ///< as Layernorm
};

/// What a NormalisingMatmul needs to know of its rows: for each `1 / √(mean(x²) + epsilon)`, or with RowNorm::layer
/// `1 / √(variance + epsilon)` and, after those of all rows, the mean. Dense, aligned to 16 bytes. Without rows or
/// columns there is nothing to do.
struct RowStatistics {
  static constexpr const char* kName = "row_statistics";

  TensorView x;           ///< [ROWS, WIDTH], float32 or float16
  TensorView statistics;  ///< [1, ROWS], with RowNorm::layer [2, ROWS]; float32
  RowNorm norm = RowNorm::rms;
  NormEpsilon epsilon = {};

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("statistics", self.statistics, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// `y = exp(x − max) / Σ exp(x − max)` for each row. Without rows or columns there is nothing to do.
struct Softmax {
  static constexpr const char* kName = "softmax";

  TensorView x;  ///< [ROWS, WIDTH], float32 or float16
  TensorView y;  ///< [ROWS, WIDTH] of x's type; overlaps nothing

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
