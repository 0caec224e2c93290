// y[i,j] = c[0]·x[i,j] + Σ c[k]·(x[i-k,j] + x[i+k,j] + x[i,j-k] + x[i,j+k]), k = 1 … 4; x, y [ROWS,COLUMNS], row-major,
// float32. Elements beyond the edges are 0.
//
// FLOPs: 21·ROWS·COLUMNS. Bytes: 8·ROWS·COLUMNS.
// Requires: x and y not overlapping; the coefficients c in constant memory.
// Launch: grid ceil(COLUMNS / BLOCK_X) × ceil(ROWS / (BLOCK_Y · POINTS)), block BLOCK_X × BLOCK_Y.
//
// A thread has POINTS elements of a column, BLOCK_Y rows apart. With STAGED the block copies its part of x and the 4
// elements around it to shared memory, otherwise each thread reads x.

namespace {

constexpr int kRadius = 4;
constexpr int kTileX = kBlockX + 2 * kRadius;
constexpr int kTileY = kBlockY * kPoints + 2 * kRadius;

__device__ __forceinline__ float element(const float* x, int row, int column, int rows, int columns) {
  const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
  return inside ? x[static_cast<long long>(row) * columns + column] : 0.0f;
}

}  // namespace

__constant__ float coefficients[kRadius + 1];

extern "C" __global__ void __launch_bounds__(kBlockX* kBlockY)
    star_stencil(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float tile[kStaged ? kTileY : 1][kTileX];
  const int thread_x = static_cast<int>(threadIdx.x);
  const int thread_y = static_cast<int>(threadIdx.y);
  const int first_row = static_cast<int>(blockIdx.y) * kBlockY * kPoints;
  const int first_column = static_cast<int>(blockIdx.x) * kBlockX;
  if constexpr (kStaged) {
    for (int i = thread_y; i < kTileY; i += kBlockY) {
      for (int j = thread_x; j < kTileX; j += kBlockX) {
        tile[i][j] = element(x, first_row + i - kRadius, first_column + j - kRadius, rows, columns);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int point = 0; point < kPoints; ++point) {
    const int i = point * kBlockY + thread_y;
    const auto at = [&](int down, int right) {
      if constexpr (kStaged) {
        return tile[kRadius + i + down][kRadius + thread_x + right];
      } else {
        return element(x, first_row + i + down, first_column + thread_x + right, rows, columns);
      }
    };
    float sum = coefficients[0] * at(0, 0);
#pragma unroll
    for (int k = 1; k <= kRadius; ++k) {
      sum += coefficients[k] * (at(-k, 0) + at(k, 0) + at(0, -k) + at(0, k));
    }
    if (first_row + i < rows && first_column + thread_x < columns) {
      y[static_cast<long long>(first_row + i) * columns + first_column + thread_x] = sum;
    }
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void star_stencil_reference(const float* x, double* y, int rows, int columns) {
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < static_cast<long long>(rows) * columns) {
    const int i = static_cast<int>(at / columns);
    const int j = static_cast<int>(at % columns);
    double sum = static_cast<double>(coefficients[0]) * x[at];
    for (int k = 1; k <= kRadius; ++k) {
      const double c = coefficients[k];
      sum += i >= k ? c * x[at - static_cast<long long>(k) * columns] : 0.0;
      sum += i + k < rows ? c * x[at + static_cast<long long>(k) * columns] : 0.0;
      sum += j >= k ? c * x[at - k] : 0.0;
      sum += j + k < columns ? c * x[at + k] : 0.0;
    }
    y[at] = sum;
  }
}

#endif
