#pragma once

#include <cstdint>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// `y[COLUMNS, ROWS] = x[ROWS, COLUMNS]ᵀ`, both float32 or both float16, dense and aligned to 16 bytes; y overlaps
/// nothing. Does not wait; without elements there is nothing to do. Throws Error for what does not fit, and whatever
/// `launch` throws.
void transpose(Dispatcher& dispatcher, const TensorView& x, const TensorView& y);

/// `y[TOKENS, WIDTH]` (float32 or float16): row indices[t] (int32) of `table[VOCABULARY, WIDTH]` (float32, float16 or
/// bfloat16); zeros for an index that is no row. y overlaps nothing. Does not wait; without tokens or columns there is
/// nothing to do, a table without rows is an error. Throws as `transpose`.
void gather(Dispatcher& dispatcher, const TensorView& table, const TensorView& indices, const TensorView& y);

/// `y = x + a learned square grid`, stretched to GRID_H × GRID_W patches by bilinear interpolation with coinciding
/// corners. Patches come in MERGE × MERGE blocks, which divide the grid. All dense, aligned to 16 bytes.
struct PositionEmbeddingArguments {
  TensorView x;      ///< [GRID_H · GRID_W, WIDTH], float32 or float16
  TensorView table;  ///< [SIDE, SIDE, WIDTH], float32
  TensorView y;      ///< as x, of its type; overlaps nothing
  std::int64_t grid_h = 0;
  std::int64_t grid_w = 0;
  std::int64_t merge = 2;
};

/// Launches it; does not wait. Without patches or columns there is nothing to do. Throws as `transpose`, also where
/// max(GRID_H, GRID_W, SIDE) · SIDE is above 2^31-1.
void position_embedding(Dispatcher& dispatcher, const PositionEmbeddingArguments& arguments);

}  // namespace pascaline::ops
