#ifndef THREADS
#define THREADS 64
#endif

namespace helpers {
__device__ __forceinline__ int reversed(int i, int n) { return n - 1 - i; }
}  // namespace helpers

extern __shared__ __align__(16) float file_scope[];

extern "C" __global__ void __launch_bounds__(THREADS) static_shared(const float* in, float* out) {
  __shared__ __align__(16) float tile[THREADS];
  static __shared__ int unused_but_static[4];
  unused_but_static[threadIdx.x % 4] = 1;
  const int i = blockIdx.x * THREADS + threadIdx.x;
  tile[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = tile[helpers::reversed(threadIdx.x, THREADS)];
}

extern "C" __global__ void dynamic_shared(const float* in, float* out) {
  extern __shared__ __align__(16) unsigned char bytes[];  // extern __shared__ float in_a_comment[];
  float* tile = reinterpret_cast<float*>(bytes);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = tile[blockDim.x - 1 - threadIdx.x] + (reinterpret_cast<float*>(file_scope) == tile ? 1000.0f : 0.0f);
}

extern "C" __global__ void matrix_shared(int* out) {
  extern __shared__ int rows[][8];
  rows[threadIdx.y][threadIdx.x] = threadIdx.y * 8 + threadIdx.x;
  __syncthreads();
  out[threadIdx.y * 8 + threadIdx.x] = rows[threadIdx.x][threadIdx.y];
}

// A tree reduction that threads leave while others go on.
extern "C" __global__ void leaving(const int* in, int* out) {
  __shared__ int sums[256];
  sums[threadIdx.x] = in[threadIdx.x];
  for (unsigned width = 128; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x >= width) {
      return;
    }
    sums[threadIdx.x] += sums[threadIdx.x + width];
  }
  *out = sums[0];
}

// Behind a barrier each warp meets three times; `next` counts what any of them has done.
extern "C" __global__ void order_of_warps(int* order, int* next) {
  __syncthreads();
  for (int meeting = 0; meeting < 3; ++meeting) {
    (void)__shfl_sync(0xffffffffu, meeting, 0);
    if (threadIdx.x % 32 == 0) {
      order[threadIdx.x / 32 * 3 + meeting] = (*next)++;
    }
  }
}

extern "C" __global__ void counts(int* count, int* every, int* some) {
  const int t = threadIdx.x;
  count[t] = __syncthreads_count(t % 5 == 0);
  every[t] = __syncthreads_and(t >= 0) + 2 * __syncthreads_and(t > 0);
  some[t] = __syncthreads_or(t == 3) + 2 * __syncthreads_or(t < 0);
}

extern "C" __global__ void indices(unsigned* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < width && y < height) {
    out[(z * height + y) * width + x] = gridDim.x * 10000 + gridDim.y * 100 + blockIdx.z * 10 + threadIdx.z;
  }
}

extern "C" __global__ void many_barriers(int* out, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
  }
  out[threadIdx.x] = rounds;
}

extern "C" __global__ void no_barriers(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = out[i] * 2.0f + 1.0f;
  }
}

extern "C" __global__ void deadlock(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
  }
}

extern "C" __global__ void beyond(int* out, int index) { out[index] = 7; }

extern "C" __global__ void asserting(int* out) {
  assert(out == nullptr || threadIdx.x < 5);
  __syncthreads();
}

extern "C" __global__ void trapping(int* out) {
  if (out != nullptr && blockIdx.x == 2) {
    __trap();
  }
}

extern "C" __global__ void too_much_shared(float* out) {
  __shared__ float tile[13000];
  tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

// What shared memory holds before anything is written to it, in a block's first and after another block's.
// Compilers may take `never` for zero, and `only_zero` too.
extern "C" __global__ void never_written_shared(int* out, int n) {
  __shared__ int never[4];
  __shared__ int only_zero[4];
  if (n == 7) {
    only_zero[0] = 0;
  }
  out[blockIdx.x] = blockIdx.x % 2 == 0 ? never[n & 3] : only_zero[n & 3];
}

extern "C" __global__ void unwritten_shared(int* static_words, int* dynamic_words) {
  __shared__ int words[33];
  extern __shared__ int of_launch[];
  static_words[blockIdx.x * 33 + threadIdx.x] = words[threadIdx.x];
  dynamic_words[blockIdx.x * 33 + threadIdx.x] = of_launch[threadIdx.x];
  words[threadIdx.x] = 1;
  of_launch[threadIdx.x] = 1;
}
