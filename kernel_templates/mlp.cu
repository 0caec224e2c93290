// The feed-forward block of a decoding step in one launch, for M = 1 … 8 rows, all row-major:
//   g[M, 2·INTERMEDIATE] = (x / √(mean(x²) + ε) · norm) · gate_upᵀ, rows 2i and 2i+1 of gate_up being gate and factor
//   i, c[M, HIDDEN] = x + (SiLU(g[:, 2i]) · g[:, 2i+1]) · downᵀ.
// float32 or float16 activations x and c (STORAGE); gate_up[2·INTERMEDIATE, HIDDEN] (WEIGHT) and down[HIDDEN,
// INTERMEDIATE] (DOWN) are both of plain elements of the same size, or both packed, each in a format of its own
// (common/formats.cuh), their rows filled up to whole blocks. norm[HIDDEN] and sums are float32; EPSILON_NANO
// billionths are ε. Before products with packed weights, rows are rounded to int8 as the kernel `quantize` does it,
// with a scale for each 32 columns, or for each row where the weight's format is int8_row: x · norm, which is divided
// by the root after the product, and the rows that down takes.
//
// FLOPs: 6·M·HIDDEN·INTERMEDIATE. Bytes: both weights and the activations.
// Requires: buffers aligned to 16 bytes; sizes of at least 1, of any value. c may be x. `gated` of two
// copies of M·INTERMEDIATE floats, each filled up to a multiple of 4, and `counters` of kTicketCounters ints, all zero
// before the first launch (common/awaited.cuh, common/tickets.cuh).
// Launch: any number of blocks along x, of 32 · WARPS threads: BLOCKS_PER_SM · SMs of them, or as many as there are
// items if that is less. They need not all run at the same time.
//
// Blocks draw items of rows of gate_up, then of down (common/tickets.cuh). What was drawn of down has its first weights
// on their way before the block waits for what all blocks make of gate_up. Plain weights are read once, straight into
// registers (common/row_products.cuh); the rows that they are multiplied by lie in shared memory where there is room,
// which each block fills once a phase. A block asks for x before it knows what it has drawn, and normalises it while
// the first weights are on their way. For packed weights rows are rounded into shared memory once a phase by each
// block, or where they are longer than it has room for, a segment after the other for each item. Lanes have rows of a
// weight, and words of activations are read by all of them at once (common/packed_products.cuh).

#include "common/activation.cuh"
#include "common/awaited.cuh"
#include "common/phase_products.cuh"
#include "common/tickets.cuh"
#include "common/types.cuh"

namespace {

constexpr int kThreads = 32 * WARPS;
using Order = Tickets<TICKETS_AHEAD != 0, COUNTED != 0>;

// Constants of both products.
struct Both {
  static constexpr bool kPacked = PACKED_WEIGHTS != 0;
  static constexpr int kM = ROWS_A;
  static constexpr int kWarps = WARPS;
  static constexpr int kVector = VECTOR_ELEMENTS;
  static constexpr int kUnroll = UNROLL;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kPrefetch = PREFETCH > 0 ? PREFETCH : 1;
  static constexpr bool kSteady = PREFETCH > 0;
  static constexpr bool kReducePtx = REDUCE_PTX != 0;
  static constexpr bool kDp4a = true;
  static constexpr bool kRowFirst = false;
  static constexpr bool kL2Ahead = L2_AHEAD != 0;
  static constexpr int kEarlyRounds = EARLY_ROUNDS;
  static constexpr bool kMoreRounds = MORE_ROUNDS != 0;
  static constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);
  // Integers of the longer segment, and pairs of scales; then sums.
  static constexpr int kSumsAt = ROWS_A * LONGEST_SEGMENT / 4 * 5;
  static constexpr int kSumBytes = SUMS_OF_ITEM;
};
struct GateUp : Both {
  using Weight = WEIGHT;
  static constexpr int kRows = ROWS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kLanesK = LANES_K;
  static constexpr int kSegment = SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
  static constexpr bool kWholeSteps = WHOLE_STEPS != 0;
  static constexpr bool kStaged = STAGED != 0;
  static constexpr bool kNormed = true;
};
struct Back : Both {
  using Weight = DOWN;
  static constexpr int kRows = DOWN_ROWS;
  static constexpr int kWarpsK = DOWN_WARPS_K;
  static constexpr int kLanesK = DOWN_LANES_K;
  static constexpr int kSegment = DOWN_SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = DOWN_ALIGNED != 0;
  static constexpr bool kWholeSteps = DOWN_WHOLE_STEPS != 0;
  static constexpr bool kStaged = DOWN_STAGED != 0;
  static constexpr bool kNormed = false;
};

