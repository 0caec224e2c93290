#pragma once

#include <cstdint>

#include "runtime/ops/tensor.hpp"

namespace pascaline::cpu {

/// Rounds a row of `width` floats into row `row` of `values` [rows, columns], int8, and column `row` of `scales`
/// [columns / 32, rows], or [1, rows] where `by_row`: as operations on a device have them. Uses Scratch::fifth.
void store_rounded(const float* from, std::int64_t width, const TensorView& values, const TensorView& scales,
                   std::int64_t row, bool by_row);
/// The same of all rows of a matrix, in all threads. Uses Scratch::first, too.
void round_matrix(const TensorView& from, const TensorView& values, const TensorView& scales, bool by_row);

}  // namespace pascaline::cpu
