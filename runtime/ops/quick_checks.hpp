#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "runtime/ops/operands.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// Largest extent, row and row stride in elements that an op takes: kernels step through rows in 32 bits.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 30;
/// Alignment of addresses in bytes, for whole vectors.
inline constexpr std::uintptr_t kAlignment = 16;

/// An extent that a tensor must have, under the name that messages give it.
struct Extent {
  const char* name;
  std::int64_t value;
};

// Tests that the arguments of nearly every call pass, a few instructions each. One that says no only means that the
// tensor has to be looked at in full.

/// Whether it surely is dense, of one of the types, of exactly these extents, and of fewer than 2^56 elements.
[[nodiscard]] inline bool is_plainly_dense(const TensorView& tensor, std::initializer_list<ElementType> types,
                                           std::initializer_list<Extent> extents) noexcept {
  if (tensor.row_stride != 0 || tensor.rank != static_cast<int>(extents.size())) {
    return false;
  }
  std::int64_t row = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t size = tensor.shape[i];
    if (size != extents.begin()[i].value || size < 1 || size > kMaxExtent || row > kMaxExtent) {
      return false;
    }
    row *= i == 0 ? 1 : size;
  }
  if (row > kMaxExtent || tensor.shape[0] * row >= std::int64_t{1} << 56) {
    return false;
  }
  for (const ElementType type : types) {
    if (tensor.type == type) {
      return true;
    }
  }
  return false;
}

/// Where a tensor surely ends that has an address; it was found dense or strided before, and not empty.
[[nodiscard]] inline std::uintptr_t plain_end(const TensorView& tensor) noexcept {
  std::int64_t elements = tensor.row_stride == 0 ? 1 : tensor.row_stride;
  for (int i = tensor.row_stride == 0 ? 1 : tensor.rank; i < tensor.rank; ++i) {
    elements *= tensor.shape[static_cast<std::size_t>(i)];
  }
  if (is_matrix_format(tensor.type)) {
    return reinterpret_cast<std::uintptr_t>(tensor.data) +
           static_cast<std::uintptr_t>(layout_of(tensor.type).bytes(tensor.shape[0], tensor.shape[1]));
  }
  const bool is_half = tensor.type == ElementType::float16 || tensor.type == ElementType::bfloat16;
  const bool is_single = tensor.type == ElementType::float32 || tensor.type == ElementType::int32;
  const std::uintptr_t bytes = is_half ? 2 : is_single ? 4 : tensor.type == ElementType::int8 ? 1 : 8;
  return reinterpret_cast<std::uintptr_t>(tensor.data) +
         bytes * static_cast<std::uintptr_t>(elements) * static_cast<std::uintptr_t>(tensor.shape[0]);
}

/// Whether all that are there surely have an address that is aligned for any op, and none that is written shares a byte
/// with another, unless that is read in place and is the same tensor. All were found dense or strided before.
[[nodiscard]] inline bool lie_plainly(std::span<const UsedOperand> operands) noexcept {
  struct Range {
    std::uintptr_t begin, end;
    ElementType type;
    Use use;
  };
  std::array<Range, Operands::kMax> ranges;  // the first `count`
  std::size_t count = 0;
  for (const UsedOperand& used : operands) {
    const TensorView& tensor = *used.operand.tensor;
    if (!is_given(tensor)) {
      continue;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
    if (begin == 0 || begin % kAlignment != 0) {
      return false;
    }
    const Range range{begin, plain_end(tensor), tensor.type, used.use};
    for (std::size_t i = 0; i < count; ++i) {
      const Range& other = ranges[i];
      const bool overlaps = range.begin < other.end && other.begin < range.end;
      if (overlaps && (is_written(range.use) || is_written(other.use))) {
        const bool in_place = range.use == Use::read_in_place || other.use == Use::read_in_place;
        if (!in_place || range.begin != other.begin || range.type != other.type) {
          return false;
        }
      }
    }
    ranges[count++] = range;
  }
  return true;
}

}  // namespace pascaline::ops
