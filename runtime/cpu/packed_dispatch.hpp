#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/cpu/packed_forms.hpp"
#include "runtime/cpu/packed_kernels.hpp"

namespace pascaline::cpu {

// From a matrix of some format to loops that are compiled for it, group by group of its rows.

/// Rows of activations that one pass over a group takes.
inline constexpr std::int64_t kMaxActivations = 16;

/// 32 rows of a packed matrix.
struct PackedGroup {
  const std::byte* data;
  const std::byte* tail;  ///< the rows' float32 scales, where the format has them

  [[nodiscard]] float row_scale(std::int64_t row) const noexcept;
};

/// The group with that row.
[[nodiscard]] PackedGroup packed_group(const TensorView& matrix, std::int64_t row);

/// Calls `use` with a value of the form's type.
template <typename Use>
void with_form(ElementType format, const Use& use) {
  with_packed_format(format, [&]<ElementType known> { use(PackedForm<known>()); });
}

/// PackedKernels::dot by `Dot<Form>::run(group, activations, sums)`, which gives `sums[j, row]` of all 32 rows for up
/// to kMaxActivations rows of activations.
template <template <typename> typename Dot>
void dot_matrix(const TensorView& matrix, std::int64_t first, std::int64_t count, const Int8Rows& activations,
                const FloatRows& sums) {
  with_form(matrix.type, [&](auto form) {
    for (std::int64_t j = 0; j < activations.rows; j += kMaxActivations) {
      Int8Rows some = activations.at(j);
      some.rows = std::min(kMaxActivations, activations.rows - j);
      for (std::int64_t i = 0; i < count; i += kPackedRows) {
        alignas(64) float group[kMaxActivations * kPackedRows];
        Dot<decltype(form)>::run(packed_group(matrix, first + i), some, group);
        for (std::int64_t r = 0; r < some.rows; ++r) {
          std::copy_n(group + r * kPackedRows, std::min(kPackedRows, count - i), sums.data + (j + r) * sums.stride + i);
        }
      }
    }
  });
}

/// PackedKernels::widen by `Widen<Form>::run(chunk, row, width, row_scale, to)`, of `width` columns of one chunk.
template <template <typename> typename Widen>
void widen_matrix_part(const TensorView& matrix, const PackedPart& part, const FloatRows& to) {
  with_form(matrix.type, [&](auto form) {
    using Form = decltype(form);
    constexpr std::int64_t kColumns = Form::kBlocks * kBlock;
    std::int64_t done = 0;
    while (done < part.count) {
      const PackedGroup group = packed_group(matrix, part.first + done);
      const std::int64_t row = (part.first + done) % kPackedRows;
      const std::int64_t rows = std::min(kPackedRows - row, part.count - done);
      for (std::int64_t at = 0; at < part.width; at += kColumns) {
        const std::byte* chunk = group.data + (part.column + at) / kColumns * Form::kChunkBytes;
        for (std::int64_t i = 0; i < rows; ++i) {
          Widen<Form>::run(chunk, row + i, std::min(kColumns, part.width - at), group.row_scale(row + i),
                           to.data + (done + i) * to.stride + at);
        }
      }
      done += rows;
    }
  });
}

}  // namespace pascaline::cpu
