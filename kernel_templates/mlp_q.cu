// The feed-forward block of a decoding step in one launch, as mlp.cu, with weights in packed formats; M = 1 … 8 rows:
//   g[M, 2·INTERMEDIATE] = int8(x · norm) · gate_upᵀ / √(mean(x²) + ε), rows 2i and 2i+1 of gate_up being gate and
//   factor i; c[M, HIDDEN] = x + int8(SiLU(g[:, 2i]) · g[:, 2i+1]) · downᵀ,
// int8 being activations rounded as the kernel `quantize` does it: with a scale for each 32 columns, or for each row
// where the format of the product's weight is int8_row.
//
// x and c are row-major, float32 or float16; gate_up[2·INTERMEDIATE, HIDDEN] and down[HIDDEN, INTERMEDIATE] are packed,
// each in a format of its own (common/formats.cuh), their rows filled up to whole blocks; norm[HIDDEN] is float32, as
// are sums; EPSILON_NANO billionths are ε. FLOPs: 6·M·HIDDEN·INTERMEDIATE. Bytes: both weights and the activations.
// Requires: buffers aligned to 16 bytes; sizes of at least 1, of any value. c may be x. `gated` of two
// copies of M·INTERMEDIATE floats, each filled up to a multiple of 4, and `counters` of kTicketCounters ints, all zero
// before the first launch (common/awaited.cuh, common/tickets.cuh).
// Launch: any number of blocks along x, of 32 · WARPS threads: BLOCKS_PER_SM · SMs of them, or as many as there are
// items if that is less. They need not all run at the same time.
//
// Blocks draw items of rows of gate_up, then of down (common/tickets.cuh). What was drawn of down has its first weights
// on their way before the block waits for what all blocks make of gate_up. Rows are rounded into shared memory once a
// phase by each block, or where they are longer than it has room for, a segment after the other for each item. Lanes
// have rows of a weight, and words of activations are read by all of them at once (common/packed_products.cuh).

#include "common/activation.cuh"
#include "common/awaited.cuh"
#include "common/l2_prefetch.cuh"
#include "common/packed_share.cuh"
#include "common/row_squares.cuh"
#include "common/tickets.cuh"
#include "common/types.cuh"

namespace {

constexpr int kM = ROWS_A;
constexpr int kThreads = 32 * WARPS;
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);
using Order = Tickets<kTicketsAhead, COUNTED != 0>;
using Squares = RowSquares<kM, WARPS>;

struct GateUp {
  using Weight = WEIGHT;
  static constexpr int kM = ROWS_A;
  static constexpr int kWarps = WARPS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kLanesK = LANES_K;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kPrefetch = PREFETCH > 0 ? PREFETCH : 1;
  static constexpr bool kSteady = PREFETCH > 0;
  static constexpr bool kDp4a = true;
  static constexpr int kSegment = SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
  static constexpr bool kWholeSteps = WHOLE_STEPS != 0;
  static constexpr bool kNormed = true;
  static constexpr bool kRowFirst = false;
};
struct Back {
  using Weight = DOWN;
  static constexpr int kM = ROWS_A;
  static constexpr int kWarps = WARPS;
  static constexpr int kWarpsK = DOWN_WARPS_K;
  static constexpr int kLanesK = DOWN_LANES_K;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kPrefetch = PREFETCH > 0 ? PREFETCH : 1;
  static constexpr bool kSteady = PREFETCH > 0;
  static constexpr bool kDp4a = true;
  static constexpr int kSegment = DOWN_SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = DOWN_ALIGNED != 0;
  static constexpr bool kWholeSteps = DOWN_WHOLE_STEPS != 0;
  static constexpr bool kNormed = false;
  static constexpr bool kRowFirst = false;
};

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");
static_assert(MIN_BLOCKS == 0 || MIN_BLOCKS == RESIDENT, "as many resident blocks as are asked for");
static_assert(PREFETCH >= 0, "steps that are loaded ahead");

// Bytes of shared memory that a segment takes: integers, and the pairs of scales.
constexpr int kLongest = SEGMENT_COLUMNS > DOWN_SEGMENT_COLUMNS ? SEGMENT_COLUMNS : DOWN_SEGMENT_COLUMNS;
constexpr int kSegmentBytes = kM * kLongest / 4 * 5;

using First = PackedShare<GateUp, STORAGE>;
using Second = PackedShare<Back, Awaited>;
constexpr int kSumBytes = First::kSumBytes > Second::kSumBytes ? First::kSumBytes : Second::kSumBytes;

static_assert(First::kItemRows % 2 == 0, "a block holds gate and factor");

// What comes of the sums of an item of gate_up.
__device__ __forceinline__ void store_gated(Awaited* gated, const float* sums, const Squares& squares,
                                            float only_factor, int item, int hidden, int intermediate) {
  for (int i = static_cast<int>(threadIdx.x); i < First::kItemSums / 2; i += kThreads) {
    const int row = item * (First::kItemRows / 2) + i / kM;
    const int m = i % kM;
    const int index = i / kM * (2 * kM) + m;
    if (row < intermediate) {
      const float factor = kM == 1 ? only_factor : squares.factor(m, hidden, kEpsilon);
      const float gate = First::total(sums, index) * factor;
      const float other = First::total(sums, index + kM) * factor;
      hand_on(gated + static_cast<long long>(m) * intermediate + row, silu(gate) * other);
    }
  }
}

