#pragma once

// Where the results of rows go: elements of a floating-point type, or int8 with a scale for each block of 32 columns or
// for each row, as products with quantized weights take them (common/quantize.cuh).

#include "awaited.cuh"
#include "quantize.cuh"
#include "row.cuh"

// N neighbouring values at a time, from each of the GROUP neighbouring threads of a row. Where kMeasures, all values of
// a row must be shown to `measure` before `settle`, and then be stored; all threads of the block take part in all three
// equally often.
template <typename T, bool BY_ROW, bool ALIGNED, int N, int GROUP>
struct RowOutput {
  static constexpr bool kMeasures = false;
  T* row;

  // `index` is the row's, or one behind the last, which has no columns.
  __device__ __forceinline__ RowOutput(T* y, float* /*scales*/, int index, int rows, int width)
      : row(y + (index < rows ? static_cast<long long>(index) * width : 0)) {}
  __device__ __forceinline__ void measure(const float (&)[N], int /*column*/, int /*end*/) {}
  __device__ __forceinline__ void settle() {}
  __device__ __forceinline__ void store(const float (&value)[N], int column, int end) const {
    store_floats<ALIGNED>(row, column, end, value);
  }
};

template <bool BY_ROW, bool ALIGNED, int N, int GROUP>
struct RowOutput<int8, BY_ROW, ALIGNED, N, GROUP> {
  static constexpr bool kMeasures = BY_ROW;
  static constexpr int kLanes = 32 / N;  // that have a block of 32 columns
  static_assert(ALIGNED && GROUP * N >= 32 && 32 % N == 0, "lanes share whole blocks");

  int8* row;
  float* scales;
  int row_index;
  int row_count;
  int largest = 0;
  Int8Scale scale{};

  __device__ __forceinline__ RowOutput(int8* y, float* to, int index, int rows, int width)
      : row(y + (index < rows ? static_cast<long long>(index) * width : 0)),
        scales(to),
        row_index(index),
        row_count(rows) {}

  __device__ __forceinline__ void measure(const float (&value)[N], int column, int end) {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      const int bits = column < end ? magnitude_bits(value[v]) : 0;
      largest = bits > largest ? bits : largest;
    }
  }

  __device__ __forceinline__ void settle() {
    if constexpr (BY_ROW) {
      constexpr int kWarps = GROUP / 32;
      largest = largest_of_lanes<(GROUP < 32 ? GROUP : 32)>(largest);
      if constexpr (kWarps > 1) {
        __shared__ int partial[32];
        const int warp = static_cast<int>(threadIdx.x) / 32;
        if (threadIdx.x % 32 == 0) {
          partial[warp] = largest;
        }
        __syncthreads();
#pragma unroll
        for (int other = 0; other < kWarps; ++other) {
          const int bits = partial[warp / kWarps * kWarps + other];
          largest = bits > largest ? bits : largest;
        }
      }
      scale = int8_scale(largest);
      if (row_index < row_count && threadIdx.x % GROUP == 0) {
        scales[row_index] = scale.scale;
      }
    }
  }

  __device__ __forceinline__ void store(const float (&value)[N], int column, int end) {
    if constexpr (!BY_ROW) {
      largest = 0;
      measure(value, column, end);
      scale = int8_scale(largest_of_lanes<kLanes>(largest));
      if (column % 32 == 0 && column < end) {
        scales[static_cast<long long>(column / 32) * row_count + row_index] = scale.scale;
      }
    }
    if (column < end) {
      Vector<int8, N> integers;
#pragma unroll
      for (int v = 0; v < N; ++v) {
        set_element(integers, v, to_int8(value[v], scale.inverse));
      }
      store_vector(row + column, integers);
    }
  }
};

// To blocks that wait for them.
template <bool BY_ROW, int N, int GROUP>
struct RowOutput<Awaited, BY_ROW, true, N, GROUP> {
  static constexpr bool kMeasures = false;
  Awaited* row;

  __device__ __forceinline__ RowOutput(Awaited* y, float* /*scales*/, int index, int rows, int width)
      : row(y + (index < rows ? static_cast<long long>(index) * width : 0)) {}
  __device__ __forceinline__ void measure(const float (&)[N], int /*column*/, int /*end*/) {}
  __device__ __forceinline__ void settle() {}
  __device__ __forceinline__ void store(const float (&value)[N], int column, int end) const {
    if (column < end) {
      hand_on(row + column, value);
    }
  }
};

#ifdef PASCALINE_REFERENCE

// Of an int8 output, in float64 by one warp: the scales of a row, and its elements in units of them, not rounded.
template <typename T>
__device__ void scale_reference(double* /*row*/, double* /*scales*/, int /*index*/, int /*rows*/, int /*width*/,
                                bool /*by_row*/) {}
template <>
__device__ void scale_reference<int8>(double* row, double* scales, int index, int rows, int width, bool by_row) {
  __syncwarp();
  const int block = by_row ? width : 32;
  for (int first = 0; first < width; first += block) {
    double largest = 0.0;
    for (int i = first; i < first + block; ++i) {
      largest = fabs(row[i]) > largest ? fabs(row[i]) : largest;
    }
    __syncwarp();
    const double scale = largest / 127.0;
    for (int i = first + static_cast<int>(threadIdx.x); i < first + block; i += 32) {
      row[i] = scale > 0.0 ? row[i] / scale : 0.0;
    }
    scales[static_cast<long long>(first / block) * rows + index] = scale;
    __syncwarp();
  }
}

#endif
