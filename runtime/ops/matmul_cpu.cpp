#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/blas.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/matmul_epilogue.hpp"

namespace pascaline::ops {
namespace {

// A panel of a weight that is widened: with the panel of activations and the sums it stays in a core's own cache.
constexpr std::int64_t kPanelDepth = 512;

/// A part of c that one thread computes.
struct Tile {
  std::int64_t rows;
  std::int64_t columns;
};

std::int64_t tiles_along(std::int64_t extent, std::int64_t tile) { return (extent + tile - 1) / tile; }

// Of the shape alone, so that the number of threads does not change a result. Columns stay even, for swiglu.
Tile tile_of(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t kLargest = 256;
  constexpr std::int64_t kSmallest = 64;
  constexpr std::int64_t kEnough = 32;  // tiles, for threads to share
  Tile tile{kLargest, kLargest};
  const auto count = [&] { return tiles_along(m, tile.rows) * tiles_along(n, tile.columns); };
  while (count() < kEnough && tile.columns > kSmallest) {
    tile.columns /= 2;
  }
  while (count() < kEnough && tile.rows > kSmallest) {
    tile.rows /= 2;
  }
  return {std::min(tile.rows, m), std::min(tile.columns, n)};
}

/// Rows of one operand at some depth, as float32.
struct Panel {
  const float* data;
  std::int64_t stride;
};

Panel panel_of(const TensorView& of, std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth,
               cpu::Scratch region) {
  const std::int64_t stride = of.shape[1];
  if (of.type == ElementType::float32) {
    return {static_cast<const float*>(of.data) + row * stride + k, stride};
  }
  float* room = cpu::scratch(region, rows * depth);
  for (std::int64_t i = 0; i < rows; ++i) {
    cpu::widen_to(of, (row + i) * stride + k, depth, room + i * depth);
  }
  return {room, depth};
}

void compute_tile(const cpu::Blas& blas, const Matmul& given, std::int64_t row, std::int64_t column, const Tile& tile) {
  const std::int64_t k = given.a.shape[1];
  const bool widens = given.a.type != ElementType::float32 || given.b.type != ElementType::float32;
  const std::int64_t step = widens ? std::min(kPanelDepth, k) : k;
  float* sums = cpu::scratch(cpu::Scratch::first, tile.rows * tile.columns);
  for (std::int64_t at = 0; at < k; at += step) {
    const std::int64_t depth = std::min(step, k - at);
    const Panel a = panel_of(given.a, row, tile.rows, at, depth, cpu::Scratch::second);
    const Panel b = panel_of(given.b, column, tile.columns, at, depth, cpu::Scratch::third);
    cpu::Product product;
    product.m = tile.rows;
    product.n = tile.columns;
    product.k = depth;
    product.a = a.data;
    product.a_stride = a.stride;
    product.b = b.data;
    product.b_stride = b.stride;
    product.c = sums;
    product.c_stride = tile.columns;
    product.keep = at > 0 ? 1.0F : 0.0F;
    blas.multiply_transposed(product);
  }
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    finish_sums(given, {row + i, column, tile.columns}, sums + i * tile.columns);
  }
}

void multiply_many_rows(const Matmul& given) {
  const std::int64_t m = given.a.shape[0];
  const std::int64_t n = given.b.shape[0];
  const cpu::Blas& blas = cpu::Blas::get();
  const Tile tile = tile_of(m, n);
  const std::int64_t down = tiles_along(m, tile.rows);
  // Neighbours share a panel of the weight.
  worker_pool().run(down * tiles_along(n, tile.columns), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % down * tile.rows;
      const std::int64_t column = i / down * tile.columns;
      compute_tile(blas, given, row, column, {std::min(tile.rows, m - row), std::min(tile.columns, n - column)});
    }
  });
}

}  // namespace

void Matmul::compute() const {
  if (is_packed_format(b.type)) {
    multiply_packed(*this);
  } else if (a.shape[0] <= kFewRows) {
    multiply_few_rows(*this);
  } else {
    multiply_many_rows(*this);
  }
}

}  // namespace pascaline::ops
