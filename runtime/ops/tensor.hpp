#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/error.hpp"
#include "core/problem.hpp"

namespace pascaline {

/// A dense row-major tensor in device memory that somebody else owns. Copies are cheap and allocate nothing.
struct TensorView {
  static constexpr int kMaxRank = 4;

  TensorView() = default;
  /// Throws Error for a rank above kMaxRank.
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

  void* data = nullptr;  ///< device address; may be null if an extent is 0
  ElementType type = ElementType::float32;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};  ///< elements, outermost first
};

}  // namespace pascaline
