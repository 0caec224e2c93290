#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "pascaline/abi.h"

// Qualifiers and built-in variables of CUDA's device language.

#define __global__
#define __device__
#define __host__
#define __constant__ __attribute__((__used__))  // a host writes to it, which the compiler does not see
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((__always_inline__))
#define __inline_hint__ inline
#define __align__(bytes) __attribute__((__aligned__(bytes)))
#define __builtin_align__(bytes) __attribute__((__aligned__(bytes)))

// The program hides it from headers of the standard library, which use __attribute__((__noinline__)).
#define __noinline__ __attribute__((noinline))

// One worker thread runs one block at a time. AddressSanitizer puts red zones around plain static arrays only, so
// there a single worker runs all blocks. The compiler must not take what no code writes for zero: it is spoilt before
// each block.
#ifdef PASCALINE_ADDRESS_SANITIZER
#define __shared__ static
#else
#define __shared__ thread_local __attribute__((__used__))
#endif

namespace pascaline_host {

/// The CUDA thread that runs on this worker thread now.
static thread_local ThreadView* current = nullptr;

inline __attribute__((always_inline)) ThreadView& self() { return *current; }

/// Ends the launch with a message; the calling thread does not return.
[[noreturn]] inline void fail(const char* message) {
  current->block->services->fail(current, message);
  __builtin_unreachable();
}

}  // namespace pascaline_host

// Macros here expand to names that begin with pascaline_: all others may be a kernel's parameters.
inline __attribute__((always_inline)) pascaline_host::Index3& pascaline_thread_index() {
  return pascaline_host::self().index;
}
inline __attribute__((always_inline)) pascaline_host::Index3& pascaline_block_index() {
  return pascaline_host::self().block->block_index;
}
inline __attribute__((always_inline)) pascaline_host::Index3& pascaline_block_dim() {
  return pascaline_host::self().block->block_dim;
}
inline __attribute__((always_inline)) pascaline_host::Index3& pascaline_grid_dim() {
  return pascaline_host::self().block->grid_dim;
}
inline char* pascaline_dynamic_shared() { return pascaline_host::current->block->dynamic_shared; }
[[noreturn]] inline void pascaline_fail(const char* message) { pascaline_host::fail(message); }

#define threadIdx (::pascaline_thread_index())
#define blockIdx (::pascaline_block_index())
#define blockDim (::pascaline_block_dim())
#define gridDim (::pascaline_grid_dim())
constexpr int warpSize = 32;

#define __trap() ::pascaline_fail("the kernel called __trap()")
#define __brkpt() ((void)0)
#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define __nv_is_pow2(value) (((value) & ((value)-1)) == 0)

inline long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
inline void __nanosleep(unsigned) {}
