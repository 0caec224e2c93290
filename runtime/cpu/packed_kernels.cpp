#include "runtime/cpu/packed_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "runtime/cpu/packed_dispatch.hpp"
#include "runtime/cpu/packed_forms.hpp"
#include "runtime/formats/int8_activations.hpp"

namespace pascaline::cpu {
namespace {

void round_plain_blocks(const float* from, std::int64_t width, const Int8Rows& to) {
  for (std::int64_t block = 0; block < to.columns / kBlock; ++block) {
    const std::int64_t first = std::min(block * kBlock, width);
    const std::int64_t count = std::min(width - first, kBlock);
    const std::span<const float> part(from + first, static_cast<std::size_t>(count));
    std::int8_t* values = to.values + block * kBlock;
    const Int8Scale scale = int8_scale(part);
    round_to_int8(part, scale.inverse, values);
    std::fill(values + count, values + kBlock, std::int8_t{0});
    std::array<std::int32_t, 2> halves{};
    for (std::int64_t i = 0; i < kBlock; ++i) {
      halves[static_cast<std::size_t>(i / 16)] += values[i];
    }
    to.halves[2 * block] = static_cast<std::int16_t>(halves[0]);
    to.halves[2 * block + 1] = static_cast<std::int16_t>(halves[1]);
    to.scales[block] = scale.scale;
    to.sums[block] = scale.scale * static_cast<float>(halves[0] + halves[1]);
  }
}

void round_plain_rows(const float* from, std::int64_t width, const Int8Rows& to) {
  for (std::int64_t row = 0; row < to.rows; ++row) {
    const Int8Rows alone = to.at(row);
    const float* floats = from + row * width;
    if (!to.by_row) {
      round_plain_blocks(floats, width, alone);
      continue;
    }
    const std::span<const float> all(floats, static_cast<std::size_t>(width));
    const Int8Scale scale = int8_scale(all);
    round_to_int8(all, scale.inverse, alone.values);
    std::fill(alone.values + width, alone.values + to.columns, std::int8_t{0});
    *alone.scales = scale.scale;
  }
}

void widen_plain_rounded(const Int8Rows& rows, std::int64_t width, float* to) {
  const std::int64_t run = rows.by_row ? width : kBlock;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const Int8Rows alone = rows.at(row);
    for (std::int64_t first = 0; first < width; first += run) {
      const float scale = alone.scales[first / run];
      for (std::int64_t i = first; i < std::min(first + run, width); ++i) {
        to[row * width + i] = scale * static_cast<float>(alone.values[i]);
      }
    }
  }
}

template <typename Form>
struct PlainDot {
  // A block's integers times those of the activations, with the integer factors.
  static std::int32_t block_sum(const std::int8_t* integers, const BlockScale& scale, const std::int8_t* with) {
    std::array<std::int32_t, 2> halves{};
    for (std::int64_t half = 0; half < 2; ++half) {
      std::int32_t sum = 0;
      for (std::int64_t i = 16 * half; i < 16 * half + 16; ++i) {
        sum += (integers[i] - scale.offset) * with[i];
      }
      halves[static_cast<std::size_t>(half)] = sum;
    }
    return scale.factors[0] * halves[0] + scale.factors[1] * halves[1];
  }

  static void run(const PackedGroup& group, const Int8Rows& activations, float* sums) {
    const std::int64_t blocks = activations.columns / kBlock;
    for (std::int64_t row = 0; row < kPackedRows; ++row) {
      std::array<float, kMaxActivations> floats{};
      std::array<std::int64_t, kMaxActivations> wholes{};
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::byte* chunk = group.data + block / Form::kBlocks * Form::kChunkBytes;
        alignas(16) std::int8_t integers[kBlock];
        Form::integers(chunk, row, block % Form::kBlocks, integers);
        const BlockScale scale = Form::scale(chunk, row, block % Form::kBlocks);
        for (std::int64_t j = 0; j < activations.rows; ++j) {
          const auto at = static_cast<std::size_t>(j);
          const std::int32_t sum =
              block_sum(integers, scale, activations.values + j * activations.columns + block * kBlock);
          if constexpr (Form::kByRow) {
            wholes[at] += sum;
          } else {
            floats[at] += static_cast<float>(sum) * scale.scale * activations.scales[j * blocks + block];
          }
          if constexpr (Form::kHasMin) {
            const std::int16_t* halves = activations.halves + 2 * (j * blocks + block);
            const std::int32_t sum_of_min = scale.min_factors[0] * halves[0] + scale.min_factors[1] * halves[1];
            floats[at] -= scale.min * (activations.scales[j * blocks + block] * static_cast<float>(sum_of_min));
          }
        }
      }
      for (std::int64_t j = 0; j < activations.rows; ++j) {
        const auto at = static_cast<std::size_t>(j);
        sums[j * kPackedRows + row] =
            Form::kByRow ? static_cast<float>(wholes[at]) * (activations.scales[j] * group.row_scale(row)) : floats[at];
      }
    }
  }
};

template <typename Form>
struct PlainWiden {
  static void run(const std::byte* chunk, std::int64_t row, std::int64_t width, float row_scale, float* to) {
    for (std::int64_t first = 0; first < width; first += kBlock) {
      std::int8_t integers[kBlock];
      Form::integers(chunk, row, first / kBlock, integers);
      const BlockScale scale = Form::scale(chunk, row, first / kBlock);
      const float scales[2] = {scale.scale * static_cast<float>(scale.factors[0]),
                               scale.scale * static_cast<float>(scale.factors[1])};
      for (std::int64_t i = 0; i < std::min(kBlock, width - first); ++i) {
        const float product = scales[i / 16] * static_cast<float>(integers[i] - scale.offset);
        const float min = scale.min * static_cast<float>(scale.min_factors[static_cast<std::size_t>(i / 16)]);
        to[first + i] = (product - min) * row_scale;
      }
    }
  }
};

constexpr PackedKernels kPortablePacked{"portable", round_plain_rows, widen_plain_rounded, dot_matrix<PlainDot>,
                                        widen_matrix_part<PlainWiden>};

}  // namespace

Int8Rows Int8Rows::at(std::int64_t row) const noexcept {
  const std::int64_t blocks = columns / kBlock;
  const std::int64_t first = by_row ? 0 : row * blocks;
  return {values + row * columns,
          scales + (by_row ? row : first),
          by_row ? nullptr : sums + first,
          by_row ? nullptr : halves + 2 * first,
          1,
          columns,
          by_row};
}

float PackedGroup::row_scale(std::int64_t row) const noexcept {
  float scale = 1;
  if (tail != nullptr) {
    std::memcpy(&scale, tail + row * static_cast<std::int64_t>(sizeof scale), sizeof scale);
  }
  return scale;
}

PackedGroup packed_group(const TensorView& matrix, std::int64_t row) {
  const MatrixLayout layout = layout_of(matrix.type);
  const std::int64_t bytes = layout.group_bytes(matrix.shape[1]);
  const std::byte* group = static_cast<const std::byte*>(matrix.data) + row / kPackedRows * bytes;
  return {group, layout.tail_bytes > 0 ? group + bytes - layout.tail_bytes : nullptr};
}

const PackedKernels& portable_packed_kernels() noexcept { return kPortablePacked; }

const PackedKernels& packed_kernels() noexcept {
  static const PackedKernels* const best = avx2_packed_kernels();
  return best != nullptr ? *best : kPortablePacked;
}

}  // namespace pascaline::cpu
