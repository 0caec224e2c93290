#pragma once

// Brings `bytes` from `from` on into the L2, in lines of 128 bytes, one or a few by each thread of the grid's blocks
// along x; nobody waits for them. What blocks read later, whichever of them, is on its way then.
__device__ __forceinline__ void bring_to_l2(const void* from, long long bytes) {
#ifdef __CUDA_ARCH__
  constexpr int kLine = 128;
  const char* const begin = static_cast<const char*>(from);
  const long long all = static_cast<long long>(gridDim.x) * blockDim.x * kLine;
  for (long long at = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kLine; at < bytes; at += all) {
    asm volatile("prefetch.global.L2 [%0];" : : "l"(begin + at));
  }
#endif
}