// Elements of x and c that sums of an item of down belong to; those of a thread's first sum are read before the sums
// are known.
struct Residuals {
  const STORAGE* x;
  int first_row;
  int hidden;
  float first = 0.0f;

  __device__ __forceinline__ long long place(int sum) const {
    return static_cast<long long>(sum % kM) * hidden + first_row + sum / kM;
  }
  __device__ __forceinline__ bool exists(int sum) const {
    return sum < Second::kItemSums && first_row + sum / kM < hidden;
  }
  __device__ __forceinline__ void load_first() {
    const int sum = static_cast<int>(threadIdx.x);
    first = exists(sum) ? to_float(x[place(sum)]) : 0.0f;
  }
  __device__ __forceinline__ void add_to(STORAGE* c, const float* sums) const {
    for (int i = static_cast<int>(threadIdx.x); exists(i); i += kThreads) {
      const float residual = i < kThreads ? first : to_float(x[place(i)]);
      c[place(i)] = from_float<STORAGE>(residual + Second::total(sums, i));
    }
  }
};

// Sums of a turn in the block's memory.
__device__ __forceinline__ float* sums_of_turn(char* memory, int turn) {
  return reinterpret_cast<float*>(memory + kSegmentBytes + turn * kSumBytes);
}

// Rows of gate_up, whose sums become gated values.
struct GatePhase {
  First share;
  char* memory;
  Squares& squares;
  Awaited* gated;
  int hidden;
  int intermediate;
  bool passed;               // the rows have passed by once
  float only_factor = 0.0f;  // of the row, if it is the only one

  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive(const Order& /*order*/) {
    if (kM == 1 && passed) {
      only_factor = squares.factor(0, hidden, kEpsilon);
    }
  }
  __device__ __forceinline__ void work(int item, int turn) {
    share.multiply(sums_of_turn(memory, turn), item);
    if (!passed) {
      share.activations.leave_squares(squares);
      passed = true;
      if constexpr (kM == 1) {
        __syncthreads();
        only_factor = squares.factor(0, hidden, kEpsilon);
      }
    }
  }
  __device__ __forceinline__ void finish(int item, int turn) const {
    store_gated(gated, sums_of_turn(memory, turn), squares, only_factor, item, hidden, intermediate);
  }
};

// Rows of down, whose sums are added to x.
struct BackPhase {
  Second share;
  char* memory;
  Residuals residuals;
  STORAGE* c;

  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive(const Order& order) const {
    if constexpr (COUNTED != 0) {
      order.wait_for_first();
    } else {
      // As many items as there are blocks: what was drawn before is there by then, or nearly.
      constexpr int kValues = First::kItemRows / 2;
      const int blocks = static_cast<int>(gridDim.x);
      const int first = order.first_phase > blocks ? order.first_phase - blocks : 0;
      wait_for_parts<kThreads>(share.activations.values + first * kValues, order.first_phase - first, kValues);
    }
  }
  __device__ __forceinline__ void work(int item, int turn) {
    residuals.first_row = item * Second::kItemRows;
    residuals.load_first();
    share.multiply(sums_of_turn(memory, turn), item);
  }
  __device__ __forceinline__ void finish(int /*item*/, int turn) const {
    residuals.add_to(c, sums_of_turn(memory, turn));
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, RESIDENT)
    mlp_q(const STORAGE* x, const float* __restrict__ norm, const unsigned char* __restrict__ gate_up,
          const unsigned char* __restrict__ down, STORAGE* c, Awaited* gated, int* counters, int hidden,
          int intermediate) {
  extern __shared__ __align__(16) char memory[];
  __shared__ Squares squares;
  __shared__ Draws draws;
  const int first_items = (2 * intermediate + First::kItemRows - 1) / First::kItemRows;
  const Order order{counters, first_items, first_items + (hidden + Second::kItemRows - 1) / Second::kItemRows};
  const int copy = order.look_up_copy();
  const int ticket = order.draw();
  if constexpr (L2_AHEAD != 0) {
    const int first_rows = static_cast<int>(gridDim.x) * First::kItemRows;
    bring_to_l2(gate_up,
                packed_bytes_of_rows<WEIGHT>(first_rows < 2 * intermediate ? first_rows : 2 * intermediate, hidden));
  }
  First first(gate_up, 2 * intermediate, hidden, memory, x, norm);
  const bool passed = first.prepare(squares);  // while the draw is under way
  if (threadIdx.x == 0) {
    draws.item[0] = ticket;
    draws.copy = copy;
  }
  __syncthreads();
  const int values = round_up_to_4(kM * intermediate);
  Awaited* const given = gated + draws.copy * values;
  clear_copy(gated + (draws.copy ^ 1) * values, values);
  order.run(
      draws, [&] { return GatePhase{first, memory, squares, given, hidden, intermediate, passed}; },
      [&] {
        return BackPhase{Second(down, hidden, intermediate, memory, given, nullptr), memory, Residuals{x, 0, hidden},
                         c};
      });
}
