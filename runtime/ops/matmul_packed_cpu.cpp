#include <algorithm>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/packed_kernels.hpp"
#include "runtime/cpu/rounding.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/matmul_epilogue.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline::ops {
namespace {

// Rows of activations that a thread rounds at a time.
constexpr std::int64_t kRoundedAtOnce = 4;

// Bytes of the weight, and of sums, that a thread takes at a time: they stay in a core's own cache for all activations.
constexpr std::int64_t kPackedSliceBytes = std::int64_t{64} * 1024;
constexpr std::int64_t kSumBytes = std::int64_t{512} * 1024;

// Whole groups of rows.
std::int64_t rows_of_packed_slice(const TensorView& weight, std::int64_t activations) {
  const MatrixLayout layout = layout_of(weight.type);
  const std::int64_t by_weight = kPackedSliceBytes / layout.group_bytes(weight.shape[1]);
  const std::int64_t by_sums = kSumBytes / (activations * layout.group_rows * std::int64_t{sizeof(float)});
  return std::max<std::int64_t>(std::min(by_weight, by_sums), 1) * layout.group_rows;
}

// Room for rows of activations in memory of this thread, which others may use, too; with or without their integers.
cpu::Int8Rows room_for(std::int64_t rows, ElementType weight, std::int64_t columns, bool with_values) {
  const std::int64_t blocks = rows * columns / kActivationBlock;
  float* room = cpu::scratch(cpu::Scratch::shared_too, 3 * blocks + (with_values ? rows * columns / 4 : 0));
  cpu::Int8Rows result{};
  result.scales = room;
  result.sums = room + blocks;
  result.halves = reinterpret_cast<std::int16_t*>(room + 2 * blocks);
  result.values = with_values ? reinterpret_cast<std::int8_t*>(room + 3 * blocks) : nullptr;
  result.rows = rows;
  result.columns = columns;
  result.by_row = weight == ElementType::int8_row;
  return result;
}

// Rounds a row of activations.
void round_row(const TensorView& a, std::int64_t row, const cpu::Int8Rows& to) {
  const std::int64_t width = a.shape[1];
  const float* floats = cpu::floats_at(a, row * width, width, cpu::scratch(cpu::Scratch::first, width));
  cpu::packed_kernels().round_rows(floats, width, to);
}

// The sums that products need of a row that was rounded before.
void add_up_row(const cpu::Int8Rows& row) {
  for (std::int64_t block = 0; block < row.columns / kActivationBlock; ++block) {
    std::int32_t halves[2] = {0, 0};
    for (std::int64_t i = 0; i < kActivationBlock; ++i) {
      halves[i / 16] += row.values[block * kActivationBlock + i];
    }
    row.halves[2 * block] = static_cast<std::int16_t>(halves[0]);
    row.halves[2 * block + 1] = static_cast<std::int16_t>(halves[1]);
    row.sums[block] = row.scales[block] * static_cast<float>(halves[0] + halves[1]);
  }
}

// Of `given`, a is not looked at.
void multiply_rounded(const Matmul& given, const cpu::Int8Rows& activations) {
  const std::int64_t m = activations.rows;
  const std::int64_t step = rows_of_packed_slice(given.b, m);
  worker_pool().run(given.b.shape[0], step, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += step) {
      const std::int64_t count = std::min(step, end - first);
      float* sums = cpu::scratch(cpu::Scratch::first, m * count);
      cpu::packed_kernels().dot(given.b, first, count, activations, {sums, count});
      for (std::int64_t i = 0; i < m; ++i) {
        finish_sums(given, {i, first, count}, sums + i * count);
      }
    }
  });
}

}  // namespace

void multiply_packed(const Matmul& given) {
  const std::int64_t columns = filled_columns(given.b.type, given.a.shape[1]);
  const cpu::Int8Rows rows = room_for(given.a.shape[0], given.b.type, columns, true);
  worker_pool().run(rows.rows, kRoundedAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      round_row(given.a, row, rows.at(row));
    }
  });
  multiply_rounded(given, rows);
}

void Quantize::compute() const { cpu::round_matrix(x, y.values, y.scales, for_weight == ElementType::int8_row); }

void QuantizedMatmul::compute() const {
  const std::int64_t m = a.values.shape[0];
  const std::int64_t blocks = a.scales.shape[0];
  const auto* const scales = static_cast<const float*>(a.scales.data);
  cpu::Int8Rows rows = room_for(m, b.type, a.values.shape[1], false);
  rows.values = static_cast<std::int8_t*>(a.values.data);
  worker_pool().run(m, kRoundedAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const cpu::Int8Rows alone = rows.at(row);
      for (std::int64_t block = 0; block < blocks; ++block) {
        alone.scales[block] = scales[block * m + row];
      }
      if (!alone.by_row) {
        add_up_row(alone);
      }
    }
  });
  const bool rounds = epilogue == Epilogue::swiglu_int8;
  std::vector<float> results(static_cast<std::size_t>(rounds ? m * (b.shape[0] / 2) : 0));
  const TensorView whole(results.data(), ElementType::float32, {m, b.shape[0] / 2});
  multiply_rounded({.a = {},
                    .b = b,
                    .c = rounds ? whole : c,
                    .bias = bias,
                    .residual = residual,
                    .epilogue = rounds ? Epilogue::swiglu : epilogue},
                   rows);
  if (rounds) {
    cpu::round_matrix(whole, rounded.values, rounded.scales, false);
  }
}

void NormedMatmul::compute() const {
  const std::int64_t m = a.shape[0];
  const std::int64_t k = a.shape[1];
  const auto* const weights = static_cast<const float*>(norm.data);
  std::vector<float> weighted(static_cast<std::size_t>(m * k));
  if (!is_packed_format(b.type)) {
    const TensorView normed(weighted.data(), ElementType::float32, {m, k});
    Rmsnorm{.x = a, .weight = norm, .y = normed, .epsilon = epsilon}.compute();
    Matmul{.a = normed, .b = b, .c = c, .bias = bias, .residual = residual, .epilogue = epilogue}.compute();
    return;
  }
  std::vector<std::int8_t> values(weighted.size());
  std::vector<float> scales(weighted.size() / kActivationBlock);
  const TensorView floats(weighted.data(), ElementType::float32, {m, k});
  const QuantizedRows rows{TensorView(values.data(), ElementType::int8, {m, k}),
                           TensorView(scales.data(), ElementType::float32, {k / kActivationBlock, m})};
  std::vector<float> factors;
  for (std::int64_t row = 0; row < m; ++row) {
    const float* const given = cpu::floats_at(a, row * k, k, cpu::scratch(cpu::Scratch::first, k));
    factors.push_back(rmsnorm_factor(given, k, epsilon));
    for (std::int64_t i = 0; i < k; ++i) {
      weighted[static_cast<std::size_t>(row * k + i)] = given[i] * weights[i];
    }
  }
  cpu::round_matrix(floats, rows.values, rows.scales, false);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scales[i] *= factors[i % factors.size()];
  }
  QuantizedMatmul{
      .a = rows, .b = b, .c = c, .rounded = rounded, .bias = bias, .residual = residual, .epilogue = epilogue}
      .compute();
}

}  // namespace pascaline::ops
