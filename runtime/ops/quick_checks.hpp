#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

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
  return row <= kMaxExtent && tensor.shape[0] * row < std::int64_t{1} << 56 &&
         std::find(types.begin(), types.end(), tensor.type) != types.end();
}

/// Whether its address surely is one, and aligned for any op.
[[nodiscard]] inline bool has_plain_address(const TensorView& tensor) noexcept {
  return tensor.data != nullptr && reinterpret_cast<std::uintptr_t>(tensor.data) % kAlignment == 0;
}

/// Where it surely ends; it was found dense or strided before, and not empty.
[[nodiscard]] inline std::uintptr_t plain_end(const TensorView& tensor) noexcept {
  std::int64_t elements = tensor.row_stride == 0 ? 1 : tensor.row_stride;
  for (int i = tensor.row_stride == 0 ? 1 : tensor.rank; i < tensor.rank; ++i) {
    elements *= tensor.shape[static_cast<std::size_t>(i)];
  }
  const bool is_half = tensor.type == ElementType::float16 || tensor.type == ElementType::bfloat16;
  const bool is_single = tensor.type == ElementType::float32 || tensor.type == ElementType::int32;
  const std::uintptr_t bytes = is_half ? 2 : is_single ? 4 : 8;
  return reinterpret_cast<std::uintptr_t>(tensor.data) +
         bytes * static_cast<std::uintptr_t>(elements) * static_cast<std::uintptr_t>(tensor.shape[0]);
}

/// Whether they surely share no byte. Both were found dense or strided before, or are not there.
[[nodiscard]] inline bool lie_plainly_apart(const TensorView& a, const TensorView& b) noexcept {
  if (a.data == nullptr || b.data == nullptr) {
    return true;
  }
  return a.data < b.data ? plain_end(a) <= reinterpret_cast<std::uintptr_t>(b.data)
                         : plain_end(b) <= reinterpret_cast<std::uintptr_t>(a.data);
}

}  // namespace pascaline::ops
