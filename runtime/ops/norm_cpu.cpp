#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/rounding.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline::ops {
namespace {

constexpr double kLayernormEpsilon = 1e-6;

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
  float* room = cpu::scratch(cpu::Scratch::first, width);
  const float* values = cpu::floats_at(x, row * width, width, room);
  if (!is_given(residual)) {
    return values;
  }
  const float* others = cpu::floats_at(residual, row * width, width, cpu::scratch(cpu::Scratch::second, width));
  for (std::int64_t i = 0; i < width; ++i) {
    room[i] = values[i] + others[i];
  }
  cpu::store_floats(room, residual, row * width, width);
  return room;
}

// Stores a row of results, rounded to int8 where that is y's type.
template <typename Norm>
void store_row(const Norm& of, std::int64_t row, const float* values) {
  const std::int64_t width = of.y.shape[1];
  if (of.y.type != ElementType::int8) {
    cpu::store_floats(values, of.y, row * width, width);
    return;
  }
  cpu::store_rounded(values, width, of.y, of.scales, row, of.by_row);
}

}  // namespace

float rmsnorm_factor(const float* row, std::int64_t width, NormEpsilon epsilon) {
  const double squares = cpu::vector_kernels().squares(row, width, 0);
  return static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon.value()));
}

void Rmsnorm::compute() const {
  const std::int64_t width = x.shape[1];
  const auto* weights = static_cast<const float*>(weight.data);
  for_rows(x, [&](std::int64_t row) {
    const float* values = summed_row(x, residual, row);
    const float factor = rmsnorm_factor(values, width, epsilon);
    float* out = cpu::scratch(cpu::Scratch::third, width);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = values[i] * factor * weights[i];
    }
    store_row(*this, row, out);
  });
}

void Layernorm::compute() const {
  const std::int64_t width = x.shape[1];
  const auto* weights = static_cast<const float*>(weight.data);
  const auto* biases = static_cast<const float*>(bias.data);
  for_rows(x, [&](std::int64_t row) {
    const float* values = summed_row(x, residual, row);
    const double mean = cpu::vector_kernels().sum(values, width) / static_cast<double>(width);
    const double variance = cpu::vector_kernels().squares(values, width, mean) / static_cast<double>(width);
    const double factor = 1.0 / std::sqrt(variance + kLayernormEpsilon);
    float* out = cpu::scratch(cpu::Scratch::third, width);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = static_cast<float>((values[i] - mean) * factor) * weights[i] + biases[i];
    }
    store_row(*this, row, out);
  });
}

void RowStatistics::compute() const {
  const std::int64_t rows = x.shape[0];
  const std::int64_t width = x.shape[1];
  auto* const factors = static_cast<float*>(statistics.data);
  for_rows(x, [&](std::int64_t row) {
    const float* values = summed_row(x, {}, row);
    if (norm == RowNorm::rms) {
      factors[row] = rmsnorm_factor(values, width, epsilon);
      return;
    }
    const double mean = cpu::vector_kernels().sum(values, width) / static_cast<double>(width);
    const double variance = cpu::vector_kernels().squares(values, width, mean) / static_cast<double>(width);
    factors[row] = static_cast<float>(1.0 / std::sqrt(variance + epsilon.value()));
    factors[rows + row] = static_cast<float>(mean);
  });
}

void Softmax::compute() const {
  const std::int64_t width = x.shape[1];
  for_rows(x, [&](std::int64_t row) {
    float* out = cpu::scratch(cpu::Scratch::first, width);
    cpu::widen_to(x, row * width, width, out);
    const double sum = cpu::vector_kernels().exp_sum(out, width, cpu::vector_kernels().maximum(out, width));
    const auto factor = static_cast<float>(1.0 / sum);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] *= factor;
    }
    cpu::store_floats(out, y, row * width, width);
  });
}

}  // namespace pascaline::ops
