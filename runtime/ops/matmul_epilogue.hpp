#pragma once

#include <cstdint>

#include "runtime/ops/matmul.hpp"

namespace pascaline::ops {

/// Some neighbouring sums of one row of a product.
struct RowPart {
  std::int64_t row;
  std::int64_t first;  ///< column, even for swiglu
  std::int64_t count;  ///< even for swiglu
};

/// Finishes sums as the epilogue says and stores them into c. Overwrites `sums`; uses Scratch::fourth and fifth.
void finish_sums(const Matmul& given, const RowPart& part, float* sums);

/// The product for few rows of a, each row of b read once; b is of plain elements, and arguments have been checked.
void multiply_few_rows(const Matmul& given);

/// The product with b in a format of matrices, for any number of rows of a; arguments have been checked.
void multiply_packed(const Matmul& given);

}  // namespace pascaline::ops
