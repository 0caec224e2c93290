#include <algorithm>

#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/packed_kernels.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/matmul_epilogue.hpp"

namespace pascaline::ops {
namespace {

// Bytes of the weight that a thread takes at a time: long against the taking, short against a layer.
constexpr std::int64_t kSliceBytes = std::int64_t{64} * 1024;

// Whole groups of a format, even, for swiglu, and whole blocks of the inner loop.
std::int64_t rows_of_slice(const TensorView& weight) {
  const std::int64_t row_bytes = weight.shape[1] * static_cast<std::int64_t>(bits_of(weight.type)) / 8;
  const std::int64_t rows = is_matrix_format(weight.type) ? 32 : 8;
  return std::max<std::int64_t>(kSliceBytes / std::max<std::int64_t>(row_bytes, 1) / rows * rows, rows);
}

// Rows of activations rounded for a weight, in memory of this thread that others may read, too.
cpu::Int8Rows rounded_rows(const float* a, std::int64_t m, std::int64_t k, ElementType weight) {
  const std::int64_t columns = filled_columns(weight, k);
  const std::int64_t blocks = m * columns / kActivationBlock;
  float* room = cpu::scratch(cpu::Scratch::shared_too, m * columns / 4 + 3 * blocks);
  cpu::Int8Rows rows;
  rows.scales = room;
  rows.sums = room + blocks;
  rows.halves = reinterpret_cast<std::int16_t*>(room + 2 * blocks);
  rows.values = reinterpret_cast<std::int8_t*>(room + 3 * blocks);
  rows.rows = m;
  rows.columns = columns;
  rows.by_row = weight == ElementType::int8_row;
  cpu::packed_kernels().round_rows(a, k, rows);
  return rows;
}

const float* floats_of_rows(const TensorView& a, std::int64_t first, std::int64_t count) {
  const std::int64_t k = a.shape[1];
  return cpu::floats_at(a, first * k, count * k, cpu::scratch(cpu::Scratch::shared, count * k));
}

// Calls `dot_rows(first, count, sums)` for all rows of the weight, and finishes what it gives.
template <typename DotRows>
void multiply_slices(const Matmul& given, const DotRows& dot_rows) {
  const std::int64_t m = given.a.shape[0];
  const std::int64_t step = rows_of_slice(given.b);
  cpu::worker_pool().run(given.b.shape[0], step, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += step) {
      const std::int64_t count = std::min(step, end - first);
      float* sums = cpu::scratch(cpu::Scratch::first, m * count);
      dot_rows(first, count, cpu::FloatRows{sums, count});
      for (std::int64_t i = 0; i < m; ++i) {
        finish_sums(given, {i, first, count}, sums + i * count);
      }
    }
  });
}

}  // namespace

void round_activations(const Matmul& given, float* to) {
  constexpr std::int64_t kRowsAtOnce = 4;
  const std::int64_t k = given.a.shape[1];
  cpu::worker_pool().run(given.a.shape[0], kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; row += kRowsAtOnce) {
      const std::int64_t count = std::min(kRowsAtOnce, end - row);
      const cpu::Int8Rows rows = rounded_rows(floats_of_rows(given.a, row, count), count, k, given.b.type);
      cpu::packed_kernels().widen_rounded(rows, k, to + row * k);
    }
  });
}

void multiply_few_rows(const Matmul& given) {
  const std::int64_t m = given.a.shape[0];
  const std::int64_t k = given.a.shape[1];
  const float* a = floats_of_rows(given.a, 0, m);
  if (is_matrix_format(given.b.type)) {
    const cpu::Int8Rows activations = rounded_rows(a, m, k, given.b.type);
    multiply_slices(given, [&](std::int64_t first, std::int64_t count, const cpu::FloatRows& sums) {
      cpu::packed_kernels().dot(given.b, first, count, activations, sums);
    });
    return;
  }
  const cpu::Rows<float> vectors{a, k, m, k};
  multiply_slices(given, [&](std::int64_t first, std::int64_t count, const cpu::FloatRows& sums) {
    cpu::with_elements(given.b, first * k, [&](const auto* rows, const auto& kernels) {
      kernels.dot({rows, k, count, k}, vectors, sums);
    });
  });
}

}  // namespace pascaline::ops
