// out[0] = Σ x[i]·y[i], i = 0 … N-1, float32, in two launches: partial sums, and their sum.
//
// FLOPs: 2·N. Bytes: 8·N.
// Requires: `sums` of an element for each block of the first launch.
// Launches: partial_dots, grid as many blocks as there is work for, at most BLOCKS_PER_SM on each SM, block BLOCK;
// then total_of_dots, one block of TOTAL_BLOCK.
//
// The search space lists both launches. They share its parameters and the scratch buffer `sums`; a sweep times them and
// checks their result together.

#include <block_sum.cuh>

#ifndef BLOCK
#define BLOCK 256
#define ITEMS 2
#define TOTAL_BLOCK 128
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
    partial_dots(const float* __restrict__ x, const float* __restrict__ y, float* sums, int n) {
  const int stride = static_cast<int>(gridDim.x) * BLOCK;
  float sum = 0.0f;
  for (int first = static_cast<int>(blockIdx.x * BLOCK + threadIdx.x); first < n; first += ITEMS * stride) {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const int i = first + item * stride;
      sum += i < n ? x[i] * y[i] : 0.0f;
    }
  }
  sum = block_sum<BLOCK>(sum);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(TOTAL_BLOCK) total_of_dots(const float* sums, float* out, int count) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += TOTAL_BLOCK) {
    sum += sums[i];
  }
  sum = block_sum<TOTAL_BLOCK>(sum);
  if (threadIdx.x == 0) {
    *out = sum;
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void dot_product_reference(const float* x, const float* y, double* out, int n) {
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 256) {
    sum += static_cast<double>(x[i]) * y[i];
  }
  sum = block_sum<256>(sum);
  if (threadIdx.x == 0) {
    *out = sum;
  }
}

#endif
