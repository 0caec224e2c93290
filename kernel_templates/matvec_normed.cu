// C[M,N] = epilogue(rmsnorm(A)[M,K] · B[N,K]ᵀ) for M = 1 … 8, all row-major: what a decoding step does with a
// normalisation and the linear layer after it, in one launch; rmsnorm(A) = A / √(mean(A²) + ε) · norm, with
// EPSILON_NANO billionths as ε. float32 or float16 activations, float32, float16, bfloat16 or float16x weights, float32
// norm[K] and sums. As matvec_q with NORM does for weights in packed formats.
//
// Epilogues as in matmul. FLOPs: 2·M·N·K. Bytes: (M·K + M·N) · sizeof(STORAGE) + N·K · sizeof(WEIGHT) + 4·K.
// Requires: buffers aligned to 16 bytes; N, K >= 1, of any value. C may be the residual, element for element.
// Launch: grid ceil(N / (ROWS · WARPS / WARPS_K)), block 32 · WARPS.
//
// Each block normalises the rows for itself, while its first weights are on their way; for one row that is less than
// the launch that it saves. What is multiplied is A · norm, and the products are divided by √(mean(A²) + ε) at last.

#include "common/epilogue.cuh"
#include "common/normed_rows.cuh"
#include "common/row_share.cuh"
#include "common/types.cuh"

#ifndef ROWS
#define ROWS 2  // rows of B a warp works on
#endif
#ifndef WARPS
#define WARPS 8  // warps a block
#endif
#ifndef WARPS_K
#define WARPS_K 1  // warps of a block that share the depth of the same rows
#endif
#ifndef VECTOR_BYTES
#define VECTOR_BYTES 16  // bytes of weights a load takes
#endif
#ifndef UNROLL
#define UNROLL 2  // loads of a row in flight
#endif
#ifndef PREFETCH
#define PREFETCH 0  // 1: the next loads are on their way while those before are multiplied
#endif
#ifndef STAGE
#define STAGE 1  // 1: normalised rows lie in shared memory where there is room; 0: made of A where they are read
#endif
#ifndef REDUCE_PTX
#define REDUCE_PTX 0  // 1: a step of a reduction is one piece of inline PTX
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1  // resident blocks an SM asked of the compiler
#endif
#ifndef STAGED
#define STAGED 1  // 1: shared memory has room for the normalised rows, and STAGE asks for it
#endif
#ifndef ROWS_A
#define ROWS_A 1  // M
#endif
#ifndef ROWS_ALIGNED
#define ROWS_ALIGNED 0  // 1: K is a multiple of 8
#endif
#ifndef FINISH
#define FINISH 0  // the epilogue, by its number in common/epilogue.cuh
#endif
#ifndef EPSILON_NANO
#define EPSILON_NANO 1000  // billionths that are added to the mean of squares
#endif
#ifndef STORAGE
#define STORAGE float32  // element type of A, C and the residual
#endif
#ifndef WEIGHT
#define WEIGHT float32  // element type of B
#endif

namespace {

struct Constants {
  using Weight = WEIGHT;
  static constexpr int kM = ROWS_A;
  static constexpr int kRows = ROWS;
  static constexpr int kWarps = WARPS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kVector = VECTOR_BYTES / static_cast<int>(sizeof(WEIGHT));
  static constexpr int kUnroll = UNROLL;
  static constexpr bool kPrefetch = PREFETCH != 0;
  static constexpr bool kReducePtx = REDUCE_PTX != 0;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
};
using Share = RowShare<Constants>;
using Squares = RowSquares<ROWS_A, WARPS>;
using Form = Epilogue<FINISH>;

constexpr int kM = ROWS_A;
constexpr int kThreads = 32 * WARPS;
constexpr bool kStaged = STAGED != 0;
constexpr int kWidth = Form::kHalves ? 2 : 1;  // sums of a result
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);

static_assert(kM >= 1 && kM <= 8, "rows of A");
static_assert(WARPS % WARPS_K == 0, "the warps of a row lie in one block");
static_assert(STAGE != 0 || !kStaged, "rows are staged where that is asked for");
static_assert(Share::kItemRows % kWidth == 0, "a block holds gate and factor");

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    matvec_normed(const STORAGE* __restrict__ a, const float* __restrict__ norm, const WEIGHT* __restrict__ b,
                  const float* __restrict__ bias, const STORAGE* residual, STORAGE* c, int n, int k) {
  extern __shared__ __align__(16) float staged[];
  __shared__ Share::Sums sums;
  __shared__ Squares squares;
  const int item = static_cast<int>(blockIdx.x);
  Share share(b, n, k);
  share.begin(item);
  // A thread's result: of row m of A, `row` being the first of B's that it is of.
  const int m = static_cast<int>(threadIdx.x) % kM;
  const int of_item = static_cast<int>(threadIdx.x) / kM * kWidth;
  const int row = item * Share::kItemRows + of_item;
  const bool wanted = of_item < Share::kItemRows && row < n;
  float added = 0.0f;
  float before = 0.0f;
  if constexpr (Form::kHasBias) {
    added = wanted ? bias[row] : 0.0f;
  }
  if constexpr (Form::kHasResidual) {
    before = wanted ? to_float(residual[static_cast<long long>(m) * n + row]) : 0.0f;
  }
  normalise_rows<kStaged, Constants::kRowsAligned, kThreads>(squares, staged, a, norm, k);
  if constexpr (kStaged) {
    __syncthreads();
    share.multiply(sums, 0, PlainRows<float>{staged, staged_stride(k), 0});
  } else {
    share.multiply(sums, 0, NormedRows<STORAGE>{a, norm, k});
  }
  __syncthreads();
  if (wanted) {
    const float factor = squares.factor(m, k, kEpsilon);
    const float sum = sums.total(0, of_item * kM + m) * factor;
    if constexpr (Form::kHalves) {
      const float other = sums.total(0, (of_item + 1) * kM + m) * factor;
      c[static_cast<long long>(m) * (n / 2) + row / 2] = from_float<STORAGE>(silu(sum) * other);
    } else {
      c[static_cast<long long>(m) * n + row] = from_float<STORAGE>(finish<FINISH>(sum, added, before));
    }
  }
}
