#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {
namespace {

// Where a patch lies between two rows (or columns) of the learned grid.
struct Between {
  std::size_t near;
  std::size_t far;
  double to_far;  ///< 0: on near
};

Between between(std::size_t patch, std::size_t patches, std::size_t side) {
  const double at = patches > 1 ? static_cast<double>(patch * (side - 1)) / static_cast<double>(patches - 1) : 0.0;
  const auto near = static_cast<std::size_t>(at);
  return {near, std::min(near + 1, side - 1), at - std::floor(at)};
}

}  // namespace

// `x` plus a learned square grid, stretched to GRID_H x GRID_W patches in blocks of MERGE x MERGE; dimensions GRID_H,
// GRID_W, WIDTH, SIDE, MERGE.
void reference_position_embedding(const Problem& problem, std::span<const std::vector<double>> inputs,
                                  std::span<std::vector<double>> outputs) {
  const auto dimension = [&](const char* name) { return static_cast<std::size_t>(problem.dimension(name)); };
  const std::size_t grid_h = dimension("GRID_H");
  const std::size_t grid_w = dimension("GRID_W");
  const std::size_t width = dimension("WIDTH");
  const std::size_t side = dimension("SIDE");
  const std::size_t merge = dimension("MERGE");
  worker_pool().run(grid_h * grid_w, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t patch = begin; patch < end; ++patch) {
      const std::size_t block = patch / (merge * merge);
      const std::size_t row = block / (grid_w / merge) * merge + patch / merge % merge;
      const std::size_t column = block % (grid_w / merge) * merge + patch % merge;
      const Between down = between(row, grid_h, side);
      const Between right = between(column, grid_w, side);
      const auto learned = [&](std::size_t r, std::size_t c, std::size_t i) {
        return inputs[1][(r * side + c) * width + i];
      };
      for (std::size_t i = 0; i < width; ++i) {
        const double upper =
            std::lerp(learned(down.near, right.near, i), learned(down.near, right.far, i), right.to_far);
        const double lower = std::lerp(learned(down.far, right.near, i), learned(down.far, right.far, i), right.to_far);
        outputs[0][patch * width + i] = inputs[0][patch * width + i] + std::lerp(upper, lower, down.to_far);
      }
    }
  });
}

}  // namespace pascaline
