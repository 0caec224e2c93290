// The feed-forward block of a decoding step in one launch, for M = 1 … 8 rows, all row-major:
//   g[M, 2·INTERMEDIATE] = (x / √(mean(x²) + ε) · norm) · gate_upᵀ, rows 2i and 2i+1 of gate_up being gate and factor
//   i, c[M, HIDDEN] = x + (SiLU(g[:, 2i]) · g[:, 2i+1]) · downᵀ.
// float32 or float16 activations x and c, float32, float16, bfloat16 or float16x weights gate_up[2·INTERMEDIATE,
// HIDDEN] and down[HIDDEN, INTERMEDIATE], float32 norm[HIDDEN] and sums; EPSILON_NANO billionths are ε.
//
// FLOPs: 6·M·HIDDEN·INTERMEDIATE. Bytes: 3·HIDDEN·INTERMEDIATE · sizeof(WEIGHT) and the activations.
// Requires: buffers aligned to 16 bytes; sizes of at least 1, of any value. c may be x. `gated` of two
// copies of M·INTERMEDIATE floats, each filled up to a multiple of 4, and `counters` of kTicketCounters ints, all zero
// before the first launch (common/awaited.cuh, common/tickets.cuh).
// Launch: any number of blocks along x, of 32 · WARPS threads: BLOCKS_PER_SM · SMs of them, or as many as there are
// items if that is less. They need not all run at the same time.
//
// Blocks draw items of rows of gate_up, then of down (common/tickets.cuh). What was drawn of down has its first weights
// on their way before the block waits for what all blocks make of gate_up. Weights are read once, straight into
// registers (common/row_products.cuh); the rows that they are multiplied by lie in shared memory where there is room,
// which each block fills once a phase. A block asks for x before it knows what it has drawn, and normalises it while
// the first weights are on their way.

#include "common/activation.cuh"
#include "common/awaited.cuh"
#include "common/matrix.cuh"
#include "common/normed_rows.cuh"
#include "common/reduce.cuh"
#include "common/row_share.cuh"
#include "common/row_squares.cuh"
#include "common/tickets.cuh"
#include "common/types.cuh"

namespace {

constexpr int kWarps = WARPS;
constexpr int kThreads = 32 * kWarps;
constexpr int kM = ROWS_A;
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);
using Order = Tickets<TICKETS_AHEAD != 0>;
using Squares = RowSquares<kM, kWarps>;

struct GateUp {
  using Weight = WEIGHT;
  static constexpr int kM = ROWS_A;
  static constexpr int kRows = ROWS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kVector = VECTOR_BYTES / static_cast<int>(sizeof(WEIGHT));
  static constexpr int kUnroll = UNROLL;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
  static constexpr int kWarps = WARPS;
  static constexpr bool kPrefetch = PREFETCH != 0;
  static constexpr bool kReducePtx = REDUCE_PTX != 0;
  static constexpr bool kWhole = WHOLE_STEPS != 0;
};
struct Down {
  using Weight = WEIGHT;
  static constexpr int kM = ROWS_A;
  static constexpr int kRows = DOWN_ROWS;
  static constexpr int kWarpsK = DOWN_WARPS_K;
  static constexpr int kVector = VECTOR_BYTES / static_cast<int>(sizeof(WEIGHT));
  static constexpr int kUnroll = UNROLL;
  static constexpr bool kRowsAligned = DOWN_ALIGNED != 0;
  static constexpr int kWarps = WARPS;
  static constexpr bool kPrefetch = PREFETCH != 0;
  static constexpr bool kReducePtx = REDUCE_PTX != 0;
  static constexpr bool kWhole = DOWN_WHOLE_STEPS != 0;
};

static_assert(kM >= 1 && kM <= 8, "rows of x");
static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");
static_assert(MIN_BLOCKS == 0 || MIN_BLOCKS == RESIDENT, "as many resident blocks as are asked for");
static_assert(STAGE != 0 || (!kStaged && !kDownStaged), "rows are staged where that is asked for");
static_assert(kWarps % WARPS_K == 0 && kWarps % DOWN_WARPS_K == 0, "the warps of a row lie in one block");
static_assert(ROWS * kWarps / WARPS_K % 2 == 0, "a block holds gate and factor");

using Products = EarlyShare<GateUp>::Type;
using Back = EarlyShare<Down>::Type;
using Staged = StagedRows<GateUp::kVector>;
using Columns = RowColumns<kM, kThreads, EARLY_ROUNDS, MORE_ROUNDS != 0, GateUp::kRowsAligned, STORAGE>;

