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
#include "common/phase_products.cuh"
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
  using Storage = Awaited;
  using Cache = CACHE;
  using Output = Awaited;
};
using Token = TokenAttention<Constants>;

// Constants of both products.
struct Both {
  static constexpr bool kPacked = true;
  static constexpr int kM = 1;
  static constexpr int kWarps = WARPS;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kPrefetch = PREFETCH > 0 ? PREFETCH : 1;
  static constexpr bool kSteady = PREFETCH > 0;
  static constexpr bool kDp4a = true;
  static constexpr bool kRowFirst = false;
  static constexpr bool kL2Ahead = L2_AHEAD != 0;
  static constexpr float kEpsilon = Constants::kEpsilon;
  // Integers of the longer segment, and pairs of scales; then sums.
  static constexpr int kSumsAt =
      (SEGMENT_COLUMNS > BACK_SEGMENT_COLUMNS ? SEGMENT_COLUMNS : BACK_SEGMENT_COLUMNS) / 4 * 5;
  static constexpr int kSumBytes = 4 * 32 * WARPS / (LANES_K < BACK_LANES_K ? LANES_K : BACK_LANES_K);
};
struct Qkv : Both {
  using Weight = WEIGHT;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kLanesK = LANES_K;
  static constexpr int kSegment = SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
  static constexpr bool kWholeSteps = WHOLE_STEPS != 0;
  static constexpr bool kNormed = true;
};
// HEADS·HEAD_DIM is a multiple of 8, the least head.
struct Back : Both {
  using Weight = BACK;
  static constexpr int kWarpsK = BACK_WARPS_K;
  static constexpr int kLanesK = BACK_LANES_K;
  static constexpr int kSegment = BACK_SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = true;
  static constexpr bool kWholeSteps = BACK_WHOLE_STEPS != 0;
  static constexpr bool kNormed = false;
};

using First = NormedProduct<Qkv, STORAGE>;

// Rows of qkv_weight, whose sums become queries, keys and values.
struct QkvPhase {
  First product;
  Awaited* qkv;
  int rows;

  __device__ __forceinline__ void begin(int item) { product.begin(item); }
  __device__ __forceinline__ void receive(const Order& /*order*/) { product.receive(); }
  __device__ __forceinline__ void work(int item, int turn) { product.multiply(turn, item); }
  __device__ __forceinline__ void finish(int item, int turn) const {
    const int of_item = static_cast<int>(threadIdx.x);
    const int row = item * First::Share::kItemRows + of_item;
    if (of_item < First::Share::kItemRows && row < rows) {
      hand_on(qkv + row, product.total(turn, of_item) * product.factor(0));
    }
  }
};

struct WaitForAttended {
  const Awaited* attended;
  int kv_heads;

  __device__ __forceinline__ void operator()(const Order& /*order*/) const {
    wait_for_parts<32>(attended, kv_heads, Token::kGroup * Token::kHeadSize);
  }
};
using BackPhase = ResidualPhase<Back, STORAGE, WaitForAttended>;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");
static_assert(PREFETCH >= 0, "steps that are loaded ahead");
static_assert(First::Share::kItemRows <= kThreads && BackPhase::kItemRows <= kThreads,
              "a thread finishes one row at most");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    attention_layer_q(const STORAGE* x, const float* __restrict__ norm, const WEIGHT* __restrict__ qkv_weight,
                      const float* __restrict__ q_weight, const float* __restrict__ k_weight,
                      const float* __restrict__ cosine, const float* __restrict__ sine,
                      const int* __restrict__ positions, const int* __restrict__ length, CACHE* __restrict__ k_cache,
                      CACHE* __restrict__ v_cache, float* __restrict__ k_scales, float* __restrict__ v_scales,
                      const BACK* __restrict__ output_weight, STORAGE* c, Awaited* qkv, Awaited* attended,
                      Awaited* partials, int* counters, int hidden, int kv_heads, int splits, int keys,
                      int position_count, int section_h, int section_w) {
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(16) Token::Attention::Workplace work;
  __shared__ Token::NewHeads heads;
  __shared__ First::Squares squares;
  __shared__ Draws draws;
  const int width = kv_heads * Token::kGroup * Token::kHeadSize;
  const int kv_width = kv_heads * Token::kHeadSize;
  const int rows = width + 2 * kv_width;
  const int row_items = (rows + First::Share::kItemRows - 1) / First::Share::kItemRows;
  const int until_attended = row_items + kv_heads * splits;
  const Order order{counters, until_attended,
                    until_attended + (hidden + BackPhase::kItemRows - 1) / BackPhase::kItemRows, row_items};
  const int copy = order.look_up_copy();
  const int ticket = order.draw();
  First::Sums no_sums;
  First first(qkv_weight, rows, hidden, memory, no_sums, squares, x, norm);
  first.ask_ahead();
  Token token{qkv,     q_weight, k_weight,       cosine,    sine,     positions, length,
              k_cache, v_cache,  k_scales,       v_scales,  attended, nullptr,   &partials->value,
              nullptr, keys,     position_count, section_h, section_w};
  const TokenPosition at = token.load_position();
  first.prepare();  // while the draw is under way
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
      draws,
      [&] {
        return QkvPhase{first, given, rows};
      },
      [&](int item) {  // all key heads' shares of a range of the context, then those of the next
        token.attend(work, heads, {item % kv_heads, kv_heads, item / kv_heads, splits}, at, &ranges);
      },
      [&] {
        BackPhase::Product::Sums no_sums_of_back;
        return BackPhase{
            {output_weight, hidden, width, memory, no_sums_of_back, token.out}, {token.out, kv_heads}, x, c, hidden};
      });
}

#else

#include "common/token_reference.cuh"

// The same in float64. Queries, keys and values may be off by what sums over columns of x are: so scores, and the
// weights of keys by that times the greatest score.
// Launch: one block of kReferenceThreads.
extern "C" __global__ void attention_layer_q_reference(
    const STORAGE* x, const float* norm, const unsigned char* qkv_weight, const float* q_weight, const float* k_weight,
    const float* cosine, const float* sine, const int* positions, const int* length, double* k_cache, double* v_cache,
    double* k_scales, double* v_scales, const unsigned char* output_weight, double* c, Awaited* qkv, Awaited* attended,
    Awaited* partials, int* counters, int hidden, int kv_heads, int splits, int keys, int position_count, int section_h,
    int section_w, double* workspace, double* slack) {
  constexpr double kScores = 16.0;
  const TokenReference<HEAD_SIZE, HEADS_PER_KEY> token{
      {cosine, sine, positions, 1, position_count, section_h, section_w, EPSILON_NANO / 1e9},
      q_weight,
      k_weight,
      length,
      k_cache,
      v_cache,
      k_scales,
      v_scales,
      kv_heads,
      keys};
  const int rows = kv_heads * (HEADS_PER_KEY + 2) * HEAD_SIZE;
  double* products = workspace + hidden;
  normed_products<WEIGHT>(x, norm, EPSILON_NANO / 1e9, qkv_weight, rows, hidden, workspace, products);
  token.project<BACK>(products, x, output_weight, hidden, kScores * error_of_sums(hidden), c, slack, products + rows);
}

#endif
