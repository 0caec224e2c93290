#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {

// Rotary embedding of query and key heads by row and column, in place, of pairs that are neighbours; dimensions
// PATCHES, HEADS, HEAD_DIM, POSITIONS, QKV_STRIDE.
void reference_rope_vision(const Problem& problem, std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs) {
  const auto dimension = [&](const char* name) { return static_cast<std::size_t>(problem.dimension(name)); };
  const std::size_t patches = dimension("PATCHES");
  const std::size_t heads = dimension("HEADS");
  const std::size_t head_dim = dimension("HEAD_DIM");
  const std::size_t stride = dimension("QKV_STRIDE");
  const auto last_position = static_cast<double>(dimension("POSITIONS") - 1);
  const std::size_t half = head_dim / 2;
  const std::size_t quarter = head_dim / 4;
  std::copy(inputs[0].begin(), inputs[0].end(), outputs[0].begin());
  worker_pool().run(patches, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t patch = begin; patch < end; ++patch) {
      for (std::size_t head = 0; head < 2 * heads; ++head) {
        double* x = outputs[0].data() + patch * stride + head * head_dim;
        for (std::size_t j = 0; j < half; ++j) {
          const double position = inputs[3][j < quarter ? patch : patches + patch];
          const auto row = static_cast<std::size_t>(std::clamp(position, 0.0, last_position));
          const double c = inputs[1][row * quarter + j % quarter];
          const double s = inputs[2][row * quarter + j % quarter];
          const double low = x[2 * j];
          const double high = x[2 * j + 1];
          x[2 * j] = low * c - high * s;
          x[2 * j + 1] = high * c + low * s;
        }
      }
    }
  });
}

}  // namespace pascaline
