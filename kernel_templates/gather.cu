// y[t] = table[indices[t]]: rows of an embedding table[VOCABULARY,WIDTH] for TOKENS tokens, y[TOKENS,WIDTH] row-major.
// An index that is no row of the table gives zeros. The table may be float16x (common/matrix.cuh), or in a
// packed format (common/formats.cuh).
//
// Bytes: TOKENS rows of the table read, TOKENS rows of y written.
// Requires: pointers aligned to 16 bytes; any sizes.
// Launch: grid (ceil(TOKENS / ROWS_PER_BLOCK), ceil(WIDTH / (THREADS_PER_ROW · VECTOR · UNROLL))), block
// ROWS_PER_BLOCK · THREADS_PER_ROW.

#include "common/formats.cuh"
#include "common/matrix.cuh"
#include "common/row.cuh"
#include "common/table_row.cuh"

namespace {

constexpr int kThreads = kThreadsPerRow * kRowsPerBlock;
constexpr int kStep = kThreadsPerRow * kVector;  // columns a row's threads take at a time

static_assert(kThreads <= 1024, "threads of a block");
static_assert(kVector >= 1 && kUnroll >= 1, "counts");

using Table = TableOf<TABLE>::Type;

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
    gather(const Table* __restrict__ table, const int* __restrict__ indices, STORAGE* __restrict__ y, int tokens,
           int vocabulary, int width) {
  const int token = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kThreadsPerRow;
  const int first =
      static_cast<int>(blockIdx.y) * (kStep * kUnroll) + static_cast<int>(threadIdx.x) % kThreadsPerRow * kVector;
  if (token >= tokens) {
    return;
  }
  const int index = indices[token];
  const bool known = index >= 0 && index < vocabulary;
  STORAGE* to = y + static_cast<long long>(token) * width;
  float value[kUnroll][kVector];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    load_table_row<TABLE, kRowsAligned>(value[u], table, known ? index : 0, first + u * kStep, known ? width : 0,
                                        width);
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    store_floats<kRowsAligned>(to, first + u * kStep, width, value[u]);
  }
}

#else

// The same, one thread an element.
// Launch: grid ceil(TOKENS · WIDTH / 256), block 256.
extern "C" __global__ void gather_reference(const Table* __restrict__ table, const int* __restrict__ indices,
                                            double* __restrict__ y, int tokens, int vocabulary, int width) {
  const long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (i < static_cast<long long>(tokens) * width) {
    const int index = indices[i / width];
    y[i] = 0.0;
    if (index >= 0 && index < vocabulary) {
      y[i] = element_of<TABLE>(table, index, static_cast<int>(i % width), width);
    }
  }
}

#endif
