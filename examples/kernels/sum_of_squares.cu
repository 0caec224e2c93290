// out[0] = Σ x[i]², i = 0 … N-1, float32 or float64, in one launch.
//
// FLOPs: 2·N. Bytes: sizeof(T)·N.
// Requires: x aligned to sizeof(T)·VECTOR bytes; `sums` of an element for each block; `tickets` zero before the first
// launch. Launch: grid as many blocks as there is work for, at most BLOCKS_PER_SM on each SM; block BLOCK.
//
// Each block leaves its sum in `sums` and takes a ticket. The block with the last one adds the sums, in their order, so
// that the result is always the same, and sets the ticket back to zero for the next launch. The search space names the
// template with its arguments, and the folder of the header.

#include <block_sum.cuh>

namespace reductions {

template <typename Element, int Count>
struct alignas(sizeof(Element) * Count) Vector {
  Element element[Count];
};

template <typename Element, int Block, int Width, int Items>
__global__ void __launch_bounds__(Block)
    sum_of_squares(const Element* __restrict__ x, Element* out, Element* sums, unsigned* tickets, int n) {
  __shared__ bool is_last;
  const int thread = static_cast<int>(threadIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  using Vectors = Vector<Element, Width>;
  const Vectors* const vectors = reinterpret_cast<const Vectors*>(x);
  const int stride = blocks * Block;
  Element sum = 0;
  for (int first = static_cast<int>(blockIdx.x) * Block + thread; first < n / Width; first += Items * stride) {
    Vectors items[Items];
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      items[i] = first + i * stride < n / Width ? vectors[first + i * stride] : Vectors{};
    }
#pragma unroll
    for (int i = 0; i < Items; ++i) {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        sum += items[i].element[j] * items[i].element[j];
      }
    }
  }
  if (blockIdx.x == 0 && thread < n % Width) {
    const Element element = x[n / Width * Width + thread];
    sum += element * element;
  }
  sum = block_sum<Block>(sum);
  if (thread == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();  // makes the sum visible to the block that takes the last ticket
    is_last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    __threadfence();
    const volatile Element* const others = sums;
    sum = 0;
    for (int block = thread; block < blocks; block += Block) {
      sum += others[block];
    }
    sum = block_sum<Block>(sum);
    if (thread == 0) {
      *out = sum;
      *tickets = 0;
    }
  }
}

#ifdef PASCALINE_REFERENCE

template <typename Element>
__global__ void sum_of_squares_reference(const Element* x, double* out, Element*, unsigned*, int n) {
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

}  // namespace reductions
