#include "runtime/cpu/rounding.hpp"

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/packed_kernels.hpp"
#include "runtime/formats/int8_activations.hpp"

namespace pascaline::cpu {

void store_rounded(const float* from, std::int64_t width, const TensorView& values, const TensorView& scales,
                   std::int64_t row, bool by_row) {
  const std::int64_t columns = values.shape[1];
  const std::int64_t blocks = columns / kActivationBlock;
  float* room = scratch(Scratch::fifth, 3 * blocks);
  packed_kernels().round_rows(from, width,
                              {static_cast<std::int8_t*>(values.data) + row * columns, room, room + blocks,
                               reinterpret_cast<std::int16_t*>(room + 2 * blocks), 1, columns, by_row});
  for (std::int64_t block = 0; block < scales.shape[0]; ++block) {
    static_cast<float*>(scales.data)[block * values.shape[0] + row] = room[block];
  }
}

void round_matrix(const TensorView& from, const TensorView& values, const TensorView& scales, bool by_row) {
  constexpr std::int64_t kRowsAtOnce = 8;
  const std::int64_t width = from.shape[1];
  worker_pool().run(from.shape[0], kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* floats = floats_at(from, row * width, width, scratch(Scratch::first, width));
      store_rounded(floats, width, values, scales, row, by_row);
    }
  });
}

}  // namespace pascaline::cpu
