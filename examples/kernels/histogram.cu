// counts[256] += how often each value occurs in x[N], uint8.
//
// Bytes: N and the counts, which are read and written.
// Requires: x aligned to 4 bytes.
// Launch: grid ceil(N / (4 · BLOCK · WORDS)), block BLOCK.
//
// A block counts in COPIES histograms in shared memory, so that threads of a warp that meet the same value seldom wait
// for each other. Without copies, all threads count in device memory.

namespace {

constexpr int kBins = 256;

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    histogram(const unsigned char* __restrict__ x, unsigned* counts, int n) {
  constexpr int kSpacing = kCopies > 0 ? kCopies : 1;  // copies of a bin are neighbours
  __shared__ unsigned copies[kCopies > 0 ? kBins * kCopies : 1];
  const int thread = static_cast<int>(threadIdx.x);
  unsigned* const bins = kCopies > 0 ? copies + thread % kSpacing : counts;
  if constexpr (kCopies > 0) {
    for (int i = thread; i < kBins * kCopies; i += kBlock) {
      copies[i] = 0;
    }
    __syncthreads();
  }

  const unsigned* const words = reinterpret_cast<const unsigned*>(x);
  const int first = static_cast<int>(blockIdx.x) * kBlock * kWords + thread;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const int word = first + i * kBlock;
    if (word < n / 4) {
      const unsigned values = words[word];
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) {
        atomicAdd(bins + (values >> (8 * byte) & 255u) * kSpacing, 1u);
      }
    }
  }
  if (blockIdx.x == 0 && thread < n % 4) {
    atomicAdd(bins + x[n / 4 * 4 + thread] * kSpacing, 1u);
  }

  if constexpr (kCopies > 0) {
    __syncthreads();
    for (int bin = thread; bin < kBins; bin += kBlock) {
      unsigned sum = 0;
#pragma unroll
      for (int copy = 0; copy < kCopies; ++copy) {
        sum += copies[bin * kCopies + copy];
      }
      if (sum > 0) {
        atomicAdd(counts + bin, sum);
      }
    }
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void histogram_reference(const unsigned char* x, double* counts, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    atomicAdd(counts + x[i], 1.0);
  }
}

#endif