static_assert(GateUp::kM >= 1 && GateUp::kM <= 8, "rows of x");
static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");
static_assert(MIN_BLOCKS == 0 || MIN_BLOCKS == RESIDENT, "as many resident blocks as are asked for");
static_assert(VECTOR_BYTES % VECTOR_ELEMENTS == 0 || GateUp::kPacked, "a load takes whole elements");
static_assert(STAGE != 0 || (!GateUp::kStaged && !Back::kStaged), "rows are staged where that is asked for");
static_assert(WARPS % WARPS_K == 0 && WARPS % DOWN_WARPS_K == 0, "the warps of a row lie in one block");

using First = NormedProduct<GateUp, STORAGE>;

static_assert(First::Share::kItemRows % 2 == 0, "a block holds gate and factor");

// Rows of gate_up, whose sums become gated values.
struct GatePhase {
  First product;
  Awaited* gated;
  int intermediate;

  __device__ __forceinline__ void begin(int item) { product.begin(item); }
  __device__ __forceinline__ void receive(const Order& /*order*/) { product.receive(); }
  __device__ __forceinline__ void work(int item, int turn) { product.multiply(turn, item); }
  __device__ __forceinline__ void finish(int item, int turn) const {
    constexpr int kM = GateUp::kM;
    constexpr int kResults = First::Share::kItemSums / 2;
    for (int i = static_cast<int>(threadIdx.x); i < kResults; i += kThreads) {
      const int row = item * (First::Share::kItemRows / 2) + i / kM;  // of the results
      const int m = i % kM;
      const int index = i / kM * (2 * kM) + m;
      if (row < intermediate) {
        const float factor = product.factor(m);
        const float gate = product.total(turn, index) * factor;
        const float other = product.total(turn, index + kM) * factor;
        hand_on(gated + static_cast<long long>(m) * intermediate + row, silu(gate) * other);
      }
      if constexpr (kResults <= kThreads) {
        break;
      }
    }
  }
};

struct WaitForGated {
  const Awaited* gated;

  __device__ __forceinline__ void operator()(const Order& order) const {
    if constexpr (COUNTED != 0) {
      order.wait_for_first();
    } else {
      // As many items as there are blocks: what was drawn before is there by then, or nearly.
      constexpr int kValues = First::Share::kItemRows / 2;
      const int blocks = static_cast<int>(gridDim.x);
      const int first = order.first_phase > blocks ? order.first_phase - blocks : 0;
      wait_for_parts<kThreads>(gated + first * kValues, order.first_phase - first, kValues);
    }
  }
};
using BackPhase = ResidualPhase<Back, STORAGE, WaitForGated>;

union Sums {
  First::Sums gate_up;
  BackPhase::Product::Sums down;
};

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, RESIDENT)
    mlp(const STORAGE* x, const float* __restrict__ norm, const WEIGHT* __restrict__ gate_up,
        const DOWN* __restrict__ down, STORAGE* c, Awaited* gated, int* counters, int hidden, int intermediate) {
  extern __shared__ __align__(16) char memory[];
  __shared__ Sums sums;
  __shared__ First::Squares squares;
  __shared__ Draws draws;
  constexpr int kFirstRows = First::Share::kItemRows;
  const int first_items = (2 * intermediate + kFirstRows - 1) / kFirstRows;
  const Order order{counters, first_items, first_items + (hidden + BackPhase::kItemRows - 1) / BackPhase::kItemRows};
  const int copy = order.look_up_copy();
  const int ticket = order.draw();
  First first(gate_up, 2 * intermediate, hidden, memory, sums.gate_up, squares, x, norm);
  first.ask_ahead();
  first.prepare();  // while the draw is under way
  if (threadIdx.x == 0) {
    draws.item[0] = ticket;
    draws.copy = copy;
  }
  __syncthreads();
  const int values = round_up_to_4(GateUp::kM * intermediate);
  Awaited* const given = gated + draws.copy * values;
  clear_copy(gated + (draws.copy ^ 1) * values, values);
  order.run(
      draws,
      [&] {
        return GatePhase{first, given, intermediate};
      },
      [&] {
        return BackPhase{{down, hidden, intermediate, memory, sums.down, given}, {given}, x, c, hidden};
      });
}

#else

#include "common/product_reference.cuh"

// The same in float64. Launch: a block for each row of x.
extern "C" __global__ void mlp_reference(const STORAGE* x, const float* norm, const WEIGHT* gate_up, const DOWN* down,
                                         double* c, Awaited* gated, int* counters, int hidden, int intermediate,
                                         double* workspace, double* slack) {
  const long long row = blockIdx.x;
  mlp_row_reference<WEIGHT, DOWN>(x + row * hidden, norm, reinterpret_cast<const Weights<WEIGHT>*>(gate_up),
                                  reinterpret_cast<const Weights<DOWN>*>(down), c + row * hidden, slack + row * hidden,
                                  workspace + row * (hidden + 4LL * intermediate), hidden, intermediate,
                                  EPSILON_NANO / 1e9);
}

#endif
