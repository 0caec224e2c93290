#pragma once

#include <cstdint>

#include "runtime/cpu/vector_kernels.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::cpu {

// Loops over weights that are packed in a format of matrices (core/problem.hpp, docs/formats.md).

/// Rows of activations as int8, as such weights are multiplied with.
struct Int8Rows {
  std::int8_t* values;   ///< [rows, columns], from -127 to 127; zeros after what the activations have
  float* scales;         ///< [rows, columns / 32], or [rows] where `by_row`
  float* sums;           ///< [rows, columns / 32]: a scale times the sum of its integers; not where `by_row`
  std::int16_t* halves;  ///< [rows, columns / 16]: sums of 16 integers; not where `by_row`
  std::int64_t rows;
  std::int64_t columns;  ///< filled up to whole chunks of the format
  bool by_row;           ///< a row has one scale

  /// Row `row` alone.
  [[nodiscard]] Int8Rows at(std::int64_t row) const noexcept;
};

/// `width` columns from `column` on, a multiple of 256, of `count` rows from `first` on.
struct PackedPart {
  std::int64_t first;
  std::int64_t count;
  std::int64_t column;
  std::int64_t width;
};

/// The loops, for one kind of processor. All give the same bits: sums of a block are exact integers, and scales are
/// multiplied in float32 in one order, block by block. Each result depends on its own row and activations only, not on
/// how many are asked for together.
struct PackedKernels {
  const char* name;
  /// Rounds `to.rows` rows of `width` floats each; `values` and the others are where the result lies.
  void (*round_rows)(const float* from, std::int64_t width, const Int8Rows& to);
  /// The values that the integers stand for, `width` of each row, row by row.
  void (*widen_rounded)(const Int8Rows& rows, std::int64_t width, float* to);
  /// `sums.data[j · sums.stride + i]` = the product of row `first + i` of the matrix with row j of the activations, for
  /// `count` rows; `first` is a multiple of 32. Up to 8 rows of activations read the weight once.
  void (*dot)(const TensorView& matrix, std::int64_t first, std::int64_t count, const Int8Rows& activations,
              const FloatRows& sums);
  /// A part of the matrix as float32.
  void (*widen)(const TensorView& matrix, const PackedPart& part, const FloatRows& to);
};

/// Plain C++, for every processor.
[[nodiscard]] const PackedKernels& portable_packed_kernels() noexcept;
/// With AVX2 and F16C; nothing where the processor has not both.
[[nodiscard]] const PackedKernels* avx2_packed_kernels() noexcept;
/// The best for this processor.
[[nodiscard]] const PackedKernels& packed_kernels() noexcept;

}  // namespace pascaline::cpu
