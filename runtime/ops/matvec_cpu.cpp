#include <algorithm>

#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/formats/int8_rows.hpp"
#include "runtime/ops/matmul_epilogue.hpp"

namespace pascaline::ops {
namespace {

// Bytes of the weight that a thread takes at a time: long against the taking, short against a layer.
constexpr std::int64_t kSliceBytes = std::int64_t{64} * 1024;

// Even, for swiglu, and whole blocks of the inner loop.
std::int64_t rows_of_slice(const TensorView& weight) {
  const std::int64_t row_bytes = weight.shape[1] * static_cast<std::int64_t>(size_of(weight.type));
  return std::max<std::int64_t>(kSliceBytes / row_bytes / 8 * 8, 8);
}

// The sums of some rows of the weight.
void dot_rows(const WeightView& weight, std::int64_t first, std::int64_t count, const cpu::Rows<float>& vectors,
              const cpu::FloatRows& sums) {
  const std::int64_t k = weight.values.shape[1];
  if (weight.format != WeightFormat::int8_rows) {
    cpu::with_elements(weight.values, first * k, [&](const auto* rows, const auto& kernels) {
      kernels.dot({rows, k, count, k}, vectors, sums);
    });
    return;
  }
  float* rows = cpu::scratch(cpu::Scratch::second, count * k);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int8_t* values = static_cast<const std::int8_t*>(weight.values.data) + (first + i) * k;
    widen_int8(values, static_cast<const float*>(weight.scales.data)[first + i], rows + i * k, k);
  }
  cpu::vector_kernels().float32.dot({rows, k, count, k}, vectors, sums);
}

}  // namespace

void multiply_few_rows(const Matmul& given) {
  const std::int64_t m = given.a.shape[0];
  const TensorView& weight = given.b.values;
  const std::int64_t n = weight.shape[0];
  const std::int64_t k = given.a.shape[1];
  const float* a = cpu::floats_at(given.a, 0, m * k, cpu::scratch(cpu::Scratch::shared, m * k));
  const cpu::Rows<float> vectors{a, k, m, k};
  cpu::worker_pool().run(n, rows_of_slice(weight), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t step = rows_of_slice(weight);
    for (std::int64_t first = begin; first < end; first += step) {
      const std::int64_t count = std::min(step, end - first);
      float* sums = cpu::scratch(cpu::Scratch::first, m * count);
      dot_rows(given.b, first, count, vectors, {sums, count});
      for (std::int64_t i = 0; i < m; ++i) {
        finish_sums(given, {i, first, count}, sums + i * count);
      }
    }
  });
}

}  // namespace pascaline::ops
