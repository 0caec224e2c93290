#include <algorithm>

#include "runtime/cpu/epilogue.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/worker_pool.hpp"

namespace pascaline::cpu {
namespace {

// Bytes of the weight that a thread takes at a time: long against the taking, short against a layer.
constexpr std::int64_t kSliceBytes = std::int64_t{64} * 1024;

// Even, for swiglu, and whole blocks of the inner loop.
std::int64_t rows_of_slice(const TensorView& weight) {
  const std::int64_t row_bytes = weight.shape[1] * static_cast<std::int64_t>(size_of(weight.type));
  return std::max<std::int64_t>(kSliceBytes / row_bytes / 8 * 8, 8);
}

}  // namespace

void multiply_few_rows(const ops::MatmulArguments& given) {
  const std::int64_t m = given.a.shape[0];
  const std::int64_t n = given.b.values.shape[0];
  const std::int64_t k = given.a.shape[1];
  const float* a = floats_at(given.a, 0, m * k, scratch(Scratch::shared, m * k));
  const Rows<float> vectors{a, k, m, k};
  worker_pool().run(n, rows_of_slice(given.b.values), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t step = rows_of_slice(given.b.values);
    for (std::int64_t first = begin; first < end; first += step) {
      const std::int64_t count = std::min(step, end - first);
      float* sums = scratch(Scratch::first, m * count);
      with_elements(given.b.values, first * k, [&](const auto* rows, const auto& kernels) {
        kernels.dot({rows, k, count, k}, vectors, {sums, count});
      });
      for (std::int64_t i = 0; i < m; ++i) {
        finish_sums(given, {i, first, count}, sums + i * count);
      }
    }
  });
}

}  // namespace pascaline::cpu
