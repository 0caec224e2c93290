#pragma once

// Rows of a matrix: neighbouring elements as floats, and reductions over the threads that share a row.

#include "reduce.cuh"
#include "types.cuh"
#include "vector.cuh"

// Elements of T that one of the loads or stores for N of them takes: at most 16 bytes.
template <typename T, int N>
__device__ constexpr int piece_of() {
  return N * static_cast<int>(sizeof(T)) <= 16 ? N : 16 / static_cast<int>(sizeof(T));
}

// Elements that are floats by themselves.
struct AsFloat {
  template <typename T>
  __device__ __forceinline__ float operator()(T element) const {
    return to_float(element);
  }
  template <typename T, int N>
  __device__ __forceinline__ float operator()(const Vector<T, N>& vector, int index) const {
    return to_float(vector.element[index]);
  }
};

// Reads the N elements of a row that begin at `column`; those at or behind `end` read as `outside`. ALIGNED: `column`
// and `end` are multiples of N, and the row's address is one of a piece's size. `as_float` makes a float of an element.
template <bool ALIGNED, int N, typename T, typename Convert = AsFloat>
__device__ __forceinline__ void load_floats(float (&value)[N], const T* row, int column, int end, float outside = 0.0f,
                                            const Convert& as_float = {}) {
  if constexpr (ALIGNED) {
    constexpr int kPiece = piece_of<T, N>();
    if (column < end) {
#pragma unroll
      for (int first = 0; first < N; first += kPiece) {
        const auto piece = load_vector<kPiece>(row + column + first);
#pragma unroll
        for (int v = 0; v < kPiece; ++v) {
          value[first + v] = as_float(piece, v);
        }
      }
    } else {
#pragma unroll
      for (int v = 0; v < N; ++v) {
        value[v] = outside;
      }
    }
  } else {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      value[v] = column + v < end ? as_float(row[column + v]) : outside;
    }
  }
}

// As load_floats; with ADD the sums with the elements of another row in the same columns.
template <bool ALIGNED, bool ADD, int N, typename T>
__device__ __forceinline__ void load_sum(float (&value)[N], const T* row, const T* other, int column, int end) {
  load_floats<ALIGNED>(value, row, column, end);
  if constexpr (ADD) {
    float more[N];
    load_floats<ALIGNED>(more, other, column, end);
#pragma unroll
    for (int v = 0; v < N; ++v) {
      value[v] += more[v];
    }
  }
}

// Calls `use(value, column)` with the sums that load_sum reads at the columns `begin`, `begin + step`, … before `last`.
// A function of its own, as NVRTC takes a generic lambda in a kernel for code of the host.
template <bool ALIGNED, bool ADD, int N, typename T, typename Use>
__device__ __forceinline__ void for_sums(const T* row, const T* other, int begin, int step, int last, int end,
                                         const Use& use) {
  for (int column = begin; column < last; column += step) {
    float value[N];
    load_sum<ALIGNED, ADD>(value, row, other, column, end);
    use(value, column);
  }
}

// Writes N elements of a row, those before `end`. ALIGNED as above.
template <bool ALIGNED, int N, typename T>
__device__ __forceinline__ void store_floats(T* row, int column, int end, const float (&value)[N]) {
  if constexpr (ALIGNED) {
    constexpr int kPiece = piece_of<T, N>();
    if (column < end) {
#pragma unroll
      for (int first = 0; first < N; first += kPiece) {
        Vector<T, kPiece> piece;
#pragma unroll
        for (int v = 0; v < kPiece; ++v) {
          set_element(piece, v, from_float<T>(value[first + v]));
        }
        store_vector(row + column + first, piece);
      }
    }
  } else {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      if (column + v < end) {
        row[column + v] = from_float<T>(value[v]);
      }
    }
  }
}

// Over each GROUP neighbouring threads of the block (a power of two); every thread of the group gets the result.
// `shared`: a float for each warp of the block that nobody else uses until the next barrier after the call. All threads
// of the block must take part.
template <typename Operation, bool PTX, int GROUP>
__device__ __forceinline__ float group_reduce(float value, float* shared) {
  if constexpr (GROUP <= 32) {
    return warp_reduce<Operation, PTX, GROUP>(value);
  } else {
    constexpr int kWarps = GROUP / 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    value = warp_reduce<Operation, PTX>(value);
    if (lane == 0) {
      shared[warp] = value;
    }
    __syncthreads();
    // Every warp reduces all partial results: cheaper than a second barrier.
    return warp_reduce<Operation, PTX, kWarps>(shared[warp / kWarps * kWarps + lane % kWarps]);
  }
}

// The sum over the 32 lanes of a warp, for reference kernels; every lane gets it.
__device__ __forceinline__ double warp_sum(double value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}
