#include <algorithm>
#include <cmath>

#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/ops.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/ops/checked.hpp"

namespace pascaline::cpu {
namespace {

constexpr double kEpsilon = 1e-6;

// Elements that are worth another thread.
constexpr std::int64_t kNormSlice = 16'384;

// Calls `row(i)` for each row of a matrix.
template <typename Row>
void for_rows(const TensorView& matrix, const Row& row) {
  worker_pool().run(matrix.shape[0], std::max<std::int64_t>(1, kNormSlice / matrix.shape[1]),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        row(i);
                      }
                    });
}

// The row of x, or of x + residual, which then is the residual's.
const float* summed_row(const TensorView& x, const TensorView& residual, std::int64_t row) {
  const std::int64_t width = x.shape[1];
  float* room = scratch(Scratch::first, width);
  const float* values = floats_at(x, row * width, width, room);
  if (!ops::is_given(residual)) {
    return values;
  }
  const float* others = floats_at(residual, row * width, width, scratch(Scratch::second, width));
  for (std::int64_t i = 0; i < width; ++i) {
    room[i] = values[i] + others[i];
  }
  store_floats(room, residual, row * width, width);
  return room;
}

}  // namespace

void rmsnorm(const ops::RmsnormArguments& given) {
  if (!ops::checked_rmsnorm(given)) {
    return;
  }
  const std::int64_t width = given.x.shape[1];
  const auto* weight = static_cast<const float*>(given.weight.data);
  for_rows(given.x, [&](std::int64_t row) {
    const float* values = summed_row(given.x, given.residual, row);
    const double squares = vector_kernels().squares(values, width, 0);
    const auto factor = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(width) + kEpsilon));
    float* out = scratch(Scratch::third, width);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = values[i] * factor * weight[i];
    }
    store_floats(out, given.y, row * width, width);
  });
}

void layernorm(const ops::LayernormArguments& given) {
  if (!ops::checked_layernorm(given)) {
    return;
  }
  const std::int64_t width = given.x.shape[1];
  const auto* weight = static_cast<const float*>(given.weight.data);
  const auto* bias = static_cast<const float*>(given.bias.data);
  for_rows(given.x, [&](std::int64_t row) {
    const float* values = summed_row(given.x, given.residual, row);
    const double mean = vector_kernels().sum(values, width) / static_cast<double>(width);
    const double variance = vector_kernels().squares(values, width, mean) / static_cast<double>(width);
    const double factor = 1.0 / std::sqrt(variance + kEpsilon);
    float* out = scratch(Scratch::third, width);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = static_cast<float>((values[i] - mean) * factor) * weight[i] + bias[i];
    }
    store_floats(out, given.y, row * width, width);
  });
}

void softmax(const TensorView& x, const TensorView& y) {
  if (!ops::checked_softmax(x, y)) {
    return;
  }
  const std::int64_t width = x.shape[1];
  for_rows(x, [&](std::int64_t row) {
    float* out = scratch(Scratch::first, width);
    widen_to(x, row * width, width, out);
    const double sum = vector_kernels().exp_sum(out, width, vector_kernels().maximum(out, width));
    const auto factor = static_cast<float>(1.0 / sum);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] *= factor;
    }
    store_floats(out, y, row * width, width);
  });
}

}  // namespace pascaline::cpu
