#pragma once

#include <cstdint>

#include "runtime/ops/operation.hpp"

namespace pascaline::ops {

/// `y = x + a learned square grid`, stretched to GRID_H × GRID_W patches by bilinear interpolation with coinciding
/// corners. Patches come in MERGE × MERGE blocks, which divide the grid. All dense, aligned to 16 bytes. Without
/// patches or columns there is nothing to do. max(GRID_H, GRID_W, SIDE) · SIDE above 2^31-1 is an error.
struct PositionEmbedding {
  static constexpr const char* kName = "position_embedding";

  TensorView x;      ///< [GRID_H · GRID_W, WIDTH], float32 or float16
  TensorView table;  ///< [SIDE, SIDE, WIDTH], float32
  TensorView y;      ///< as x, of its type; overlaps nothing
  std::int64_t grid_h = 0;
  std::int64_t grid_w = 0;
  std::int64_t merge = 2;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("x", self.x, Use::read);
    visit("table", self.table, Use::read);
    visit("y", self.y, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
