#include <algorithm>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/normalising_matmul.hpp"

namespace pascaline::ops {
namespace {

// Elements that are worth another thread.
constexpr std::int64_t kNormalisedSlice = 16'384;

// A row, or a quarter of one, as float32, normalised.
void normalise_row(const NormalisingMatmul& given, std::int64_t row, float* out) {
  const std::int64_t width = given.norm.shape[0];
  const std::int64_t rows = given.a.shape[0] * given.a.shape[1] / width;
  const auto* weights = static_cast<const float*>(given.norm.data);
  const auto* biases = static_cast<const float*>(given.norm_bias.data);
  const float* statistics = static_cast<const float*>(given.statistics.data) + row;
  const float mean = biases != nullptr ? statistics[rows] : 0.0F;
  const float* values = cpu::floats_at(given.a, row * width, width, cpu::scratch(cpu::Scratch::first, width));
  for (std::int64_t i = 0; i < width; ++i) {
    out[i] = (values[i] - mean) * statistics[0] * weights[i] + (biases != nullptr ? biases[i] : 0.0F);
  }
}

}  // namespace

void NormalisingMatmul::compute() const {
  const std::int64_t rows = a.shape[0];
  const std::int64_t width = a.shape[1];
  std::vector<float> normalised(static_cast<std::size_t>(rows * width));
  worker_pool().run(rows, std::max<std::int64_t>(1, kNormalisedSlice / width),
                    [&](std::int64_t begin, std::int64_t end) {
                      const std::int64_t parts = width / norm.shape[0];
                      for (std::int64_t part = begin * parts; part < end * parts; ++part) {
                        normalise_row(*this, part, normalised.data() + part * norm.shape[0]);
                      }
                    });
  Matmul{.a = TensorView(normalised.data(), ElementType::float32, {rows, width}),
         .b = b,
         .c = c,
         .bias = bias,
         .residual = residual,
         .epilogue = epilogue}
      .compute();
}

}  // namespace pascaline::ops
