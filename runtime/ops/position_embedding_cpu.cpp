#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/position_embedding.hpp"

namespace pascaline::ops {
namespace {

// Elements that are worth another thread.
constexpr std::int64_t kPatchSlice = 16'384;

/// Where a patch lies between two rows (or columns) of the learned grid.
struct Between {
  std::int64_t near;
  std::int64_t far;
  float to_far;  ///< 0: on near
};

Between between(std::int64_t patch, std::int64_t patches, std::int64_t side) {
  if (patches == 1) {
    return {0, std::min<std::int64_t>(1, side - 1), 0};
  }
  const std::int64_t scaled = patch * (side - 1);
  const std::int64_t near = scaled / (patches - 1);
  const std::int64_t rest = scaled % (patches - 1);
  return {near, std::min(near + 1, side - 1),
          static_cast<float>(static_cast<double>(rest) / static_cast<double>(patches - 1))};
}

void embed_patch(const PositionEmbedding& given, std::int64_t patch) {
  const std::int64_t width = given.x.shape[1];
  const std::int64_t side = given.table.shape[0];
  const std::int64_t merge = given.merge;
  const std::int64_t block = patch / (merge * merge);
  const std::int64_t across = given.grid_w / merge;
  const Between down = between(block / across * merge + patch / merge % merge, given.grid_h, side);
  const Between right = between(block % across * merge + patch % merge, given.grid_w, side);
  const auto learned = [&](std::int64_t row, std::int64_t column) {
    return static_cast<const float*>(given.table.data) + (row * side + column) * width;
  };
  const float* corners[] = {learned(down.near, right.near), learned(down.near, right.far),
                            learned(down.far, right.near), learned(down.far, right.far)};
  const float* x = cpu::floats_at(given.x, patch * width, width, cpu::scratch(cpu::Scratch::first, width));
  float* y = cpu::scratch(cpu::Scratch::second, width);
  for (std::int64_t i = 0; i < width; ++i) {
    const float upper = corners[0][i] + right.to_far * (corners[1][i] - corners[0][i]);
    const float lower = corners[2][i] + right.to_far * (corners[3][i] - corners[2][i]);
    y[i] = x[i] + (upper + down.to_far * (lower - upper));
  }
  cpu::store_floats(y, given.y, patch * width, width);
}

}  // namespace

void PositionEmbedding::compute() const {
  worker_pool().run(x.shape[0], std::max<std::int64_t>(1, kPatchSlice / x.shape[1]),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t patch = begin; patch < end; ++patch) {
                        embed_patch(*this, patch);
                      }
                    });
}

}  // namespace pascaline::ops
