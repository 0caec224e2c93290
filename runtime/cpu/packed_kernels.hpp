#pragma once

#include <cstdint>

#include "runtime/cpu/vector_kernels.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::cpu {

// Loops over weights that are packed in a format of matrices (core/problem.hpp, docs/formats.md).

/// Rows of activations as int8, as such weights are multiplied with.
struct Int8Rows {
  std::int8_t* values;  ///< [rows, columns], zeros behind what the activations have
  float* scales;        ///< [rows, columns / 32], or [rows] where `by_row`
  float* sums;          ///< [rows, columns / 32]: a scale times the sum of its integers; not where `by_row`
  std::int64_t rows;
  std::int64_t columns;  ///< filled up to whole chunks of the format
  bool by_row;           ///< a row has one scale
};

/// Rounds `rows` rows of `width` floats each; `values` and the others are where the result lies.
void round_rows(const float* from, std::int64_t width, const Int8Rows& to);
/// The values that the integers stand for, `width` of each row, row by row.
void widen_rounded(const Int8Rows& rows, std::int64_t width, float* to);

/// Rounds a row of `width` floats into row `row` of `values` [rows, columns] and column `row` of `scales` [columns / 32,
/// rows], or [1, rows] where `by_row`: as operations on a device have them.
void store_rounded(const float* from, std::int64_t width, const TensorView& values, const TensorView& scales,
                   std::int64_t row, bool by_row);
/// The same of all rows of a matrix, in all threads.
void round_matrix(const TensorView& from, const TensorView& values, const TensorView& scales, bool by_row);

/// `sums.data[j · sums.stride + i]` = the product of row `first + i` of the matrix with row j of the activations, for `count`
/// rows; `first` is a multiple of 32.
void dot_packed(const TensorView& matrix, std::int64_t first, std::int64_t count, const Int8Rows& activations,
                const FloatRows& sums);

/// `width` columns from `column` on, a multiple of 256, of `count` rows as float32, `stride` apart.
void widen_packed(const TensorView& matrix, std::int64_t first, std::int64_t count, std::int64_t column,
                  std::int64_t width, float* to, std::int64_t stride);

}  // namespace pascaline::cpu
