#include <algorithm>
#include <cmath>

#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/ops.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/ops/checked.hpp"

namespace pascaline::cpu {
namespace {

// Elements that are worth another thread.
constexpr std::int64_t kLayoutSlice = 16'384;

// Side of the squares that are transposed one by one: rows of both matrices stay in the first cache.
constexpr std::int64_t kSquare = 32;

std::int64_t slice_of(std::int64_t elements) { return std::max<std::int64_t>(1, kLayoutSlice / elements); }

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

/// Where a patch lies between two rows (or columns) of the learned grid.
struct Between {
  std::int64_t near;
  std::int64_t far;
  float to_far;  ///< 0: on near
};

Between between(std::int64_t patch, std::int64_t patches, std::int64_t side) {
  if (patches == 1) {
    return {0, std::min<std::int64_t>(1, side - 1), 0};
  }
  const std::int64_t scaled = patch * (side - 1);
  const std::int64_t near = scaled / (patches - 1);
  const std::int64_t rest = scaled % (patches - 1);
  return {near, std::min(near + 1, side - 1),
          static_cast<float>(static_cast<double>(rest) / static_cast<double>(patches - 1))};
}

void embed_patch(const ops::PositionEmbeddingArguments& given, std::int64_t patch) {
  const std::int64_t width = given.x.shape[1];
  const std::int64_t side = given.table.shape[0];
  const std::int64_t merge = given.merge;
  const std::int64_t block = patch / (merge * merge);
  const std::int64_t across = given.grid_w / merge;
  const Between down = between(block / across * merge + patch / merge % merge, given.grid_h, side);
  const Between right = between(block % across * merge + patch % merge, given.grid_w, side);
  const auto learned = [&](std::int64_t row, std::int64_t column) {
    return static_cast<const float*>(given.table.data) + (row * side + column) * width;
  };
  const float* corners[] = {learned(down.near, right.near), learned(down.near, right.far),
                            learned(down.far, right.near), learned(down.far, right.far)};
  const float* x = floats_at(given.x, patch * width, width, scratch(Scratch::first, width));
  float* y = scratch(Scratch::second, width);
  for (std::int64_t i = 0; i < width; ++i) {
    const float upper = corners[0][i] + right.to_far * (corners[1][i] - corners[0][i]);
    const float lower = corners[2][i] + right.to_far * (corners[3][i] - corners[2][i]);
    y[i] = x[i] + (upper + down.to_far * (lower - upper));
  }
  store_floats(y, given.y, patch * width, width);
}

}  // namespace

void transpose(const TensorView& x, const TensorView& y) {
  if (!ops::checked_transpose(x, y)) {
    return;
  }
  const std::int64_t squares = std::max<std::int64_t>(1, kLayoutSlice / kSquare / x.shape[0]);
  worker_pool().run(x.shape[1], squares * kSquare, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kSquare) {
      const std::int64_t last = std::min(first + kSquare, end);
      if (x.type == ElementType::float32) {
        transpose_rows<float>(x, y, first, last);
      } else {
        transpose_rows<Half>(x, y, first, last);
      }
    }
  });
}

void gather(const TensorView& table, const TensorView& indices, const TensorView& y) {
  if (!ops::checked_gather(table, indices, y)) {
    return;
  }
  const std::int64_t width = table.shape[1];
  worker_pool().run(y.shape[0], slice_of(width), [&](std::int64_t begin, std::int64_t end) {
    float* room = scratch(Scratch::first, width);
    for (std::int64_t token = begin; token < end; ++token) {
      const std::int64_t row = static_cast<const std::int32_t*>(indices.data)[token];
      if (row >= 0 && row < table.shape[0]) {
        store_floats(floats_at(table, row * width, width, room), y, token * width, width);
      } else {
        std::fill_n(room, width, 0.0F);
        store_floats(room, y, token * width, width);
      }
    }
  });
}

void position_embedding(const ops::PositionEmbeddingArguments& given) {
  if (!ops::checked_position_embedding(given)) {
    return;
  }
  const std::int64_t width = given.x.shape[1];
  worker_pool().run(given.x.shape[0], slice_of(width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t patch = begin; patch < end; ++patch) {
      embed_patch(given, patch);
    }
  });
}

}  // namespace pascaline::cpu
