// One token's whole attention in one launch, from the residual stream to the residual stream, with weights in packed
// formats:
//   qkv[(HEADS + 2·KV_HEADS)·HEAD_DIM] = int8(x · norm) · qkv_weightᵀ / √(mean(x²) + ε),
//   attended[HEADS·HEAD_DIM] = attention of that as attention_decode_qkv.cu has it,
//   c[HIDDEN] = x + int8(attended) · output_weightᵀ,
// int8 being activations rounded as the kernel `quantize` does it: with a scale for each 32 columns, or one for all
// where the format of the product's weight is int8_row.
//
// float32 or float16 x and c (STORAGE), caches as there (CACHE); norm[HIDDEN] is float32;
// qkv_weight[(HEADS + 2·KV_HEADS)·HEAD_DIM, HIDDEN] (WEIGHT) and output_weight[HIDDEN, HEADS·HEAD_DIM] (BACK) are
// packed, each in a format of its own (common/formats.cuh), their rows filled up to whole blocks. Sums, qkv and what
// attention gives are float32; EPSILON_NANO billionths are ε. FLOPs: 2·HIDDEN·(HEADS + 2·KV_HEADS)·HEAD_DIM +
// 4·HEADS·HEAD_DIM·length + 2·HIDDEN·HEADS·HEAD_DIM. Bytes: those of the keys and values that count, each once, and of
// both weights. Requires: pointers aligned to 16 bytes; c may be x, other outputs overlap nothing. `qkv` of two copies
// of (HEADS + 2·KV_HEADS)·HEAD_DIM floats, `attended` of two of HEADS·HEAD_DIM, `partials` of splits·HEADS·(HEAD_DIM +
// 2) floats and `counters` of kTicketCounters ints, all zero before the first launch (common/awaited.cuh,
// common/tickets.cuh). splits at most 128.
// Launch: at least KV_HEADS·splits blocks along x, of 32·WARPS threads: BLOCKS_PER_SM · SMs of them, or as many as
// there are items if that is less. They need not all run at the same time.
//
// A block draws rows of qkv_weight, then a share of attention (a key head's, of a range of the context:
// common/token_attention.cuh), if there is one for it, then rows of output_weight (common/tickets.cuh). The keys and
// values of its share are on their way before it waits for the share's heads, and what was drawn of output_weight
// before it waits for the last share of attention.

#include "common/awaited.cuh"
#include "common/l2_prefetch.cuh"
#include "common/packed_projection.cuh"
#include "common/packed_share.cuh"
#include "common/row_squares.cuh"
#include "common/tickets.cuh"
#include "common/token_attention.cuh"
#include "common/types.cuh"

namespace {

constexpr int kThreads = 32 * WARPS;
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);
using Order = Tickets<TICKETS_AHEAD != 0>;
using Squares = RowSquares<1, WARPS>;

struct Constants {
  static constexpr int kWarps = WARPS;
  static constexpr int kLanes = KEY_LANES;
  static constexpr int kBatch = BATCH;
  static constexpr bool kPtx = REDUCE_PTX != 0;
  static constexpr int kHeadSize = HEAD_SIZE;
  static constexpr int kGroup = HEADS_PER_KEY;
  static constexpr int kVector = VECTOR;
  static constexpr bool kAligned = true;
  static constexpr bool kNewest = true;
  static constexpr bool kNormed = NORMED != 0;
  static constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);
  using Storage = Awaited;
  using Cache = CACHE;
  using Output = Awaited;
};
using Token = TokenAttention<Constants>;

