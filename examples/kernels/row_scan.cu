// y[r,i] = x[r,0] + … + x[r,i]: the running sums of each row of x[ROWS,WIDTH], float32, row-major.
//
// FLOPs: ROWS·WIDTH. Bytes: 8·ROWS·WIDTH.
// Requires: x and y not overlapping.
// Launch: grid ROWS, block BLOCK.
//
// A block takes a row in tiles of BLOCK · ITEMS elements and carries the sum of the tiles before.

namespace {

static_assert(kBlock % 32 == 0, "a block is whole warps");

// The sum of what the threads before this one have. `total` becomes the sum of all of the block.
__device__ __forceinline__ float sum_before(float value, float* partial, float& total) {
  const int thread = static_cast<int>(threadIdx.x);
  float before = 0.0f;
  if constexpr (kShuffle) {
    float sum = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const float other = __shfl_up_sync(0xffffffffu, sum, distance);
      sum += thread % 32 >= distance ? other : 0.0f;
    }
    if (thread % 32 == 31) {
      partial[thread / 32] = sum;
    }
    const float lanes = __shfl_up_sync(0xffffffffu, sum, 1);
    __syncthreads();
    total = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kBlock / 32; ++warp) {
      before += warp < thread / 32 ? partial[warp] : 0.0f;
      total += partial[warp];
    }
    before += thread % 32 > 0 ? lanes : 0.0f;
  } else {
    partial[thread] = value;
    __syncthreads();
#pragma unroll
    for (int distance = 1; distance < kBlock; distance *= 2) {
      const float other = thread >= distance ? partial[thread - distance] : 0.0f;
      __syncthreads();
      partial[thread] += other;
      __syncthreads();
    }
    before = thread > 0 ? partial[thread - 1] : 0.0f;
    total = partial[kBlock - 1];
  }
  __syncthreads();  // until all have read what the next tile overwrites
  return before;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    row_scan(const float* __restrict__ x, float* __restrict__ y, int width) {
  __shared__ float partial[kShuffle ? kBlock / 32 : kBlock];
  const float* const from = x + static_cast<long long>(blockIdx.x) * width;
  float* const to = y + static_cast<long long>(blockIdx.x) * width;
  float carry = 0.0f;
  for (int tile = 0; tile < width; tile += kBlock * kItems) {
    const int first = tile + static_cast<int>(threadIdx.x) * kItems;
    float sums[kItems];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      sum += first + i < width ? from[first + i] : 0.0f;
      sums[i] = sum;
    }
    float total = 0.0f;
    const float before = carry + sum_before(sum, partial, total);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (first + i < width) {
        to[first + i] = before + sums[i];
      }
    }
    carry += total;
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void row_scan_reference(const float* x, double* y, int width) {
  double sum = 0.0;
  for (int i = 0; i < width; ++i) {
    sum += x[static_cast<long long>(blockIdx.x) * width + i];
    y[static_cast<long long>(blockIdx.x) * width + i] = sum;
  }
}

#endif
