#pragma once

// Sums of a tile that several blocks have a part of, and how they come together. A thread has CHUNKS times CHUNK sums
// in registers. Those of all threads lie side by side in the workspace, not a thread's: stores of vectors would ask for
// sums in consecutive registers, in the same banks as the operands that they are summed from.

#include "split.cuh"
#include "tiles.cuh"
#include "vector.cuh"

__device__ __forceinline__ float bits_as_float(float value) { return value; }
__device__ __forceinline__ float bits_as_float(int value) { return __int_as_float(value); }
template <typename T>
__device__ __forceinline__ T float_bits_as(float value);
template <>
__device__ __forceinline__ float float_bits_as<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ int float_bits_as<int>(float value) {
  return __float_as_int(value);
}

template <typename SUM, int THREADS, int CHUNKS, int CHUNK>
struct TileSums {
  static constexpr int kStride = THREADS * CHUNK;  // from one chunk of a thread to the next
  static constexpr long long kTile = static_cast<long long>(kStride) * CHUNKS;

  // Writes a thread's sums to its place in a tile of the workspace.
  static __device__ __forceinline__ void leave(float* tile, const SUM (&sum)[CHUNKS][CHUNK]) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
#pragma unroll
      for (int j = 0; j < CHUNK; ++j) {
        store_written(tile + (chunk * CHUNK + j) * THREADS + threadIdx.x,
                      Vector<float, 1>{{bits_as_float(sum[chunk][j])}});
      }
    }
  }

  // A chunk of another block's sums of the same thread; `place`: of the first.
  static __device__ __forceinline__ Vector<float, CHUNK> chunk_at(const float* place) {
    Vector<float, CHUNK> values;
#pragma unroll
    for (int j = 0; j < CHUNK; ++j) {
      values.element[j] = load_written<1>(place + j * THREADS).element[0];
    }
    return values;
  }

  // Of two blocks that have a part of a tile each, the first to arrive leaves its sums, the second adds them to its own
  // and calls `store(chunk, sums)`. Which is which does not matter to a sum of two.
  template <typename Store>
  static __device__ __forceinline__ void reduce_pair(SUM (&sum)[CHUNKS][CHUNK], float* workspace, int* counter,
                                                     Store store) {
    if (arrived_first(counter)) {
      leave(workspace, sum);
      hand_over(counter);
      return;
    }
    take_over(counter);
    constexpr int kAtOnce = (CHUNKS + 1) / 2;  // loads in flight: all would not fit the registers
    const float* other = workspace + threadIdx.x;
#pragma unroll
    for (int first = 0; first < CHUNKS; first += kAtOnce) {
      Vector<float, CHUNK> values[kAtOnce];
#pragma unroll
      for (int chunk = 0; chunk < kAtOnce && first + chunk < CHUNKS; ++chunk) {
        values[chunk] = chunk_at(other + (first + chunk) * kStride);
      }
#pragma unroll
      for (int chunk = first; chunk < first + kAtOnce && chunk < CHUNKS; ++chunk) {
#pragma unroll
        for (int j = 0; j < CHUNK; ++j) {
          sum[chunk][j] += float_bits_as<SUM>(values[chunk - first].element[j]);
        }
        store(chunk, sum[chunk]);
      }
    }
  }

  // Of PARTS blocks that have a part of a tile each: all leave their sums. Then those that are still there share the
  // chunks: each adds up all partial sums of its own in their order along the depth, so that the result does not depend
  // on who does it, and calls `store(chunk, sums)`. `tile`: PARTS places of a whole tile.
  template <int PARTS, typename Store>
  static __device__ __forceinline__ void reduce_together(const SUM (&sum)[CHUNKS][CHUNK], float* tile, int part,
                                                         Gathering<PARTS> gathering, Store store) {
    constexpr int kAtOnce = PARTS < 16 ? 16 / PARTS : 1;  // as many loads in flight as fit registers
    gathering.look();
    leave(tile + part * kTile, sum);
    int index = 0;
    int count = 0;
    gathering.share(index, count);
    if (count == 0) {
      return;
    }
    const float* base = tile + threadIdx.x;
    const int end = CHUNKS * (index + 1) / count;
#pragma unroll kAtOnce
    for (int chunk = CHUNKS * index / count; chunk < end; ++chunk) {
      Vector<float, CHUNK> values[PARTS];
#pragma unroll
      for (int other = 0; other < PARTS; ++other) {
        values[other] = chunk_at(base + other * kTile + chunk * kStride);
      }
      SUM total[CHUNK] = {};
#pragma unroll
      for (int other = 0; other < PARTS; ++other) {
#pragma unroll
        for (int j = 0; j < CHUNK; ++j) {
          total[j] += float_bits_as<SUM>(values[other].element[j]);
        }
      }
      store(chunk, total);
    }
    gathering.end(count);
  }

  // Writes the sums where the block that arrives last finds them. Then that one adds up all partial sums in their order
  // along the depth, so that the result does not depend on who came last, and calls `store(chunk, sums)`.
  template <typename Parts, typename Store>
  static __device__ __forceinline__ void reduce_parts(const SUM (&sum)[CHUNKS][CHUNK], float* workspace, int* counters,
                                                      Parts parts, Store store) {
    constexpr int kAtOnce = Parts::kBatch < 16 ? 16 / Parts::kBatch : 1;  // as many loads in flight as fit registers
    leave(workspace + parts.own() * kTile, sum);
    const float* base = workspace + threadIdx.x;
    const int count = parts.count();
    if (!arrived_last(counters + parts.tile, count)) {
      return;
    }
#pragma unroll kAtOnce
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      SUM total[CHUNK] = {};
#pragma unroll 1
      for (int first = 0; first < count; first += Parts::kBatch) {
        Vector<float, CHUNK> values[Parts::kBatch];
#pragma unroll
        for (int part = 0; part < Parts::kBatch; ++part) {
          const int index = first + part < count ? first + part : count - 1;
          values[part] = chunk_at(base + parts.at(index) * kTile + chunk * kStride);
        }
#pragma unroll
        for (int part = 0; part < Parts::kBatch; ++part) {
#pragma unroll
          for (int j = 0; j < CHUNK; ++j) {
            total[j] += first + part < count ? float_bits_as<SUM>(values[part].element[j]) : SUM{};
          }
        }
      }
      store(chunk, total);
    }
  }
};
