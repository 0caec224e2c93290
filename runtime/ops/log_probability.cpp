#include "runtime/ops/log_probability.hpp"

#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"

namespace pascaline::ops {

bool LogProbability::check() const {
  const Checks check(kName);
  const Extent rows{"ROWS", x.shape[0]};
  const Extent width{"WIDTH", x.shape[1]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {rows, width});
  check.dense({"targets", &targets}, {ElementType::int32}, {rows});
  check.dense({"y", &y}, {ElementType::float32}, {rows});
  if (is_empty(y)) {
    return false;
  }
  check.at_least_one(width);
  return true;
}

KernelProblem LogProbability::problem() const {
  return {"log_probability", {{"ROWS", x.shape[0]}, {"WIDTH", x.shape[1]}}, {{"STORAGE", x.type}}};
}

void LogProbability::compute() const {
  constexpr std::int64_t kElementsOfAThread = 16'384;
  const std::int64_t width = x.shape[1];
  const auto* const columns = static_cast<const std::int32_t*>(targets.data);
  auto* const out = static_cast<float*>(y.data);
  worker_pool().run(
      x.shape[0], std::max<std::int64_t>(1, kElementsOfAThread / width), [&](std::int64_t begin, std::int64_t end) {
        float* const values = cpu::scratch(cpu::Scratch::first, width);
        for (std::int64_t row = begin; row < end; ++row) {
          if (columns[row] < 0 || columns[row] >= width) {
            out[row] = 0;
            continue;
          }
          cpu::widen_to(x, row * width, width, values);
          const float target = values[columns[row]];
          const float most = cpu::vector_kernels().maximum(values, width);
          out[row] = static_cast<float>(target - most - std::log(cpu::vector_kernels().exp_sum(values, width, most)));
        }
      });
}

}  // namespace pascaline::ops
