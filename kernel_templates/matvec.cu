// C[M,N] = epilogue(A[M,K] · B[N,K]ᵀ) for M = 1 … 8, all row-major: what a decoding step does with a linear layer's
// weight. float32 or float16 activations, float32, float16, bfloat16 or float16x weights, float32 accumulation.
//
// Epilogues as in matmul. FLOPs: 2·M·N·K. Bytes: (M·K + M·N) · sizeof(STORAGE) + N·K · sizeof(WEIGHT).
// Requires: buffers aligned to 16 bytes; N, K >= 1, of any value. C may be the residual, element for element. With
// SPLIT_K > 1: `workspace` of SPLIT_K floats an element of C (rows rounded up to whole blocks), and `counters` of one
// int a block of rows, zero before the first launch (each launch leaves them zero).
// Launch: grid (ceil(N / (ROWS · WARPS / WARPS_K)), SPLIT_K), block 32 · WARPS.
//
// The weights are read once, straight into registers: a warp takes ROWS rows of B, its lanes lying along K, with UNROLL
// loads of each row in flight. WARPS_K warps and SPLIT_K blocks share the depth of a row.

#include "common/epilogue.cuh"
#include "common/matrix.cuh"
#include "common/reduce.cuh"
#include "common/row_products.cuh"
#include "common/split.cuh"
#include "common/types.cuh"
#include "common/vector.cuh"

namespace {

constexpr int kRows = ROWS;
constexpr int kWarpsK = WARPS_K;
constexpr int kVector = VECTOR_BYTES / static_cast<int>(sizeof(WEIGHT));
constexpr int kM = ROWS_A;

struct Constants {
  using Weight = WEIGHT;
  static constexpr int kM = ROWS_A;
  static constexpr int kRows = ROWS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kVector = ::kVector;
  static constexpr int kUnroll = UNROLL;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
};
using Products = RowProducts<Constants>;

constexpr int kThreads = 32 * kWarps;
constexpr int kBlockRows = kRows * kWarps / kWarpsK;
constexpr int kSums = Products::kSums;
constexpr int kPadded = Products::kPadded;

static_assert(kM >= 1 && kM <= 8, "rows of A");
static_assert(kWarps % kWarpsK == 0, "the warps of a row lie in one block");
static_assert(!Epilogue<kFinish>::kHalves || kBlockRows % 2 == 0, "a block holds gate and factor");

using Form = Epilogue<kFinish>;
// Whether a warp has whole sums, which then need not meet others in shared memory.
constexpr bool kAlone = kWarpsK == 1 && kSplitK == 1 && (!Form::kHalves || kRows % 2 == 0);

// The operands of an epilogue, read before the sums are known.
struct Operands {
  float bias = 0.0f;
  float residual = 0.0f;
  __device__ __forceinline__ Operands(const float* biases, const STORAGE* residuals, bool wanted, int row_a, int column,
                                      int n) {
    if constexpr (Form::kHasBias) {
      bias = wanted ? biases[column] : 0.0f;
    }
    if constexpr (Form::kHasResidual) {
      residual = wanted ? to_float(residuals[static_cast<long long>(row_a) * n + column]) : 0.0f;
    }
  }
};

// Adds up what warps and blocks summed of the same rows. partial[0] then has row of the block * kM + row of A, in the
// block for which it returns true.
__device__ __forceinline__ bool gather_sums(float (&partial)[kWarpsK][kBlockRows * kM], float* workspace,
                                            int* counters) {
  __syncthreads();
  float* place = workspace + static_cast<long long>(blockIdx.x) * (kSplitK * kBlockRows * kM);
  for (int i = static_cast<int>(threadIdx.x); i < kBlockRows * kM; i += kThreads) {
    float total = partial[0][i];
#pragma unroll
    for (int other = 1; other < kWarpsK; ++other) {
      total += partial[other][i];
    }
    partial[0][i] = total;
    if constexpr (kSplitK > 1) {
      place[blockIdx.y * (kBlockRows * kM) + i] = total;
    }
  }
  if constexpr (kSplitK > 1) {
    if (!arrived_last(counters + blockIdx.x, kSplitK)) {
      return false;
    }
    for (int i = static_cast<int>(threadIdx.x); i < kBlockRows * kM; i += kThreads) {
      float total = 0.0f;
#pragma unroll
      for (int split = 0; split < kSplitK; ++split) {
        total += load_written<1>(place + split * (kBlockRows * kM) + i).element[0];
      }
      partial[0][i] = total;
    }
  }
  __syncthreads();
  return true;
}

// Finishes the block's sums and stores them.
__device__ __forceinline__ void store_sums(STORAGE* c, const float* sums, const float* bias, const STORAGE* residual,
                                           int first_row, int n) {
  constexpr int kWidth = Form::kHalves ? 2 : 1;
  for (int i = static_cast<int>(threadIdx.x); i < kBlockRows / kWidth * kM; i += kThreads) {
    const int row = i / kM * kWidth;
    const int row_a = i % kM;
    float values[kWidth];
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      values[v] = sums[(row + v) * kM + row_a];
    }
    store_finished<kFinish, false, kWidth>(c, values, bias, residual, row_a, first_row + row, n);
  }
}

