// y = x + the learned grid table[SIDE·SIDE, WIDTH], stretched to GRID_H x GRID_W patches with bilinear interpolation
// whose corners coincide: patch row i lies at i · (SIDE - 1) / (GRID_H - 1) of the table, columns likewise; a grid of
// one row lies at 0. x and y [GRID_H·GRID_W, WIDTH] of STORAGE, the table float32, float32 arithmetic.
//
// Patches come in MERGE x MERGE blocks: blocks in raster order, and the patches of a block in raster order.
// FLOPs: about 8 an element. Bytes: x and y once, the table at most once.
// Requires: pointers aligned to 16 bytes; GRID_H and GRID_W multiples of MERGE; y overlaps nothing else.
// Launch: grid (ceil(GRID_H·GRID_W / ROWS_PER_BLOCK), ceil(WIDTH / (THREADS_PER_ROW · VECTOR · UNROLL))), block
// ROWS_PER_BLOCK · THREADS_PER_ROW.

#include "common/row.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = kThreadsPerRow * kVector;  // columns a row's threads take at a time

static_assert(kThreads <= 1024, "threads of a block");
static_assert(kVector >= 1 && kUnroll >= 1 && kBlockSide >= 1, "counts");

// Where a patch lies between two rows (or columns) of the table.
struct Between {
  int near;
  int far;
  float to_far;  // 0: on near
};

// In integers, so that patches that lie on a row of the table are found on it.
__device__ __forceinline__ Between between(int patch, int patches, int side) {
  const int steps = patches > 1 ? patches - 1 : 1;
  const int near = patch * (side - 1) / steps;
  const int rest = patch * (side - 1) - near * steps;
  return {near, min(near + 1, side - 1), __fdividef(static_cast<float>(rest), static_cast<float>(steps))};
}

// Row and column of the patch that comes at that place.
__device__ __forceinline__ void locate(int patch, int grid_w, int& row, int& column) {
  const int block = patch / (kBlockSide * kBlockSide);
  const int inside = patch % (kBlockSide * kBlockSide);
  const int blocks_per_row = grid_w / kBlockSide;
  row = block / blocks_per_row * kBlockSide + inside / kBlockSide;
  column = block % blocks_per_row * kBlockSide + inside % kBlockSide;
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    position_embedding(const STORAGE* __restrict__ x, const float* __restrict__ table, STORAGE* __restrict__ y,
                       int grid_h, int grid_w, int width, int side) {
  const int patch = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int first =
      static_cast<int>(blockIdx.y) * (kStep * kUnroll) + static_cast<int>(threadIdx.x) % kThreadsPerRow * kVector;
  if (patch >= grid_h * grid_w) {
    return;
  }
  int row;
  int column;
  locate(patch, grid_w, row, column);
  const Between down = between(row, grid_h, side);
  const Between right = between(column, grid_w, side);
  const float* corner[4] = {table + static_cast<long long>(down.near * side + right.near) * width,
                            table + static_cast<long long>(down.near * side + right.far) * width,
                            table + static_cast<long long>(down.far * side + right.near) * width,
                            table + static_cast<long long>(down.far * side + right.far) * width};
  const float share[4] = {(1.0f - down.to_far) * (1.0f - right.to_far), (1.0f - down.to_far) * right.to_far,
                          down.to_far * (1.0f - right.to_far), down.to_far * right.to_far};

  const long long offset = static_cast<long long>(patch) * width;
  float value[kUnroll][kVector];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    load_floats<kRowsAligned>(value[u], x + offset, first + u * kStep, width);
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      float learned[kVector];
      load_floats<kRowsAligned>(learned, corner[c], first + u * kStep, width);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        value[u][v] += share[c] * learned[v];
      }
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    store_floats<kRowsAligned>(y + offset, first + u * kStep, width, value[u]);
  }
}

#else

// The same in float64, one thread an element.
// Launch: grid ceil(GRID_H·GRID_W·WIDTH / 256), block 256.
extern "C" __global__ void position_embedding_reference(const STORAGE* __restrict__ x, const float* __restrict__ table,
                                                        double* __restrict__ y, int grid_h, int grid_w, int width,
                                                        int side) {
  const long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= static_cast<long long>(grid_h) * grid_w * width) {
    return;
  }
  int row;
  int column;
  locate(static_cast<int>(i / width), grid_w, row, column);
  const double down = grid_h > 1 ? static_cast<double>(row) * (side - 1) / (grid_h - 1) : 0.0;
  const double right = grid_w > 1 ? static_cast<double>(column) * (side - 1) / (grid_w - 1) : 0.0;
  const int top = static_cast<int>(down);
  const int left = static_cast<int>(right);
  const int bottom = min(top + 1, side - 1);
  const int last = min(left + 1, side - 1);
  const auto learned = [&](int r, int c) {
    return static_cast<double>(table[(static_cast<long long>(r) * side + c) * width + i % width]);
  };
  const double upper = (1.0 - (right - left)) * learned(top, left) + (right - left) * learned(top, last);
  const double lower = (1.0 - (right - left)) * learned(bottom, left) + (right - left) * learned(bottom, last);
  y[i] = to_float(x[i]) + (1.0 - (down - top)) * upper + (down - top) * lower;
}

#endif
