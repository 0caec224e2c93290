#pragma once

// Floats that a block hands to others within a launch, without fences or flags: their memory is zero until they are
// there, so that each tells by itself that it has come. A zero is written as -0, which is the same to sums and
// products. (NCCL's protocol for low latency has flags between its words instead.) Memory is zero again after a launch,
// or that launch uses another copy: whoever waits for all values of one may leave it to the next launch to clear it.

#include "row.cuh"
#include "vector.cuh"

// An element of such memory.
struct Awaited {
  float value;
};

template <typename T>
constexpr bool kIsAwaited = false;
template <>
inline constexpr bool kIsAwaited<Awaited> = true;

__device__ __forceinline__ bool has_come(float value) { return __float_as_uint(value) != 0u; }

template <int N>
__device__ __forceinline__ bool have_come(const float (&values)[N]) {
  bool all = true;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    all = all && has_come(values[i]);
  }
  return all;
}

// Writes one value.
__device__ __forceinline__ void hand_on(Awaited* to, float value) {
  static_cast<volatile Awaited*>(to)->value = has_come(value) ? value : -0.0f;
}

// Writes N neighbouring values, 1, 2 or 4, aligned for that.
template <int N>
__device__ __forceinline__ void hand_on(Awaited* to, const float (&values)[N]) {
  static_assert(N == 1 || N == 2 || N == 4, "what one instruction stores");
  float given[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    given[i] = has_come(values[i]) ? values[i] : -0.0f;
  }
#ifdef __CUDA_ARCH__
  if constexpr (N == 4) {
    asm volatile("st.volatile.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "f"(given[0]), "f"(given[1]), "f"(given[2]), "f"(given[3])
                 : "memory");
    return;
  } else if constexpr (N == 2) {
    asm volatile("st.volatile.global.v2.f32 [%0], {%1, %2};" : : "l"(to), "f"(given[0]), "f"(given[1]) : "memory");
    return;
  }
#endif
  for (int i = 0; i < N; ++i) {
    static_cast<volatile Awaited*>(to)[i].value = given[i];
  }
}

// What is there now of N neighbouring values, 1, 2 or 4, aligned for that.
template <int N>
__device__ __forceinline__ void look_at(float (&values)[N], const Awaited* from) {
  static_assert(N == 1 || N == 2 || N == 4, "what one instruction loads");
#ifdef __CUDA_ARCH__
  if constexpr (N == 4) {
    asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
                 : "l"(from)
                 : "memory");
    return;
  } else if constexpr (N == 2) {
    asm volatile("ld.volatile.global.v2.f32 {%0, %1}, [%2];" : "=f"(values[0]), "=f"(values[1]) : "l"(from) : "memory");
    return;
  }
#endif
  for (int i = 0; i < N; ++i) {
    values[i] = static_cast<const volatile Awaited*>(from)[i].value;
  }
}

// N neighbouring values, when all of them are there.
template <int N>
__device__ __forceinline__ void wait_for(float (&values)[N], const Awaited* from) {
  do {
    look_at(values, from);
  } while (!have_come(values));
}

// Waits for the first value of each of `count` parts of a row, `stride` values apart, by the block's first THREADS: few
// looks while most of a row is not there yet. All threads of the block must take part.
template <int THREADS>
__device__ __forceinline__ void wait_for_parts(const Awaited* row, int count, int stride) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < THREADS) {
    for (int part = thread; part < count; part += THREADS) {
      float value[1];
      wait_for(value, row + part * stride);
    }
  }
  __syncthreads();
}

// Four columns of a row, as load_floats has them; those at or behind `end` are zeros. `wait_for_floats` looks again
// where they have not come yet, which those of other rows always have. ALIGNED: rows are multiples of 4 columns.
template <bool ALIGNED, typename T>
__device__ __forceinline__ void look_at_floats(float (&values)[4], const T* row, int column, int end) {
  load_floats<ALIGNED>(values, row, column, end);
}
template <bool ALIGNED, typename T>
__device__ __forceinline__ void wait_for_floats(float (&)[4], const T* /*row*/, int /*column*/, int /*end*/) {}

template <bool ALIGNED>
__device__ __forceinline__ void look_at_floats(float (&values)[4], const Awaited* row, int column, int end) {
  if constexpr (ALIGNED) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      values[v] = 0.0f;
    }
    if (column < end) {
      look_at(values, row + column);
    }
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      values[v] = column + v < end ? static_cast<const volatile Awaited*>(row)[column + v].value : 0.0f;
    }
  }
}
template <bool ALIGNED>
__device__ __forceinline__ void wait_for_floats(float (&values)[4], const Awaited* row, int column, int end) {
  if constexpr (ALIGNED) {
    while (column < end && !have_come(values)) {
      look_at(values, row + column);
    }
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      while (column + v < end && !has_come(values[v])) {
        values[v] = static_cast<const volatile Awaited*>(row)[column + v].value;
      }
    }
  }
}

__device__ __forceinline__ int round_up_to_4(int count) { return (count + 3) / 4 * 4; }

// Clears `count` values of a copy that this launch does not use, by all threads of the grid's blocks along x.
__device__ __forceinline__ void clear_copy(Awaited* copy, int count) {
  const int threads = static_cast<int>(blockDim.x * gridDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += threads) {
    copy[i].value = 0.0f;
  }
}