// The same from the lanes of a warp that have whole sums.
__device__ __forceinline__ void store_lane(STORAGE* c, float sum, Operands operands, bool wanted, int row_a, int column,
                                           int n) {
  if constexpr (Form::kHalves) {
    const float factor = __shfl_down_sync(0xffffffffu, sum, 32 / kPadded);
    if (wanted && column % 2 == 0) {
      c[static_cast<long long>(row_a) * (n / 2) + column / 2] = from_float<STORAGE>(silu(sum) * factor);
    }
  } else if (wanted) {
    c[static_cast<long long>(row_a) * n + column] =
        from_float<STORAGE>(finish<kFinish>(sum, operands.bias, operands.residual));
  }
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS > 0 ? MIN_BLOCKS : 1)
    matvec(const STORAGE* __restrict__ a, const WEIGHT* __restrict__ b, const float* __restrict__ bias,
           const STORAGE* residual, STORAGE* c, float* workspace, int* counters, int n, int k) {
  extern __shared__ __align__(16) float staged[];
  const int depth = ((k + kSplitK - 1) / kSplitK + 7) / 8 * 8;
  const int begin = static_cast<int>(blockIdx.y) * depth;
  const int end = k - begin < depth ? k : begin + depth;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(blockIdx.x) * kBlockRows;
  const int warp_row = warp / kWarpsK * kRows;

  const Matrix<WEIGHT> matrix_b(b);
  const WEIGHT* rows[kRows];
  Products::point(rows, matrix_b, first_row + warp_row, n, k);
  const int index = lane / (32 / kPadded);  // of the sum that this lane ends up with
  const int row_a = index / kRows;
  const int column = first_row + warp_row + index % kRows;
  const bool wanted = lane % (32 / kPadded) == 0 && index < kSums && column < n;
  const Operands operands(bias, residual, kAlone && wanted, row_a, column, n);
  float sums[kPadded] = {};
  if constexpr (kStageA) {
    for (int i = 0; i < kM; ++i) {
      for (int at = static_cast<int>(threadIdx.x); at < end - begin; at += kThreads) {
        staged[i * depth + at] = to_float(a[static_cast<long long>(i) * k + begin + at]);
      }
    }
    __syncthreads();
    Products::multiply_rows(sums, matrix_b, rows, PlainRows<float>{staged, depth, begin}, begin, end);
  } else {
    Products::multiply_rows(sums, matrix_b, rows, PlainRows<STORAGE>{a, k, 0}, begin, end);
  }
  const float sum = warp_reduce_many<Sum, kReducePtx, kPadded>(sums);
  if constexpr (kAlone) {
    store_lane(c, sum, operands, wanted, row_a, column, n);
  } else {
    __shared__ float partial[kWarpsK][kBlockRows * kM];
    if (lane % (32 / kPadded) == 0 && index < kSums) {
      partial[warp % kWarpsK][(warp_row + index % kRows) * kM + row_a] = sum;
    }
    if (gather_sums(partial, workspace, counters)) {
      store_sums(c, partial[0], bias, residual, first_row, n);
    }
  }
}

#else

// The same in float64, a warp an element of the product.
// Launch: grid (N, M), block 32.
extern "C" __global__ void matvec_reference(const STORAGE* __restrict__ a, const WEIGHT* __restrict__ b,
                                            const float* __restrict__ bias, const STORAGE* residual, double* c,
                                            float* workspace, int* counters, int n, int k) {
  const int column = static_cast<int>(blockIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  const Matrix<WEIGHT> matrix_b(b);
  const auto dot = [&](int row_b) {
    double sum = 0.0;
    for (int i = static_cast<int>(threadIdx.x); i < k; i += 32) {
      sum += static_cast<double>(to_float(a[static_cast<long long>(row) * k + i])) *
             matrix_b(matrix_b.elements[static_cast<long long>(row_b) * k + i]);
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    return sum;
  };
  const double sum = dot(column);
  const double gate = dot(column & ~1);
  if (threadIdx.x == 0) {
    store_finished<kFinish>(c, sum, gate, bias, residual, static_cast<long long>(row) * n + column, column);
  }
}

#endif
