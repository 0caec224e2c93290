// Rotary embedding of the query and key heads of an image's patches, in place. qkv[PATCHES, QKV_STRIDE]: a row is HEADS
// query heads, HEADS key heads, HEADS value heads of HEAD_DIM each; values are not touched. positions[2, PATCHES]: row
// and column of each patch in its image; cosine and sine [POSITIONS, HEAD_DIM / 4]; positions behind the tables take
// their last row. Slot j of a head is the pair of elements 2j and 2j + 1. The first HEAD_DIM / 4 slots turn by
// the patch's row, the others by its column, both with the table's angles 0 … HEAD_DIM / 4 - 1.
//
// Bytes: queries and keys read and written once. Requires: pointers aligned to 16 bytes; HEAD_DIM a multiple of 4.
// Launch: grid ceil(PATCHES · ceil(2 · HEADS / HEADS_PER_GROUP) / (BLOCK_THREADS / LANES_PER_HEAD)), block
// BLOCK_THREADS.
//
// A group of LANES_PER_HEAD threads takes HEADS_PER_GROUP neighbouring heads of one patch, and reads cosines and sines
// once for all of them. A thread holds both elements of its pairs, so that nothing is exchanged.

#include "common/rotary.cuh"

namespace {

constexpr int kHalf = kHeadSize / 2;
constexpr int kQuarter = kHeadSize / 4;         // slots that turn by the same position
constexpr int kStep = kLanesPerHead * kVector;  // slots a head's threads take at a time

static_assert(kBlockThreads % kLanesPerHead == 0 && kBlockThreads <= 1024, "groups fill a block");
static_assert(kHeadSize % 4 == 0, "pairs for the rows and as many for the columns");

using Pairs = RotaryPart<kHalf, kStep, kVector>;

// Reads this thread's slots of a table. A chunk lies in one half of the slots if all is aligned.
__device__ __forceinline__ void load_angles(float (&value)[kVector], const float* __restrict__ table, int row,
                                            int column, int slot) {
  if constexpr (kRowsAligned) {
    const bool of_row = slot < kQuarter;
    const float* angles = table + static_cast<long long>(of_row ? row : column) * kQuarter;
    load_floats<true>(value, angles, of_row || slot >= kHalf ? slot : slot - kQuarter, kQuarter);
  } else {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const int at = slot + v;
      const long long first = static_cast<long long>(at < kQuarter ? row : column) * kQuarter;
      value[v] = at < kHalf ? table[first + at % kQuarter] : 0.0f;
    }
  }
}

// Reads this thread's pairs of a head, zeros behind its end.
__device__ __forceinline__ void load_pairs(Pairs& pairs, const STORAGE* head, int first, int end) {
#pragma unroll
  for (int c = 0; c < Pairs::kChunks; ++c) {
    float value[2 * kVector];
    load_floats<kRowsAligned>(value, head, 2 * (first + c * kStep), end);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      pairs.low[c][v] = value[2 * v];
      pairs.high[c][v] = value[2 * v + 1];
    }
  }
}

__device__ __forceinline__ void store_pairs(const Pairs& pairs, STORAGE* head, int first, int end) {
#pragma unroll
  for (int c = 0; c < Pairs::kChunks; ++c) {
    float value[2 * kVector];
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      value[2 * v] = pairs.low[c][v];
      value[2 * v + 1] = pairs.high[c][v];
    }
    store_floats<kRowsAligned>(head, 2 * (first + c * kStep), end, value);
  }
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kBlockThreads, kMinBlocks)
    rope_vision(STORAGE* __restrict__ qkv, const float* __restrict__ cosine, const float* __restrict__ sine,
                const int* __restrict__ positions, int patches, int heads, int qkv_stride, int position_count) {
  const int groups_per_patch = (2 * heads + kHeadsPerGroup - 1) / kHeadsPerGroup;
  const int group =
      static_cast<int>(blockIdx.x) * (kBlockThreads / kLanesPerHead) + static_cast<int>(threadIdx.x) / kLanesPerHead;
  const int first = static_cast<int>(threadIdx.x) % kLanesPerHead * kVector;
  const int patch = group / groups_per_patch;
  const int first_head = group % groups_per_patch * kHeadsPerGroup;
  if (patch >= patches) {
    return;
  }

  STORAGE* head = qkv + static_cast<long long>(patch) * qkv_stride + first_head * kHeadSize;
  Pairs pairs[kHeadsPerGroup];
#pragma unroll
  for (int i = 0; i < kHeadsPerGroup; ++i) {
    load_pairs(pairs[i], head + i * kHeadSize, first, first_head + i < 2 * heads ? kHeadSize : 0);
  }
  const int row = clamp_row(positions[patch], position_count);
  const int column = clamp_row(positions[patches + patch], position_count);
  Pairs turn;
#pragma unroll
  for (int c = 0; c < Pairs::kChunks; ++c) {
    load_angles(turn.low[c], cosine, row, column, first + c * kStep);
    load_angles(turn.high[c], sine, row, column, first + c * kStep);
  }
#pragma unroll
  for (int i = 0; i < kHeadsPerGroup; ++i) {
    pairs[i].rotate(turn);
    store_pairs(pairs[i], head + i * kHeadSize, first, first_head + i < 2 * heads ? kHeadSize : 0);
  }
}

#else

// The same in float64, one thread a head.
// Launch: grid ceil(PATCHES · 2 · HEADS / 64), block 64.
extern "C" __global__ void rope_vision_reference(double* __restrict__ qkv, const float* __restrict__ cosine,
                                                 const float* __restrict__ sine, const int* __restrict__ positions,
                                                 int patches, int heads, int qkv_stride, int position_count) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int patch = index / (2 * heads);
  if (patch >= patches) {
    return;
  }
  double* head = qkv + static_cast<long long>(patch) * qkv_stride + index % (2 * heads) * kHeadSize;
  for (int j = 0; j < kHalf; ++j) {
    const long long row = clamp_row(positions[j < kQuarter ? patch : patches + patch], position_count);
    const double c = cosine[row * kQuarter + j % kQuarter];
    const double s = sine[row * kQuarter + j % kQuarter];
    const double low = head[2 * j];
    const double high = head[2 * j + 1];
    head[2 * j] = low * c - high * s;
    head[2 * j + 1] = high * c + low * s;
  }
}

#endif
