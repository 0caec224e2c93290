#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/error.hpp"
#include "core/problem.hpp"

namespace pascaline {

/// A row-major tensor in device memory that somebody else owns; dense, or with its rows (what the first extent counts)
/// farther apart than they are long. Copies are cheap and allocate nothing. A default one stands for an operand that is
/// not there.
struct TensorView {
  static constexpr int kMaxRank = 4;

  TensorView() = default;
  /// A dense tensor. Throws Error for a rank above kMaxRank.
  TensorView(void* address, ElementType element, std::initializer_list<std::int64_t> extents)
      : data(address), type(element), rank(static_cast<int>(extents.size())) {
    if (extents.size() > static_cast<std::size_t>(kMaxRank)) {
      throw Error("a tensor view has at most 4 dimensions");
    }
    std::size_t i = 0;
    for (const std::int64_t extent : extents) {
      shape[i++] = extent;
    }
  }

  /// The same with `elements` from the beginning of one row to that of the next.
  [[nodiscard]] TensorView with_row_stride(std::int64_t elements) const noexcept {
    TensorView view = *this;
    view.row_stride = elements;
    return view;
  }

  void* data = nullptr;  ///< device address; may be null if an extent is 0
  ElementType type = ElementType::float32;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};  ///< elements, outermost first
  std::int64_t row_stride = 0;                 ///< elements from row to row; 0: a row's length
};

}  // namespace pascaline
