// C[M,N] = epilogue(rmsnorm(A)[M,K] · B[N,K]ᵀ) for M = 1 … 8, all row-major: what a decoding step does with a
// normalisation and the linear layer after it, in one launch; rmsnorm(A) = A / √(mean(A²) + ε) · norm, with
// EPSILON_NANO billionths as ε. float32 or float16 activations, float32, float16, bfloat16 or float16x weights, float32
// norm[K] and sums. As matvec_q with NORM does for weights in packed formats.
//
// Epilogues as in matmul. FLOPs: 2·M·N·K. Bytes: (M·K + M·N) · sizeof(STORAGE) + N·K · sizeof(WEIGHT) + 4·K.
// Requires: buffers aligned to 16 bytes; N, K >= 1, of any value. C may be the residual, element for element.
// Launch: grid ceil(N / (ROWS · WARPS / WARPS_K)), with BLOCKS_PER_SM at most that many for each SM, or any other
// number of blocks then; block 32 · WARPS.
//
// Each block normalises the rows for itself, while its first weights are on their way; for one row that is less than
// the launch that it saves. What is multiplied is A · norm, and the products are divided by √(mean(A²) + ε) at last.
// With BLOCKS_PER_SM a block does so once for all its rows of B. Without room in shared memory, or with STAGE 0, A ·
// norm is made where it is read, by each warp for itself, which then has the squares of what it reads, too.

#include "common/epilogue.cuh"
#include "common/normed_rows.cuh"
#include "common/row_share.cuh"
#include "common/types.cuh"

namespace {

struct Constants {
  using Weight = WEIGHT;
  static constexpr int kM = ROWS_A;
  static constexpr int kRows = ROWS;
  static constexpr int kWarps = WARPS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kVector = VECTOR_BYTES / static_cast<int>(sizeof(WEIGHT));
  static constexpr int kUnroll = UNROLL;
  static constexpr bool kSteady = PREFETCH != 0;
  static constexpr bool kReducePtx = REDUCE_PTX != 0;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
  static constexpr bool kWholeSteps = WHOLE_STEPS != 0;
};
using Share = EarlyShare<Constants>::Type;
using Form = Epilogue<FINISH>;

constexpr int kM = ROWS_A;
constexpr int kThreads = 32 * WARPS;
constexpr bool kContinues = BLOCKS_PER_SM > 0;  // with other rows of B after its first
constexpr int kWidth = Form::kHalves ? 2 : 1;   // sums of a result
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);

// All warps have columns of their own where rows are staged, else those that share rows of B.
using Squares = RowSquares<ROWS_A, kStaged ? WARPS : WARPS_K>;
using Columns = RowColumns<ROWS_A, kThreads, EARLY_ROUNDS, MORE_ROUNDS != 0, Constants::kRowsAligned, STORAGE>;
using Staged = StagedRows<Constants::kVector>;

static_assert(kM >= 1 && kM <= 8, "rows of A");
static_assert(WARPS % WARPS_K == 0, "the warps of a row lie in one block");
static_assert(STAGE != 0 || !kStaged, "rows are staged where that is asked for");
static_assert(Share::kItemRows % kWidth == 0, "a block holds gate and factor");

// What RMSNorm multiplies row m of A by, with 1 / K.
__device__ __forceinline__ float factor_of(const Squares& squares, int m, float inverse) {
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < (kStaged ? WARPS : WARPS_K); ++warp) {
    total += squares.sum[m][warp];
  }
  return rsqrtf(fmaf(total, inverse, kEpsilon));
}

// What a thread finishes of an item: a result of row m of A.
struct Results {
  const float* __restrict__ bias;
  const STORAGE* residual;
  STORAGE* c;
  int n;
  int m = static_cast<int>(threadIdx.x) % kM;
  int of_item = static_cast<int>(threadIdx.x) / kM * kWidth;

  struct Addends {
    float bias = 0.0f;
    float residual = 0.0f;
  };

  // The first of B's rows that the result is of.
  __device__ __forceinline__ int row(int item) const { return item * Share::kItemRows + of_item; }
  __device__ __forceinline__ bool wants(int item) const { return of_item < Share::kItemRows && row(item) < n; }

