// One token of a model from the projection of its queries, keys and values to the residual stream behind the projection
// after attention, in one launch: what attention_decode_qkv and a product with a residual do one after the other.
//   attended[HEADS·HEAD_DIM] = attention as attention_decode_qkv.cu has it,
//   c[HIDDEN] = x + weight · attended, weight[HIDDEN, HEADS·HEAD_DIM] row-major, or packed (common/formats.cuh), its
//   rows
// filled up to whole blocks: what attention gives is then rounded to int8 before, as the kernel `quantize` does it,
// with a scale for each 32 columns, or one for all where the weight's format is int8_row.
//
// float32 or float16 qkv, x and c (STORAGE), caches as there (CACHE); sums and what attention gives in float32.
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
// ranges are summed up. Where they are packed, each block rounds what attention gives into shared memory; lanes have
// rows of the weight, and words of activations are read by all of them at once (common/packed_share.cuh).

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
  using Storage = STORAGE;
  using Cache = CACHE;
  using Output = Awaited;
};
using Token = TokenAttention<Constants>;

// HEADS·HEAD_DIM is a multiple of 8, the least head.
struct Projection {
  using Weight = WEIGHT;
  static constexpr bool kPacked = PACKED_WEIGHT != 0;
  static constexpr int kM = 1;
  static constexpr int kRows = ROWS;
  static constexpr int kWarps = WARPS;
  static constexpr int kWarpsK = WARPS_K;
  static constexpr int kLanesK = LANES_K;
  static constexpr int kVector = VECTOR_ELEMENTS;
  static constexpr int kUnroll = UNROLL;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kPrefetch = PREFETCH > 0 ? PREFETCH : 1;
  static constexpr bool kSteady = PREFETCH > 0;
  static constexpr bool kReducePtx = REDUCE_PTX != 0;
  static constexpr bool kDp4a = true;
  static constexpr int kSegment = SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = true;
  static constexpr bool kWholeSteps = WHOLE_STEPS != 0;
  static constexpr bool kStaged = STAGED != 0;
  static constexpr bool kNormed = false;
  static constexpr bool kRowFirst = false;
  static constexpr int kSumsAt = SEGMENT_COLUMNS / 4 * 5;  // after integers and pairs of scales
  static constexpr int kSumBytes = 4 * 32 * WARPS / LANES_K;
};

struct WaitForAttended {
  const Awaited* attended;
  int kv_heads;

  __device__ __forceinline__ void operator()(const Order& /*order*/) const {
    wait_for_parts<32>(attended, kv_heads, Token::kGroup * Token::kHeadSize);
  }
};
using ProjectionPhase = ResidualPhase<Projection, STORAGE, WaitForAttended>;

static_assert(BLOCKS_PER_SM >= 1, "sizes the grid");
static_assert(WARPS % WARPS_K == 0, "the warps of a row lie in one block");
static_assert(VECTOR_BYTES % VECTOR_ELEMENTS == 0 || Projection::kPacked, "a load takes whole elements");
static_assert(ProjectionPhase::kItemRows <= kThreads, "a thread finishes one row at most");

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    attention_projected(const STORAGE* __restrict__ qkv, const float* __restrict__ q_weight,
                        const float* __restrict__ k_weight, const float* __restrict__ cosine,
                        const float* __restrict__ sine, const int* __restrict__ positions,
                        const int* __restrict__ length, CACHE* __restrict__ k_cache, CACHE* __restrict__ v_cache,
                        float* __restrict__ k_scales, float* __restrict__ v_scales, const STORAGE* x,
                        const WEIGHT* __restrict__ weight, STORAGE* c, Awaited* attended, Awaited* partials,
                        int* counters, int kv_heads, int splits, int hidden, int keys, int position_count,
                        int section_h, int section_w) {
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(16) Token::Attention::Workplace work;
  __shared__ Token::NewHeads heads;
  __shared__ ProjectionPhase::Product::Sums sums;
  __shared__ Draws draws;
  const int first_items = kv_heads * splits;
  const Order order{counters, first_items,
                    first_items + (hidden + ProjectionPhase::kItemRows - 1) / ProjectionPhase::kItemRows};
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
      [&] {
        return ProjectionPhase{{weight, hidden, width, memory, sums, token.out}, {token.out, kv_heads}, x, c, hidden};
      });
}

#else

#include "common/token_reference.cuh"

// The same in float64. Launch: one block of kReferenceThreads.
extern "C" __global__ void attention_projected_reference(
    const STORAGE* qkv, const float* q_weight, const float* k_weight, const float* cosine, const float* sine,
    const int* positions, const int* length, double* k_cache, double* v_cache, double* k_scales, double* v_scales,
    const STORAGE* x, const WEIGHT* weight, double* c, Awaited* attended, Awaited* partials, int* counters,
    int kv_heads, int splits, int hidden, int keys, int position_count, int section_h, int section_w, double* workspace,
    double* slack) {
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
  token.project<WEIGHT>(qkv, x, reinterpret_cast<const Weights<WEIGHT>*>(weight), hidden, 0.0, c, slack, workspace);
}

#endif
