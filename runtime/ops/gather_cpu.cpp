#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/gather.hpp"

namespace pascaline::ops {
namespace {

// Elements that are worth another thread.
constexpr std::int64_t kGatherSlice = 16'384;

}  // namespace

void Gather::compute() const {
  const std::int64_t width = table.shape[1];
  worker_pool().run(y.shape[0], std::max<std::int64_t>(1, kGatherSlice / width),
                    [&](std::int64_t begin, std::int64_t end) {
                      float* room = cpu::scratch(cpu::Scratch::first, width);
                      for (std::int64_t token = begin; token < end; ++token) {
                        const std::int64_t row = static_cast<const std::int32_t*>(indices.data)[token];
                        if (row >= 0 && row < table.shape[0]) {
                          cpu::store_floats(cpu::row_floats(table, row, room), y, token * width, width);
                        } else {
                          std::fill_n(room, width, 0.0F);
                          cpu::store_floats(room, y, token * width, width);
                        }
                      }
                    });
}

}  // namespace pascaline::ops