  // Long before they are added.
  __device__ __forceinline__ Addends load(int item) const {
    Addends out;
    if constexpr (Form::kHasBias) {
      out.bias = wants(item) ? load_here<1>(bias + row(item)).element[0] : 0.0f;
    }
    if constexpr (Form::kHasResidual) {
      out.residual = wants(item) ? to_float(residual[static_cast<long long>(m) * n + row(item)]) : 0.0f;
    }
    return out;
  }

  __device__ __forceinline__ void store(int item, const Share::Sums& sums, int turn, const Addends& addends,
                                        float factor) const {
    if (wants(item)) {
      const float sum = sums.total(turn, of_item * kM + m) * factor;
      if constexpr (Form::kHalves) {
        const float other = sums.total(turn, (of_item + 1) * kM + m) * factor;
        c[static_cast<long long>(m) * (n / 2) + row(item) / 2] = from_float<STORAGE>(silu(sum) * other);
      } else {
        c[static_cast<long long>(m) * n + row(item)] =
            from_float<STORAGE>(finish<FINISH>(sum, addends.bias, addends.residual));
      }
    }
  }
};

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    matvec_normed(const STORAGE* __restrict__ a, const float* __restrict__ norm, const WEIGHT* __restrict__ b,
                  const float* __restrict__ bias, const STORAGE* residual, STORAGE* c, int n, int k) {
  extern __shared__ __align__(16) float staged[];
  __shared__ Share::Sums sums;
  __shared__ Squares squares;
  const int first = static_cast<int>(blockIdx.x);
  const int items = (n + Share::kItemRows - 1) / Share::kItemRows;
  const Results results{bias, residual, c, n};
  Share share(b, n, k);
  Columns columns{a, norm, k};
  if constexpr (kStaged) {
    columns.load(Columns::first_column());
  }
  share.begin(first);
  Results::Addends addends = results.load(first);
  const float inverse = __fdividef(1.0f, static_cast<float>(k));
  float factor = 0.0f;
  if constexpr (kStaged) {
    columns.template stage<Constants::kVector>(squares, staged);
    __syncthreads();
  }
  int turn = 0;
  for (int item = first;;) {
    const int next = kContinues && item + static_cast<int>(gridDim.x) < items ? item + static_cast<int>(gridDim.x) : -1;
    float products[Share::Products::kPadded] = {};
    float of_lane[kM] = {};  // squares
    if constexpr (kStaged) {
      share.template add_products<kContinues>(products, Staged(staged, k), next);
    } else {
      const SquaredRows<STORAGE, kM> rows{{a, norm, k}, of_lane};
      share.template add_products<kContinues>(products, rows, next);
    }
    const Results::Addends later = kContinues && next >= 0 ? results.load(next) : Results::Addends{};
    share.leave(sums, turn, products);
    if (!kStaged && item == first && threadIdx.x / 32 < WARPS_K) {
      squares.leave(of_lane);
    }
    if (kStaged && item == first) {
      factor = factor_of(squares, results.m, inverse);
    }
    __syncthreads();
    if (!kStaged && item == first) {
      factor = factor_of(squares, results.m, inverse);
    }
    results.store(item, sums, turn, addends, factor);
    if (!kContinues || next < 0) {
      return;
    }
    addends = later;
    item = next;
    turn ^= 1;
  }
}

#else

// The same in float64, one thread an element of the product.
// Launch: grid (ceil(N / 32), M), block 32.
extern "C" __global__ void matvec_normed_reference(const STORAGE* __restrict__ a, const float* __restrict__ norm,
                                                   const WEIGHT* __restrict__ b, const float* __restrict__ bias,
                                                   const STORAGE* residual, double* c, int n, int k) {
  const int row = static_cast<int>(blockIdx.y);
  const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  if (column >= n) {
    return;
  }
  const STORAGE* values = a + static_cast<long long>(row) * k;
  const Matrix<WEIGHT> matrix(b);
  double squares = 0.0;
  double sum = 0.0;
  double gate = 0.0;
  for (int i = 0; i < k; ++i) {
    const double value = to_float(values[i]);
    squares += value * value;
    sum += value * norm[i] * matrix(matrix.elements[static_cast<long long>(column) * k + i]);
    gate += value * norm[i] * matrix(matrix.elements[static_cast<long long>(column & ~1) * k + i]);
  }
  const double factor = 1.0 / sqrt(squares / k + EPSILON_NANO / 1e9);
  store_finished<FINISH>(c, sum * factor, gate * factor, bias, residual, static_cast<long long>(row) * n + column,
                         column);
}

#endif