union Shared {
  Products::Sums gate_up;
  Back::Sums down;
};

// Rows of gate_up, whose sums become gated values. `columns` of x are on their way.
struct GatePhase {
  Products share;
  Shared& sums;
  Squares& squares;
  float* staged;
  Columns& columns;
  Awaited* gated;

  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive(const Order& /*order*/) const {
    if constexpr (kStaged) {
      columns.template stage<GateUp::kVector>(squares, staged);
    } else {
      square_rows<GateUp::kRowsAligned, kThreads>(squares, columns.x, columns.k);
    }
    __syncthreads();
  }
  __device__ __forceinline__ void work(int /*item*/, int turn) {
    if constexpr (kStaged) {
      share.multiply(sums.gate_up, turn, Staged(staged, share.k));
    } else {
      share.multiply(sums.gate_up, turn, NormedRows<STORAGE>{columns.x, columns.norm, columns.k});
    }
  }
  __device__ __forceinline__ void finish(int item, int turn) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int intermediate = share.n / 2;
    const int row = item * (Products::kItemRows / 2) + thread / kM;  // of the results
    if (thread < Products::kItemSums / 2 && row < intermediate) {
      const int m = thread % kM;
      const int index = thread / kM * (2 * kM) + m;
      const float factor = squares.factor(m, share.k, kEpsilon);
      const float gate = sums.gate_up.total(turn, index) * factor;
      const float other = sums.gate_up.total(turn, index + kM) * factor;
      hand_on(gated + static_cast<long long>(m) * intermediate + row, silu(gate) * other);
    }
  }
};

// Rows of down, whose sums are added to x.
struct BackPhase {
  Back share;
  Shared& sums;
  float* staged;
  const Awaited* gated;
  const STORAGE* x;
  STORAGE* c;
  float residual = 0.0f;  // of the thread's result of the item

  __device__ __forceinline__ bool wants(int item, long long& place) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = item * Back::kItemRows + thread / kM;
    place = static_cast<long long>(thread % kM) * share.n + row;
    return thread < Back::kItemSums && row < share.n;
  }
  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive(const Order& order) const {
    order.wait_for_first();
    if constexpr (kDownStaged) {
      stage_rows<kM, Down::kRowsAligned, kThreads, Down::kVector>(staged, gated, share.k);
    } else {
      wait_for_rows<kM, Down::kRowsAligned, kThreads>(gated, share.k);
    }
    __syncthreads();
  }
  __device__ __forceinline__ void work(int item, int turn) {
    long long place = 0;
    residual = wants(item, place) ? to_float(x[place]) : 0.0f;
    if constexpr (kDownStaged) {
      share.multiply(sums.down, turn, Staged(staged, share.k));
    } else {
      share.multiply(sums.down, turn, PlainRows<float>{&gated->value, share.k, 0});
    }
  }
  __device__ __forceinline__ void finish(int item, int turn) const {
    long long place = 0;
    if (wants(item, place)) {
      c[place] = from_float<STORAGE>(residual + sums.down.total(turn, static_cast<int>(threadIdx.x)));
    }
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, RESIDENT)
    mlp(const STORAGE* x, const float* __restrict__ norm, const WEIGHT* __restrict__ gate_up,
        const WEIGHT* __restrict__ down, STORAGE* c, Awaited* gated, int* counters, int hidden, int intermediate) {
  extern __shared__ __align__(16) float staged[];
  __shared__ Shared sums;
  __shared__ Squares squares;
  __shared__ Draws draws;
  const int first_items = (2 * intermediate + Products::kItemRows - 1) / Products::kItemRows;
  const Order order{counters, first_items, first_items + (hidden + Back::kItemRows - 1) / Back::kItemRows};
  const int copy = order.look_up_copy();
  const int ticket = order.draw();
  Columns columns{x, norm, hidden};
  if constexpr (kStaged) {
    columns.load(Columns::first_column());
  }
  if (threadIdx.x == 0) {
    draws.item[0] = ticket;
    draws.copy = copy;
  }
  __syncthreads();
  const int values = round_up_to_4(kM * intermediate);
  Awaited* const given = gated + draws.copy * values;
  clear_copy(gated + (draws.copy ^ 1) * values, values);
  order.run(
      draws,
      [&] { return GatePhase{Products(gate_up, 2 * intermediate, hidden), sums, squares, staged, columns, given}; },
      [&] { return BackPhase{Back(down, hidden, intermediate), sums, staged, given, x, c}; });
}
