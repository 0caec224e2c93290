// y[ROWS] = A[ROWS,COLUMNS] · x[COLUMNS], float32, A sparse in CSR: row r has values[i] in column columns[i] for i from
// offsets[r] to offsets[r+1] - 1.
//
// FLOPs: 2·NONZEROS. Bytes: 8·NONZEROS and, once each, offsets, x and y.
// Requires: y not overlapping others.
// Launch: grid ceil(ROWS · LANES / BLOCK), block BLOCK.
//
// LANES neighbouring threads share a row: many for long rows, so that they read neighbouring values.

namespace {

static_assert(kLanes <= 32 && (kLanes & (kLanes - 1)) == 0, "a row's lanes are in one warp");

// x is read at random, through the read-only cache or as any other memory.
__device__ __forceinline__ float read(const float* x) {
  if constexpr (kReadOnly) {
    return __ldg(x);
  } else {
    return *x;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    spmv_csr(const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values,
             const float* x, float* y, int rows) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int row = static_cast<int>(blockIdx.x) * (kBlock / kLanes) + static_cast<int>(threadIdx.x) / kLanes;
  float sum = 0.0f;
  if (row < rows) {
    const int end = offsets[row + 1];
#pragma unroll kUnroll
    for (int i = offsets[row] + lane; i < end; i += kLanes) {
      sum += values[i] * read(x + columns[i]);
    }
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if (row < rows && lane == 0) {
    y[row] = sum;
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void spmv_csr_reference(const int* offsets, const int* columns, const float* values,
                                              const float* x, double* y, int rows) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < rows) {
    double sum = 0.0;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i) {
      sum += static_cast<double>(values[i]) * x[columns[i]];
    }
    y[row] = sum;
  }
}

#endif
