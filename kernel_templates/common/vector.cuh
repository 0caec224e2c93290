#pragma once

// N consecutive elements that are read or written by one instruction. Addresses must be multiples of its size.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T element[N];
};

// Bytes are held as words where they fill some: as elements of their own they are taken apart and put together again.
template <int N, bool WORDS = N % 4 == 0>
struct alignas(N) Bytes {
  signed char element[N];
};
template <int N>
struct alignas(N) Bytes<N, true> {
  unsigned int word[N / 4];
};
template <int N>
struct Vector<signed char, N> : Bytes<N> {};

// Sets element `index`. All of a vector are set in their order.
template <typename T, int N>
__device__ __forceinline__ void set_element(Vector<T, N>& vector, int index, T value) {
  vector.element[index] = value;
}
template <int N>
__device__ __forceinline__ void set_element(Vector<signed char, N>& vector, int index, signed char value) {
  if constexpr (N % 4 == 0) {
    const unsigned int byte = static_cast<unsigned char>(value);
    unsigned int& word = vector.word[index / 4];
    word = index % 4 == 0 ? byte : word | byte << index % 4 * 8;
  } else {
    vector.element[index] = value;
  }
}

// A GPU stops at a misaligned address; other processors would go on.
template <int N, typename T>
__device__ __forceinline__ void require_aligned([[maybe_unused]] const T* address) {
#ifndef __CUDA_ARCH__
  if (reinterpret_cast<unsigned long long>(address) % sizeof(Vector<T, N>) != 0) {
    __trap();
  }
#endif
}

template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* address) {
  require_aligned<N>(address);
  return *reinterpret_cast<const Vector<T, N>*>(address);
}

// Of floats that other blocks wrote during this launch: past L1, whose lines may be old.
template <int N>
__device__ __forceinline__ Vector<float, N> load_written(const float* address) {
  Vector<float, N> out;
#ifdef __CUDA_ARCH__
  if constexpr (N == 4) {
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(out.element[0]), "=f"(out.element[1]), "=f"(out.element[2]), "=f"(out.element[3])
                 : "l"(address)
                 : "memory");
    return out;
  }
  if constexpr (N == 1) {
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(out.element[0]) : "l"(address) : "memory");
    return out;
  }
#endif
  for (int i = 0; i < N; ++i) {
    out.element[i] = static_cast<const volatile float*>(address)[i];
  }
  return out;
}
// Floats that other blocks read by load_written. (What the compiler makes of a plain store of several loses its width
// where it moves the stores of a branch.)
template <int N>
__device__ __forceinline__ void store_written(float* address, const Vector<float, N>& values) {
  require_aligned<N>(address);
#ifdef __CUDA_ARCH__
  if constexpr (N == 4) {
    asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(address), "f"(values.element[0]), "f"(values.element[1]), "f"(values.element[2]),
                   "f"(values.element[3])
                 : "memory");
    return;
  }
  if constexpr (N == 1) {
    asm volatile("st.global.cg.f32 [%0], %1;" : : "l"(address), "f"(values.element[0]) : "memory");
    return;
  }
#endif
  *reinterpret_cast<Vector<float, N>*>(address) = values;
}

// N floats, at this place of the program: compilers move other loads down to where values are used, behind exits and
// shuffles, and so make one latency two.
template <int N>
__device__ __forceinline__ Vector<float, N> load_here(const float* __restrict__ address) {
  static_assert(N == 1 || N == 2 || N == 4, "what one instruction loads");
  require_aligned<N>(address);
#ifdef __CUDA_ARCH__
  Vector<float, N> out;
  if constexpr (N == 4) {
    asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(out.element[0]), "=f"(out.element[1]), "=f"(out.element[2]), "=f"(out.element[3])
                 : "l"(address));
  } else if constexpr (N == 2) {
    asm volatile("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(out.element[0]), "=f"(out.element[1]) : "l"(address));
  } else {
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(out.element[0]) : "l"(address));
  }
  return out;
#else
  return load_vector<N>(address);
#endif
}

template <typename T, int N>
__device__ __forceinline__ void store_vector(T* address, const Vector<T, N>& value) {
  require_aligned<N>(address);
  *reinterpret_cast<Vector<T, N>*>(address) = value;
}
