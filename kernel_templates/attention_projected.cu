// One token of a model from the projection of its queries, keys and values to the residual stream behind the projection
// after attention, in one launch: what attention_decode_qkv and a product with a residual do one after the other.
//   attended[HEADS·HEAD_DIM] = attention as attention_decode_qkv.cu has it,
//   c[HIDDEN] = x + weight · attended, weight[HIDDEN, HEADS·HEAD_DIM] row-major.
//
// float32 or float16 qkv, x and c (STORAGE), float32, float16, bfloat16 or float16x weight (WEIGHT), caches as there
// (CACHE); sums and what attention gives in float32.
// FLOPs: 4·HEADS·HEAD_DIM·length + 2·HIDDEN·HEADS·HEAD_DIM. Bytes: those of the keys and values that count, each once,
// and of weight.
// Requires: pointers aligned to 16 bytes; c may be x, other outputs overlap nothing. `attended` of two copies of
// HEADS·HEAD_DIM floats, `partials` of splits·HEADS·(HEAD_DIM + 2) floats and `counters` of kTicketCounters ints, all
// zero before the first launch (common/awaited.cuh, common/tickets.cuh). splits at most 128.
// Launch: at least KV_HEADS·splits blocks along x, of 32·WARPS threads: BLOCKS_PER_SM · SMs of them, or as many as
// there are items if that is less. They need not all run at the same time.
//
// A block draws a share of attention (a key head's, of a range of the context: common/token_attention.cuh), if there is
// one for it, then rows of the weight (common/tickets.cuh). What was drawn of the weight is on its way before the block
// waits for the last share of attention: the weights of a layer's second half of products then come while the slowest
// ranges are summed up.

#include "common/matrix.cuh"
#include "common/normed_rows.cuh"
#include "common/row_share.cuh"
#include "common/tickets.cuh"
#include "common/token_attention.cuh"
#include "common/types.cuh"

namespace {

constexpr int kThreads = 32 * WARPS;
using Order = Tickets<TICKETS_AHEAD != 0>;

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
  using Storage = STORAGE;
  using Cache = CACHE;
  using Output = Awaited;
};
using Token = TokenAttention<Constants>;

// HEADS·HEAD_DIM is a multiple of 16, the least head.
struct Projection {
  using Weight = WEIGHT;
  static constexpr int kM = 1;
  static constexpr int kRows = ROWS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kVector = VECTOR_BYTES / static_cast<int>(sizeof(WEIGHT));
  static constexpr int kUnroll = UNROLL;
  static constexpr bool kRowsAligned = true;
  static constexpr int kWarps = WARPS;
  static constexpr bool kPrefetch = PREFETCH != 0;
  static constexpr bool kReducePtx = REDUCE_PTX != 0;
  static constexpr bool kWhole = WHOLE_STEPS != 0;
};
using Share = EarlyShare<Projection>::Type;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");
static_assert(WARPS % WARPS_K == 0, "the warps of a row lie in one block");

// Rows of the weight, whose sums are added to x.
struct ProjectionPhase {
  Share share;
  Share::Sums& sums;
  float* staged;
  const Awaited* attended;
  const STORAGE* x;
  STORAGE* c;
  int kv_heads;
  float residual = 0.0f;  // of the thread's row of the item

  __device__ __forceinline__ bool wants(int item, int& row) const {
    row = item * Share::kItemRows + static_cast<int>(threadIdx.x);
    return static_cast<int>(threadIdx.x) < Share::kItemRows && row < share.n;
  }
  __device__ __forceinline__ void begin(int item) { share.begin(item); }
  __device__ __forceinline__ void receive(const Order& /*order*/) const {
    wait_for_parts<32>(attended, kv_heads, Token::kGroup * Token::kHeadSize);
    if constexpr (kStaged) {
      stage_rows<1, true, kThreads, Projection::kVector>(staged, attended, share.k);
    } else {
      wait_for_rows<1, true, kThreads>(attended, share.k);
    }
    __syncthreads();
  }
  __device__ __forceinline__ void work(int item, int turn) {
    int row = 0;
    residual = wants(item, row) ? to_float(x[row]) : 0.0f;
    if constexpr (kStaged) {
      share.multiply(sums, turn, StagedRows<Projection::kVector>(staged, share.k));
    } else {
      share.multiply(sums, turn, PlainRows<float>{&attended->value, 0, 0});
    }
  }
  __device__ __forceinline__ void finish(int item, int turn) const {
    int row = 0;
    if (wants(item, row)) {
      c[row] = from_float<STORAGE>(residual + sums.total(turn, static_cast<int>(threadIdx.x)));
    }
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    attention_projected(const STORAGE* __restrict__ qkv, const float* __restrict__ q_weight,
                        const float* __restrict__ k_weight, const float* __restrict__ cosine,
                        const float* __restrict__ sine, const int* __restrict__ positions,
                        const int* __restrict__ length, CACHE* __restrict__ k_cache, CACHE* __restrict__ v_cache,
                        float* __restrict__ k_scales, float* __restrict__ v_scales, const STORAGE* x,
                        const WEIGHT* __restrict__ weight, STORAGE* c, Awaited* attended, Awaited* partials,
                        int* counters, int kv_heads, int splits, int hidden, int keys, int position_count,
                        int section_h, int section_w) {
  extern __shared__ __align__(16) float staged[];
  __shared__ __align__(16) Token::Attention::Workplace work;
  __shared__ Token::NewHeads heads;
  __shared__ Share::Sums sums;
  __shared__ Draws draws;
  const int first_items = kv_heads * splits;
  const Order order{counters, first_items, first_items + (hidden + Share::kItemRows - 1) / Share::kItemRows};
  const int copy = order.look_up_copy();
  const int ticket = order.draw();
  Token token{qkv,     q_weight, k_weight,       cosine,    sine,     positions, length,
              k_cache, v_cache,  k_scales,       v_scales,  attended, nullptr,   &partials->value,
              nullptr, keys,     position_count, section_h, section_w};
  const TokenPosition at = token.load_position();  // while the draw is under way
  const Token::Attention::Ranges ranges = token.ranges_of(at, splits);
  if (threadIdx.x == 0) {
    draws.item[0] = ticket;
    draws.copy = copy;
  }
  __syncthreads();
  const int width = kv_heads * Token::kGroup * Token::kHeadSize;
  token.out = attended + draws.copy * width;
  clear_copy(attended + (draws.copy ^ 1) * width, width);
  order.run_once(
      draws,
      [&](int item) {  // all key heads' shares of a range of the context, then those of the next
        token.attend(work, heads, {item % kv_heads, kv_heads, item / kv_heads, splits}, at, &ranges);
      },
      [&] { return ProjectionPhase{Share(weight, hidden, width), sums, staged, token.out, x, c, kv_heads}; });
}
