#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/transpose.hpp"

namespace pascaline::ops {
namespace {

// Elements that are worth another thread.
constexpr std::int64_t kTransposeSlice = 16'384;

// Side of the squares that are transposed one by one: rows of both matrices stay in the first cache.
constexpr std::int64_t kSquare = 32;

// Rows `begin` to `end` of y, elements of any type of that size.
template <typename Element>
void transpose_rows(const TensorView& x, const TensorView& y, std::int64_t begin, std::int64_t end) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t columns = x.shape[1];
  const auto* from = static_cast<const Element*>(x.data);
  auto* to = static_cast<Element*>(y.data);
  for (std::int64_t left = 0; left < rows; left += kSquare) {
    const std::int64_t right = std::min(left + kSquare, rows);
    for (std::int64_t column = begin; column < end; ++column) {
      for (std::int64_t row = left; row < right; ++row) {
        to[column * rows + row] = from[row * columns + column];
      }
    }
  }
}

}  // namespace

void Transpose::compute() const {
  const std::int64_t squares = std::max<std::int64_t>(1, kTransposeSlice / kSquare / x.shape[0]);
  worker_pool().run(x.shape[1], squares * kSquare, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kSquare) {
      const std::int64_t last = std::min(first + kSquare, end);
      if (x.type == ElementType::float32) {
        transpose_rows<float>(x, y, first, last);
      } else {
        transpose_rows<cpu::Half>(x, y, first, last);
      }
    }
  });
}

}  // namespace pascaline::ops
