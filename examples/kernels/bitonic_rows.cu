// y[ROWS,WIDTH]: each row of x[ROWS,WIDTH] in ascending order, float32, row-major, by a bitonic network.
//
// Compared pairs: ROWS · P/2 · log₂ P · (log₂ P + 1) / 2, P = PADDED. Bytes: 8·ROWS·WIDTH.
// Requires: x and y not overlapping, and no NaN.
// Launch: grid ceil(ROWS / ROWS_PER_BLOCK), block BLOCK.
//
// A block sorts ROWS_PER_BLOCK rows in shared memory, each filled up with infinity to PADDED elements, a power of two.

namespace {

constexpr int kTile = kRowsPerBlock * kPadded;

static_assert((kPadded & (kPadded - 1)) == 0, "the network sorts a power of two");
static_assert(kBlock % 32 == 0, "a block is whole warps");

// Waits between two steps of the network; `stride` is the longer of their strides.
__device__ __forceinline__ void barrier(int stride) {
  if (kWarpBarriers && stride <= 32) {
    __syncwarp();  // 32 neighbouring pairs of such a stride are 64 neighbouring keys, which no other warp touches
  } else {
    __syncthreads();
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    bitonic_rows(const float* __restrict__ x, float* __restrict__ y, int rows, int width) {
  __shared__ float keys[kTile];
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.x) * kRowsPerBlock;
  for (int i = thread; i < kTile; i += kBlock) {
    const int row = first_row + i / kPadded;
    const int column = i % kPadded;
    keys[i] =
        row < rows && column < width ? x[static_cast<long long>(row) * width + column] : __int_as_float(0x7f800000);
  }
  __syncthreads();
  for (int size = 2; size <= kPadded; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      for (int pair = thread; pair < kTile / 2; pair += kBlock) {
        const int low = 2 * pair - (pair & (stride - 1));
        const float a = keys[low];
        const float b = keys[low + stride];
        const bool ascends = (low & (kPadded - 1) & size) == 0;
        keys[low] = ascends ? fminf(a, b) : fmaxf(a, b);
        keys[low + stride] = ascends ? fmaxf(a, b) : fminf(a, b);
      }
      barrier(stride > 1 ? stride : size);  // the next size begins with a stride of this one
    }
  }
  __syncthreads();
  for (int i = thread; i < kTile; i += kBlock) {
    const int row = first_row + i / kPadded;
    const int column = i % kPadded;
    if (row < rows && column < width) {
      y[static_cast<long long>(row) * width + column] = keys[i];
    }
  }
}

#ifdef PASCALINE_REFERENCE

// An element's place is the number of those that come before it.
extern "C" __global__ void bitonic_rows_reference(const float* x, double* y, int rows, int width) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < static_cast<long long>(rows) * width) {
    const float* const row = x + i / width * width;
    const int own = static_cast<int>(i % width);
    int place = 0;
    for (int other = 0; other < width; ++other) {
      place += row[other] < row[own] || (row[other] == row[own] && other < own);
    }
    y[i / width * width + place] = row[own];
  }
}

#endif