struct Qkv {
  using Weight = WEIGHT;
  static constexpr int kM = 1;
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
// HEADS·HEAD_DIM is a multiple of 16, the least head.
struct Back {
  using Weight = BACK;
  static constexpr int kM = 1;
  static constexpr int kWarps = WARPS;
  static constexpr int kWarpsK = BACK_WARPS_K;
  static constexpr int kLanesK = BACK_LANES_K;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kPrefetch = PREFETCH > 0 ? PREFETCH : 1;
  static constexpr bool kSteady = PREFETCH > 0;
  static constexpr bool kDp4a = true;
  static constexpr int kSegment = BACK_SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = true;
  static constexpr bool kWholeSteps = BACK_WHOLE_STEPS != 0;
  static constexpr bool kNormed = false;
  static constexpr bool kRowFirst = false;
};

// Bytes of shared memory that a segment takes: integers, and the pairs of scales.
constexpr int kLongest = SEGMENT_COLUMNS > BACK_SEGMENT_COLUMNS ? SEGMENT_COLUMNS : BACK_SEGMENT_COLUMNS;
constexpr int kSegmentBytes = kLongest / 4 * 5;

using First = PackedShare<Qkv, STORAGE>;
using Second = PackedShare<Back, Awaited>;
constexpr int kSumBytes = First::kSumBytes > Second::kSumBytes ? First::kSumBytes : Second::kSumBytes;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");
static_assert(PREFETCH >= 0, "steps that are loaded ahead");
static_assert(First::kItemRows <= kThreads && Second::kItemRows <= kThreads, "a thread finishes one row at most");

// Sums of a turn in the block's memory.
__device__ __forceinline__ float* sums_of_turn(char* memory, int turn) {
  return reinterpret_cast<float*>(memory + kSegmentBytes + turn * kSumBytes);
}

// Rows of qkv_weight, whose sums become queries, keys and values.
struct QkvPhase {
  First share;
  char* memory;
  Squares& squares;
  Awaited* qkv;
  int rows;
  int hidden;
  bool passed;          // the row has passed by once
  float factor = 0.0f;  // of the row

  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive(const Order& /*order*/) {
    if (passed) {
      factor = squares.factor(0, hidden, kEpsilon);
    }
  }
  __device__ __forceinline__ void work(int item, int turn) {
    share.multiply(sums_of_turn(memory, turn), item);
    if (!passed) {
      share.activations.leave_squares(squares);
      passed = true;
      __syncthreads();
      factor = squares.factor(0, hidden, kEpsilon);
    }
  }
  __device__ __forceinline__ void finish(int item, int turn) const {
    const int of_item = static_cast<int>(threadIdx.x);
    const int row = item * First::kItemRows + of_item;
    if (of_item < First::kItemRows && row < rows) {
      hand_on(qkv + row, First::total(sums_of_turn(memory, turn), of_item) * factor);
    }
  }
};

using BackPhase = PackedProjection<Second, STORAGE, Token::kGroup * Token::kHeadSize, kSumBytes>;

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    attention_layer_q(const STORAGE* x, const float* __restrict__ norm, const unsigned char* __restrict__ qkv_weight,
                      const float* __restrict__ q_weight, const float* __restrict__ k_weight,
                      const float* __restrict__ cosine, const float* __restrict__ sine,
                      const int* __restrict__ positions, const int* __restrict__ length, CACHE* __restrict__ k_cache,
                      CACHE* __restrict__ v_cache, float* __restrict__ k_scales, float* __restrict__ v_scales,
                      const unsigned char* __restrict__ output_weight, STORAGE* c, Awaited* qkv, Awaited* attended,
                      Awaited* partials, int* counters, int hidden, int kv_heads, int splits, int keys,
                      int position_count, int section_h, int section_w) {
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(16) Token::Attention::Workplace work;
  __shared__ Token::NewHeads heads;
  __shared__ Squares squares;
  __shared__ Draws draws;
  const int width = kv_heads * Token::kGroup * Token::kHeadSize;
  const int kv_width = kv_heads * Token::kHeadSize;
  const int rows = width + 2 * kv_width;
  const int row_items = (rows + First::kItemRows - 1) / First::kItemRows;
  const int until_attended = row_items + kv_heads * splits;
  const Order order{counters, until_attended, until_attended + (hidden + Second::kItemRows - 1) / Second::kItemRows,
                    row_items};
  const int copy = order.look_up_copy();
  const int ticket = order.draw();
  if constexpr (L2_AHEAD != 0) {
    const int first_rows = static_cast<int>(gridDim.x) * First::kItemRows;
    bring_to_l2(qkv_weight, packed_bytes_of_rows<WEIGHT>(first_rows < rows ? first_rows : rows, hidden));
  }
  Token token{qkv,     q_weight, k_weight,       cosine,    sine,     positions, length,
              k_cache, v_cache,  k_scales,       v_scales,  attended, nullptr,   &partials->value,
              nullptr, keys,     position_count, section_h, section_w};
  const TokenPosition at = token.load_position();
  First first(qkv_weight, rows, hidden, memory, x, norm);
  const bool passed = first.prepare(squares);  // while the draw is under way
  const Token::Attention::Ranges ranges = token.ranges_of(at, splits);
  if (threadIdx.x == 0) {
    draws.item[0] = ticket;
    draws.copy = copy;
  }
  __syncthreads();
  token.qkv = qkv + draws.copy * rows;
  token.out = attended + draws.copy * width;
  clear_copy(qkv + (draws.copy ^ 1) * rows, rows);
  clear_copy(attended + (draws.copy ^ 1) * width, width);
  Awaited* const given = qkv + draws.copy * rows;
  order.run_once(
      draws, [&] { return QkvPhase{first, memory, squares, given, rows, hidden, passed}; },
      [&](int item) {  // all key heads' shares of a range of the context, then those of the next
        token.attend(work, heads, {item % kv_heads, kv_heads, item / kv_heads, splits}, at, &ranges);
      },
      [&] {
        return BackPhase{Second(output_weight, hidden, width, memory, token.out, nullptr),
                         memory + kSegmentBytes,
                         x,
                         c,
                         hidden,
                         kv_heads};
      });
}
