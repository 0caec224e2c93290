// out[0] = Σ x[i]², i = 0 … N-1, float32, in one launch.
//
// FLOPs: 2·N. Bytes: 4·N.
// Requires: x aligned to 4·VECTOR bytes; `sums` of a float for each block; `tickets` zero before the first launch.
// Launch: grid as many blocks as there is work for, at most BLOCKS_PER_SM on each SM; block BLOCK.
//
// Each block leaves its sum in `sums` and takes a ticket. The block with the last one adds the sums, in their order, so
// that the result is always the same, and sets the ticket back to zero for the next launch.

namespace {

struct alignas(4 * kVector) Vector {
  float element[kVector];
};

// Over the block; thread 0 gets the sum.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float partial[kBlock / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  __syncthreads();  // until thread 0 has read the parts of the sum before
  if (threadIdx.x % 32 == 0) {
    partial[threadIdx.x / 32] = value;
  }
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kBlock / 32; ++warp) {
    sum += partial[warp];
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    sum_of_squares(const float* __restrict__ x, float* out, float* sums, unsigned* tickets, int n) {
  __shared__ bool is_last;
  const int thread = static_cast<int>(threadIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  const Vector* const vectors = reinterpret_cast<const Vector*>(x);
  const int stride = blocks * kBlock;
  float sum = 0.0f;
  for (int first = static_cast<int>(blockIdx.x) * kBlock + thread; first < n / kVector; first += kItems * stride) {
    Vector items[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      items[i] = first + i * stride < n / kVector ? vectors[first + i * stride] : Vector{};
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        sum += items[i].element[j] * items[i].element[j];
      }
    }
  }
  if (blockIdx.x == 0 && thread < n % kVector) {
    const float element = x[n / kVector * kVector + thread];
    sum += element * element;
  }
  sum = block_sum(sum);
  if (thread == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();  // makes the sum visible to the block that takes the last ticket
    is_last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    __threadfence();
    const volatile float* const others = sums;
    sum = 0.0f;
    for (int block = thread; block < blocks; block += kBlock) {
      sum += others[block];
    }
    sum = block_sum(sum);
    if (thread == 0) {
      *out = sum;
      *tickets = 0;
    }
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void sum_of_squares_reference(const float* x, double* out, float*, unsigned*, int n) {
  __shared__ double partial[256];
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 256) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 256; ++i) {
      sum += partial[i];
    }
    *out = sum;
  }
}

#endif
