#include "runtime/cpu/packed_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/formats/packed_block.hpp"
#include "runtime/formats/packed_matrix.hpp"

namespace pascaline::cpu {
namespace {

// Where a row of a packed matrix lies.
struct PackedRow {
  const std::byte* group;
  std::int64_t index;  // in the group
};

PackedRow packed_row(const TensorView& matrix, std::int64_t row) {
  const MatrixLayout layout = layout_of(matrix.type);
  return {static_cast<const std::byte*>(matrix.data) +
              row / layout.group_rows * layout.group_bytes(matrix.shape[1]),
          row % layout.group_rows};
}

float dot_of_row(const TensorView& matrix, const PackedRow& row, const Int8Rows& activations, std::int64_t j) {
  const std::int8_t* values = activations.values + j * activations.columns;
  const std::int64_t blocks = activations.columns / kActivationBlock;
  float sum = 0;
  std::int64_t whole = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const PackedBlock block = read_packed_block(matrix.type, row.group, row.index, b);
    const std::int8_t* with = values + b * kActivationBlock;
    std::int32_t parts[2] = {0, 0};
    for (int i = 0; i < kActivationBlock; ++i) {
      parts[i / 16] += block.values[static_cast<std::size_t>(i)] * with[i];
    }
    if (activations.by_row) {
      whole += parts[0] + parts[1];
      continue;
    }
    const float product =
        static_cast<float>(parts[0]) * block.scales[0] + static_cast<float>(parts[1]) * block.scales[1];
    sum += product * activations.scales[j * blocks + b];
    sum -= block.min * activations.sums[j * blocks + b];
  }
  return activations.by_row ? static_cast<float>(whole) * (activations.scales[j] *
                                                           packed_row_scale(matrix.type, row.group, matrix.shape[1],
                                                                            row.index))
                            : sum;
}

}  // namespace

void round_rows(const float* from, std::int64_t width, const Int8Rows& to) {
  const std::int64_t block = to.by_row ? to.columns : kActivationBlock;
  const std::int64_t blocks = to.columns / kActivationBlock;
  for (std::int64_t row = 0; row < to.rows; ++row) {
    std::int8_t* values = to.values + row * to.columns;
    for (std::int64_t first = 0; first < to.columns; first += block) {
      const std::int64_t count = std::clamp<std::int64_t>(width - first, 0, block);
      const std::span<const float> part(from + row * width + std::min(first, width), static_cast<std::size_t>(count));
      const Int8Scale scale = int8_scale(part);
      round_to_int8(part, scale.inverse, values + first);
      std::fill(values + first + count, values + first + block, std::int8_t{0});
      if (to.by_row) {
        to.scales[row] = scale.scale;
        continue;
      }
      std::int32_t sum = 0;
      for (std::int64_t i = first; i < first + count; ++i) {
        sum += values[i];
      }
      const std::int64_t at = row * blocks + first / kActivationBlock;
      to.scales[at] = scale.scale;
      to.sums[at] = scale.scale * static_cast<float>(sum);
    }
  }
}

void widen_rounded(const Int8Rows& rows, std::int64_t width, float* to) {
  const std::int64_t blocks = rows.columns / kActivationBlock;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (std::int64_t i = 0; i < width; ++i) {
      const float scale = rows.scales[rows.by_row ? row : row * blocks + i / kActivationBlock];
      to[row * width + i] = scale * static_cast<float>(rows.values[row * rows.columns + i]);
    }
  }
}

void store_rounded(const float* from, std::int64_t width, const TensorView& values, const TensorView& scales,
                   std::int64_t row, bool by_row) {
  const std::int64_t columns = values.shape[1];
  const std::int64_t blocks = columns / kActivationBlock;
  float* room = scratch(Scratch::fifth, 2 * blocks);
  round_rows(from, width,
             {static_cast<std::int8_t*>(values.data) + row * columns, room, room + blocks, 1, columns, by_row});
  for (std::int64_t block = 0; block < scales.shape[0]; ++block) {
    static_cast<float*>(scales.data)[block * values.shape[0] + row] = room[block];
  }
}

void round_matrix(const TensorView& from, const TensorView& values, const TensorView& scales, bool by_row) {
  constexpr std::int64_t kRowsAtOnce = 8;
  const std::int64_t width = from.shape[1];
  worker_pool().run(from.shape[0], kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* floats = floats_at(from, row * width, width, scratch(Scratch::first, width));
      store_rounded(floats, width, values, scales, row, by_row);
    }
  });
}

void dot_packed(const TensorView& matrix, std::int64_t first, std::int64_t count, const Int8Rows& activations,
                const FloatRows& sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    const PackedRow row = packed_row(matrix, first + i);
    for (std::int64_t j = 0; j < activations.rows; ++j) {
      sums.data[j * sums.stride + i] = dot_of_row(matrix, row, activations, j);
    }
  }
}

void widen_packed(const TensorView& matrix, std::int64_t first, std::int64_t count, std::int64_t column,
                  std::int64_t width, float* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const PackedRow row = packed_row(matrix, first + i);
    const float scale = packed_row_scale(matrix.type, row.group, matrix.shape[1], row.index);
    for (std::int64_t at = 0; at < width; at += kActivationBlock) {
      const PackedBlock block =
          read_packed_block(matrix.type, row.group, row.index, (column + at) / kActivationBlock);
      const std::int64_t part = std::min<std::int64_t>(kActivationBlock, width - at);
      for (std::int64_t v = 0; v < part; ++v) {
        const float product = block.scales[v / 16] * static_cast<float>(block.values[static_cast<std::size_t>(v)]);
        to[i * stride + at + v] = (product - block.min) * scale;
      }
    }
  }
}

}  // namespace pascaline::cpu
