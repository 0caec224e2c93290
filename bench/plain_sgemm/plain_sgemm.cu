// C[M,N] = A[M,K] · B[K,N], float32, row-major: the plain kernel that tuners are compared on, with one slice of A and B
// in shared memory at a time. Not one of the library's.
//
// FLOPs: 2·M·N·K. Bytes: 4·(M·K + K·N + M·N).
// Launch: grid ceil(N / (BLOCK_X · TILE_X)) x ceil(M / (BLOCK_Y · TILE_Y)), block BLOCK_X x BLOCK_Y.

#ifndef BLOCK_X
#define BLOCK_X 16  // threads of a block along N
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 16  // threads of a block along M
#endif
#ifndef TILE_X
#define TILE_X 4  // columns of C a thread computes
#endif
#ifndef TILE_Y
#define TILE_Y 4  // rows of C a thread computes
#endif
#ifndef TILE_K
#define TILE_K 16  // depth of a slice
#endif

static_assert(BLOCK_X * BLOCK_Y <= 1024, "threads of a block");

extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y)
    plain_sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  constexpr int kRows = BLOCK_Y * TILE_Y;
  constexpr int kColumns = BLOCK_X * TILE_X;
  constexpr int kThreads = BLOCK_X * BLOCK_Y;
  __shared__ float slice_a[kRows * TILE_K];
  __shared__ float slice_b[TILE_K * kColumns];
  const int row = static_cast<int>(blockIdx.y) * kRows;
  const int column = static_cast<int>(blockIdx.x) * kColumns;
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int thread = y * BLOCK_X + x;
  float sum[TILE_Y][TILE_X] = {};
  for (int first = 0; first < k; first += TILE_K) {
    for (int i = thread; i < kRows * TILE_K; i += kThreads) {
      const int from_row = row + i / TILE_K;
      const int from = first + i % TILE_K;
      slice_a[i] = from_row < m && from < k ? a[static_cast<long long>(from_row) * k + from] : 0.0f;
    }
    for (int i = thread; i < TILE_K * kColumns; i += kThreads) {
      const int from = first + i / kColumns;
      const int from_column = column + i % kColumns;
      slice_b[i] = from < k && from_column < n ? b[static_cast<long long>(from) * n + from_column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < TILE_K; ++depth) {
      float of_b[TILE_X];
#pragma unroll
      for (int j = 0; j < TILE_X; ++j) {
        of_b[j] = slice_b[depth * kColumns + j * BLOCK_X + x];
      }
#pragma unroll
      for (int i = 0; i < TILE_Y; ++i) {
        const float of_a = slice_a[(i * BLOCK_Y + y) * TILE_K + depth];
#pragma unroll
        for (int j = 0; j < TILE_X; ++j) {
          sum[i][j] += of_a * of_b[j];
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < TILE_Y; ++i) {
#pragma unroll
    for (int j = 0; j < TILE_X; ++j) {
      const int to_row = row + i * BLOCK_Y + y;
      const int to_column = column + j * BLOCK_X + x;
      if (to_row < m && to_column < n) {
        c[static_cast<long long>(to_row) * n + to_column] = sum[i][j];
      }
    }
  }
}

#ifdef PASCALINE_REFERENCE

// The same, one thread an element, in float64: what results are compared with.
extern "C" __global__ void plain_sgemm_reference(const float* __restrict__ a, const float* __restrict__ b,
                                                 double* __restrict__ c, int m, int n, int k) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (row < m && column < n) {
    double sum = 0;
    for (int depth = 0; depth < k; ++depth) {
      sum += static_cast<double>(a[static_cast<long long>(row) * k + depth]) *
             b[static_cast<long long>(depth) * n + column];
    }
    c[static_cast<long long>(row) * n + column] = sum;
  }
}

#endif
