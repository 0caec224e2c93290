// y[c, r] = x[r, c]: x[ROWS,COLUMNS] and y[COLUMNS,ROWS] row-major, float32 or float16.
//
// Bytes: 2·ROWS·COLUMNS·sizeof(STORAGE). Requires: pointers aligned to 16 bytes; ROWS, COLUMNS >= 1, of any value.
// Launch: grid ceil(COLUMNS / TILE) · ceil(ROWS / TILE), block BLOCK_THREADS.
//
// A block reads a tile of TILE x TILE by rows into shared memory and writes it by columns, so that both sides of global
// memory are contiguous. A word behind each shared row spreads a column over the banks.

#include "common/row.cuh"

namespace {

constexpr int kRow = kTile + kPadding * 4 / static_cast<int>(sizeof(STORAGE));  // elements of a row in shared memory
constexpr int kVectorsPerRow = kTile / kVector;
constexpr int kLoads = kTile * kVectorsPerRow / kBlockThreads;  // a thread

static_assert(kTile % kVector == 0, "a tile's row is whole vectors");
static_assert(kLoads * kBlockThreads == kTile * kVectorsPerRow, "threads share the tile evenly");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kBlockThreads, kMinBlocks)
    transpose(const STORAGE* __restrict__ x, STORAGE* __restrict__ y, int rows, int columns) {
  __shared__ STORAGE tile[kTile * kRow];
  const int tiles_per_row = (columns + kTile - 1) / kTile;
  const int first_row = static_cast<int>(blockIdx.x) / tiles_per_row * kTile;
  const int first_column = static_cast<int>(blockIdx.x) % tiles_per_row * kTile;

  float staged[kLoads][kVector];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int index = static_cast<int>(threadIdx.x) + i * kBlockThreads;
    const int row = first_row + index / kVectorsPerRow;
    const int column = first_column + index % kVectorsPerRow * kVector;
    load_floats<kInputAligned>(staged[i], x + static_cast<long long>(row) * columns, column, row < rows ? columns : 0);
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int index = static_cast<int>(threadIdx.x) + i * kBlockThreads;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      tile[index / kVectorsPerRow * kRow + index % kVectorsPerRow * kVector + v] = from_float<STORAGE>(staged[i][v]);
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int index = static_cast<int>(threadIdx.x) + i * kBlockThreads;
    const int column = index / kVectorsPerRow;
    const int row = index % kVectorsPerRow * kVector;
    float value[kVector];
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      value[v] = to_float(tile[(row + v) * kRow + column]);
    }
    store_floats<kOutputAligned>(y + static_cast<long long>(first_column + column) * rows, first_row + row,
                                 first_column + column < columns ? rows : 0, value);
  }
}

#else

// One thread an element.
// Launch: grid ceil(ROWS · COLUMNS / 256), block 256.
extern "C" __global__ void transpose_reference(const STORAGE* __restrict__ x, double* __restrict__ y, int rows,
                                               int columns) {
  const long long index = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (index < static_cast<long long>(rows) * columns) {
    y[index % columns * rows + index / columns] = to_float(x[index]);
  }
}

#endif
