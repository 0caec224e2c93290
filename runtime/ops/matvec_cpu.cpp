#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/matmul_epilogue.hpp"

namespace pascaline::ops {
namespace {

// Bytes of the weight that a thread takes at a time: long against the taking, short against a layer.
constexpr std::int64_t kSliceBytes = std::int64_t{64} * 1024;

// Even, for swiglu, and whole blocks of the inner loop.
std::int64_t rows_of_slice(const TensorView& weight) {
  constexpr std::int64_t kBlock = 8;
  const std::int64_t row_bytes = weight.shape[1] * static_cast<std::int64_t>(size_of(weight.type));
  return std::max<std::int64_t>(kSliceBytes / std::max<std::int64_t>(row_bytes, 1) / kBlock * kBlock, kBlock);
}

}  // namespace

void multiply_few_rows(const Matmul& given) {
  const std::int64_t m = given.a.shape[0];
  const std::int64_t k = given.a.shape[1];
  const float* a = cpu::floats_at(given.a, 0, m * k, cpu::scratch(cpu::Scratch::shared, m * k));
  const cpu::Rows<float> vectors{a, k, m, k};
  const std::int64_t step = rows_of_slice(given.b);
  worker_pool().run(given.b.shape[0], step, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += step) {
      const std::int64_t count = std::min(step, end - first);
      float* sums = cpu::scratch(cpu::Scratch::first, m * count);
      if (given.b.type == ElementType::float16x) {
        const auto* const codes = static_cast<const cpu::Code16x*>(cpu::element_at(given.b, first * k));
        cpu::vector_kernels().float16x.dot({codes, k, count, k, {float16x_header(given.b.data)}}, vectors,
                                           {sums, count});
      } else {
        cpu::with_elements(given.b, first * k, [&](const auto* rows, const auto& kernels) {
          kernels.dot({rows, k, count, k}, vectors, {sums, count});
        });
      }
      for (std::int64_t i = 0; i < m; ++i) {
        finish_sums(given, {i, first, count}, sums + i * count);
      }
    }
  });
}

}  // namespace pascaline::ops
