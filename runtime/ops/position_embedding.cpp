#include "runtime/ops/position_embedding.hpp"

#include <algorithm>
#include <limits>

namespace pascaline::ops {

bool PositionEmbedding::check() const {
  const Checks check(kName);
  const std::int64_t most = std::max(grid_h, grid_w);
  check.require(grid_h >= 0 && grid_w >= 0 && most <= kMaxExtent, "grid_h and grid_w must be from 0 to 2^30");
  const Extent patches{"GRID_H*GRID_W", grid_h * grid_w};
  const Extent width{"WIDTH", x.shape[1]};
  const Extent side{"SIDE", table.shape[0]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {patches, width});
  check.dense({"table", &table}, {ElementType::float32}, {side, side, width});
  check.dense({"y", &y}, {x.type}, {patches, width});
  if (is_empty(y)) {
    return false;
  }
  check.at_least_one(side);
  check.at_least_one({"merge", merge});
  check.require(grid_h % merge == 0 && grid_w % merge == 0,
                "grid_h and grid_w must be multiples of merge: an image is whole blocks of patches");
  check.require(std::max(most, side.value) <= std::numeric_limits<std::int32_t>::max() / side.value,
                "max(GRID_H, GRID_W, SIDE) * SIDE is above 2^31-1; places in the table are counted in 32 bits");
  return true;
}

KernelProblem PositionEmbedding::problem() const {
  return {"position_embedding",
          {{"GRID_H", grid_h}, {"GRID_W", grid_w}, {"WIDTH", x.shape[1]}, {"SIDE", table.shape[0]}, {"MERGE", merge}},
          {{"STORAGE", x.type}}};
}

}  // namespace pascaline::ops
