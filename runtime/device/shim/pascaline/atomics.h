#pragma once

#include <cstdint>
#include <cstring>

#include "pascaline/language.h"
#include "pascaline/vectors.h"

// Atomics across worker threads, fences, and loads and stores with cache hints (which say nothing here).

namespace pascaline_host {

/// Applies `next` to the value at `address` until no other thread came in between; returns the old value.
template <typename T, typename Bits, typename Next>
inline T atomic_update(T* address, Next next) {
  static_assert(sizeof(T) == sizeof(Bits), "the integer stands for the value's bits");
  auto* bits = reinterpret_cast<Bits*>(address);
  Bits seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    T old;
    std::memcpy(&old, &seen, sizeof old);
    const T value = next(old);
    Bits wanted;
    std::memcpy(&wanted, &value, sizeof wanted);
    if (__atomic_compare_exchange_n(bits, &seen, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
      return old;
    }
  }
}

}  // namespace pascaline_host

#define PASCALINE_INTEGER_ATOMICS(T)                                                                           \
  inline T atomicAdd(T* address, T value) { return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST); }     \
  inline T atomicSub(T* address, T value) { return __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST); }     \
  inline T atomicExch(T* address, T value) { return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST); }   \
  inline T atomicAnd(T* address, T value) { return __atomic_fetch_and(address, value, __ATOMIC_SEQ_CST); }     \
  inline T atomicOr(T* address, T value) { return __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST); }       \
  inline T atomicXor(T* address, T value) { return __atomic_fetch_xor(address, value, __ATOMIC_SEQ_CST); }     \
  inline T atomicMax(T* address, T value) {                                                                    \
    return pascaline_host::atomic_update<T, T>(address, [value](T old) { return old < value ? value : old; }); \
  }                                                                                                            \
  inline T atomicMin(T* address, T value) {                                                                    \
    return pascaline_host::atomic_update<T, T>(address, [value](T old) { return value < old ? value : old; }); \
  }                                                                                                            \
  inline T atomicCAS(T* address, T compare, T value) {                                                         \
    __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
    return compare;                                                                                            \
  }

PASCALINE_INTEGER_ATOMICS(int)
PASCALINE_INTEGER_ATOMICS(unsigned)
PASCALINE_INTEGER_ATOMICS(long long)
PASCALINE_INTEGER_ATOMICS(unsigned long long)

#undef PASCALINE_INTEGER_ATOMICS

inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return pascaline_host::atomic_update<unsigned, unsigned>(
      address, [limit](unsigned old) { return old >= limit ? 0u : old + 1; });
}

inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return pascaline_host::atomic_update<unsigned, unsigned>(
      address, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}

inline float atomicAdd(float* address, float value) {
  return pascaline_host::atomic_update<float, std::uint32_t>(address, [value](float old) { return old + value; });
}

inline double atomicAdd(double* address, double value) {
  return pascaline_host::atomic_update<double, std::uint64_t>(address, [value](double old) { return old + value; });
}

inline float atomicExch(float* address, float value) {
  return pascaline_host::atomic_update<float, std::uint32_t>(address, [value](float) { return value; });
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#define PASCALINE_CACHE_LOAD(name)  \
  template <typename T>             \
  inline T name(const T* address) { \
    return *address;                \
  }
#define PASCALINE_CACHE_STORE(name)       \
  template <typename T>                   \
  inline void name(T* address, T value) { \
    *address = value;                     \
  }

PASCALINE_CACHE_LOAD(__ldg)
PASCALINE_CACHE_LOAD(__ldca)
PASCALINE_CACHE_LOAD(__ldcg)
PASCALINE_CACHE_LOAD(__ldcs)
PASCALINE_CACHE_LOAD(__ldlu)
PASCALINE_CACHE_LOAD(__ldcv)
PASCALINE_CACHE_STORE(__stwb)
PASCALINE_CACHE_STORE(__stcg)
PASCALINE_CACHE_STORE(__stcs)
PASCALINE_CACHE_STORE(__stwt)

#undef PASCALINE_CACHE_LOAD
#undef PASCALINE_CACHE_STORE
