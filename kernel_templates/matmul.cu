// C[M,N] = epilogue(A[M,K] · B[N,K]ᵀ), all row-major (B is a linear layer's weight). float32 or float16 activations,
// float32, float16, bfloat16 or float16x weights, float32 accumulation.
//
// Epilogues (common/epilogue.cuh): none, + bias[N], GELU (tanh or erf) of that, + residual[M,N], both, or SwiGLU of a
// weight whose rows 2i and 2i+1 are gate and factor; C then is [M, N/2].
// With NORMALISE the rows of A are normalised first: for 1 each element is multiplied by statistics[row] and
// norm[column] (RMSNorm), for 2 it becomes (a - statistics[M + row]) · statistics[row] · norm[column] +
// norm_bias[column] (LayerNorm). For 3 it is LayerNorm of each quarter of a row: of A as [4·M, K/4], whose rows have
// the statistics, norm and norm_bias are [K/4], and BLOCK_K divides K/4. The kernel row_statistics computes such
// statistics. With HEAD_SIZE, C's columns are a third each the heads of queries, of keys and of values, HEAD_SIZE
// columns each, and the epilogue, a bias, turns those of queries and keys in pairs of neighbours by positions[2, M], as
// rope_vision does. FLOPs: 2·M·N·K. Bytes: (M·K + M·N) · sizeof(STORAGE) + N·K · sizeof(WEIGHT), and the operands of
// epilogue and norm. Requires: buffers aligned to 16 bytes; M, N, K >= 1, of any value. C may be the residual, element
// for element. With SPLITS > 1 or STREAM: `workspace` of SPLITS tiles of floats a split tile, or two a block, and
// `counters` of one int a split tile, zero before the first launch (each launch leaves them zero). Launch: grid (tiles,
// SPLITS) for ceil(M / BLOCK_M) · ceil(N / BLOCK_N) tiles, (whole tiles + SPLITS · split tiles) with WAVE, or (any
// number) with STREAM; block (BLOCK_M / THREAD_M) · (BLOCK_N / THREAD_N).
//
// A block computes a tile of BLOCK_M x BLOCK_N. Slices of BLOCK_K of A and B are staged in shared memory, transposed,
// so that a thread reads its rows and columns as vectors. A thread owns THREAD_M x THREAD_N values in chunks of up to
// 4 x 4, spread over its warp's tile so that a warp's shared reads fall in different banks or on the same word. Four
// columns of B are loaded into consecutive registers; where their sums are stored as vectors, too, the registers of a
// column and of its sums would share a bank. SWAP 3 puts the four columns in the opposite order (2 would do for the
// four banks of sm_61, not for the two of newer GPUs). What K leaves over is the first slice, so that the loop over the
// others checks nothing; rows beyond the matrices read the last row, and are not written. Elements of A are normalised
// between registers and shared memory, which is one product (RMSNorm) or two multiply-adds (LayerNorm) for BLOCK_N of
// the tile's; the factor of a row that RMSNorm has is left for the sums.

#include "common/epilogue.cuh"
#include "common/fragment.cuh"
#include "common/matrix.cuh"
#include "common/normed_operand.cuh"
#include "common/operand.cuh"
#include "common/pair_rotation.cuh"
#include "common/tile_sums.cuh"
#include "common/tiles.cuh"
#include "common/types.cuh"
#include "common/vector.cuh"

namespace {

constexpr int kLanesM = 32 / kLanesN;

constexpr int kThreads = (kBlockM / kThreadM) * (kBlockN / kThreadN);
constexpr int kWarpsN = kBlockN / (kLanesN * kThreadN);
constexpr int kChunkM = kThreadM < 4 ? kThreadM : 4;
constexpr int kChunkN = kThreadN < 4 ? kThreadN : 4;
constexpr int kColumnChunks = kThreadN / kChunkN;

static_assert(32 % kLanesN == 0 && (!kLanePairs || kLanesM % 2 == 0), "a warp has 32 lanes");
static_assert(kBlockM % (kLanesM * kThreadM) == 0 && kBlockN % (kLanesN * kThreadN) == 0, "warps tile the block");
static_assert(kThreadM % kChunkM == 0 && kThreadN % kChunkN == 0, "chunks tile a thread's values");
static_assert(kSwap >= 0 && kSwap < kChunkN, "columns are swapped within their chunk");
static_assert(kStages == 1 || kStages == 2, "one or two shared buffers");
static_assert(kStoreAhead >= 0 && kStoreAhead < kUnrollK && (kStages == 2 || kStoreAhead == 0),
              "only a second buffer can be stored to ahead");
static_assert(kFragments == 1 || kFragments == 2, "one or two register buffers");
static_assert(kBlockK % kUnrollK == 0 && kUnrollK % kFragments == 0, "unrolled steps tile a slice");
static_assert(kSplits >= 1 && kGroupM >= 1 && (SPLIT_K == 0 || SPLIT_K == kSplits), "counts");
static_assert(!kStream || kSplits == 1, "depths are either streamed or split");
static_assert((SPLIT_TAIL != 0) == (kWave > 0) && (kWave == 0 || kSplits > 1), "tiles left over are split");
static_assert(kNormalise >= kNormNone && kNormalise <= kNormQuarters, "a known norm");
static_assert(kHeadSize == 0 || kFinish == kEpilogueBias, "a bias is added before heads are turned");
static_assert(!Epilogue<kFinish>::kHalves || kThreadN % 2 == 0, "a thread holds gate and factor");

using PlainOperandA = Operand<STORAGE, kThreads, kBlockM, kBlockK, kVector, kPadding, !kRowsFirst, kRowsAligned>;
using OperandB = Operand<WEIGHT, kThreads, kBlockN, kBlockK, kVector, kPadding, !kRowsFirst, kRowsAligned, kSwap>;

// A's rows as they are, or normalised.
template <int NORM>
struct OperandOfA
    : NormedOperand<NORM, STORAGE, kThreads, kBlockM, kBlockK, kVector, kPadding, !kRowsFirst, kRowsAligned> {
  using Base = NormedOperand<NORM, STORAGE, kThreads, kBlockM, kBlockK, kVector, kPadding, !kRowsFirst, kRowsAligned>;
  using Base::Base;
};
template <>
struct OperandOfA<kNormNone> : PlainOperandA {
  __device__ __forceinline__ OperandOfA(const STORAGE* __restrict__ elements, int first_row, int rows, int first_k,
                                        int depth, RowNorm /*norm*/)
      : PlainOperandA(elements, first_row, rows, first_k, depth) {}
};
using OperandA = OperandOfA<kNormalise>;

using Fragment = Product<kThreadM, kChunkM, kLanesM * kChunkM, OperandA::kRow, kThreadN, kChunkN, kLanesN * kChunkN,
                         OperandB::kRow, ORDER, kSwap>::Fragment;

// Where a thread's values lie in the block's tile.
struct Place {
  int row;     // of its first value
  int column;  // of its first value
  __device__ __forceinline__ Place() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int lane_m = kLanePairs ? lane / (2 * kLanesN) * 2 + lane % 2 : lane / kLanesN;
    const int lane_n = kLanePairs ? lane / 2 % kLanesN : lane % kLanesN;
    row = warp / kWarpsN * (kLanesM * kThreadM) + lane_m * kChunkM;
    column = warp % kWarpsN * (kLanesN * kThreadN) + lane_n * kChunkN;
  }
  __device__ __forceinline__ int row_of(int i) const { return row + i / kChunkM * (kLanesM * kChunkM) + i % kChunkM; }
  __device__ __forceinline__ int column_of(int j) const {
    return column + j / kChunkN * (kLanesN * kChunkN) + j % kChunkN;
  }
};

using Tile = TileOf<kBlockM, kBlockN, kGroupM>;

// What of the product a block computes.
struct Part {
  int tile;   // its number
  int split;  // its number among those that are split; -1: it is whole
  int index;  // of the part

  __device__ __forceinline__ Part(int m, int n) : tile(static_cast<int>(blockIdx.x)), split(tile), index(0) {
    if constexpr (kWave > 0) {
      const int tiles = (m + kBlockM - 1) / kBlockM * ((n + kBlockN - 1) / kBlockN);
      const int whole = tiles - tiles % kWave;
      split = -1;
      if (tile >= whole) {
        split = (tile - whole) / kSplits;
        index = (tile - whole) % kSplits;
        tile = whole + split;
      }
    } else if constexpr (kSplits > 1) {
      index = static_cast<int>(blockIdx.y);
    }
  }
  __device__ __forceinline__ bool whole() const { return kSplits == 1 || (kWave > 0 && split < 0); }
};

// Multiplies the depths of the slice in shared memory. Before the one with STORE_AHEAD more after it, it calls `store`,
// which writes the next slice to shared memory; before the last one `publish`, which reads that one's first fragment.
template <typename Store, typename Publish>
__device__ __forceinline__ void multiply_slice(float (&sum)[kThreadM * kColumnChunks][kChunkN],
                                               Fragment (&fragments)[2], Sides sides, Store store, Publish publish) {
#pragma unroll 1
  for (int outer = 0; outer < kBlockK; outer += kUnrollK) {
#pragma unroll
    for (int i = 0; i < kUnrollK; ++i) {
      Fragment& present = fragments[i % kFragments];
      const bool last_steps = outer + kUnrollK == kBlockK;
      if (kFragments == 1) {
        present.load(sides, outer + i);
      }
      if (last_steps && i == kUnrollK - 1 - kStoreAhead) {
        store();
      }
      if (kFragments == 2) {
        if (i + 1 < kUnrollK || !last_steps) {
          fragments[(i + 1) % 2].load(sides, outer + i + 1);
        } else {
          publish(fragments[(i + 1) % 2]);
        }
      }
      present.multiply(reinterpret_cast<float(&)[kThreadM][kThreadN]>(sum));
    }
  }
}

// The sums of a tile over the depths [begin, end).
__device__ __forceinline__ void multiply_tile(float (&sum)[kThreadM * kColumnChunks][kChunkN],
                                              const STORAGE* __restrict__ a, const Matrix<WEIGHT>& b, RowNorm norm,
                                              Tile tile, Place place, int begin, int end, int m, int n, int k) {
  __shared__ __align__(16) float shared_a[kStages][kBlockK * OperandA::kRow];
  __shared__ __align__(16) float shared_b[kStages][kBlockK * OperandB::kRow];
  const int first = (end - begin - 1) % kBlockK + 1;
  OperandA operand_a(a, tile.first_row, m, begin, k, norm);
  const Matrix<STORAGE> matrix_a(a);
  OperandB operand_b(b.elements, tile.first_column, n, begin, k);
  operand_a.load_first(first);
  operand_b.load_first(first);
  operand_a.store(shared_a[0], matrix_a);
  operand_b.store(shared_b[0], b);
  __syncthreads();
  Fragment fragments[2];
  if constexpr (kFragments == 2) {
    fragments[0].load({shared_a[0] + place.row, shared_b[0] + place.column}, 0);
  }
  int stage = 0;
#pragma unroll 1
  for (int left = (end - begin - first) / kBlockK; left >= 0; --left) {
    if (left > 0) {
      operand_a.load_next();
      operand_b.load_next();
    }
    const auto store = [&] {
      if (left > 0) {
        if constexpr (kStages == 1) {
          __syncthreads();
        }
        operand_a.store(shared_a[stage ^ (kStages - 1)], matrix_a);
        operand_b.store(shared_b[stage ^ (kStages - 1)], b);
      }
    };
    const auto turn = [&] {
      if (left > 0) {
        __syncthreads();
        stage ^= kStages - 1;
      }
    };
    multiply_slice(sum, fragments, {shared_a[stage] + place.row, shared_b[stage] + place.column}, store,
                   [&](Fragment& next) {
                     turn();
                     next.load({shared_a[stage] + place.row, shared_b[stage] + place.column}, 0);
                   });
    if constexpr (kFragments == 1) {
      turn();
    }
  }
}

// Stores a tile's results, chunk by chunk, in which a thread's sums lie along rows.
struct TileStore {
  STORAGE* c;
  const float* bias;
  const STORAGE* residual;
  const float* statistics;
  PairRotation rotation;
  Tile tile;
  Place place;
  int m;
  int n;

  __device__ __forceinline__ void operator()(int chunk, const float (&sum)[kChunkN]) const {
    const int row = tile.first_row + place.row_of(chunk / kColumnChunks);
    if (row < m) {
      const int column = tile.first_column + place.column_of(chunk % kColumnChunks * kChunkN);
      float scaled[kChunkN];
      const float factor = kNormalise == kNormRms ? statistics[row] : 1.0f;
#pragma unroll
      for (int j = 0; j < kChunkN; ++j) {
        scaled[j] = kNormalise == kNormRms ? sum[j] * factor : sum[j];
      }
      constexpr bool kAligned = kColumnsAligned && kChunkN == 4;
      if constexpr (kHeadSize > 0) {
        const auto shift = load_inside<kAligned, kChunkN>(bias + column, n - column);
#pragma unroll
        for (int j = 0; j < kChunkN; ++j) {
          scaled[j] += shift.element[j];
        }
        if (column < n / 3 * 2) {
          turn_pairs<kHeadSize>(scaled, rotation, row, m, column);
        }
        store_finished<kEpilogueNone, kAligned, kChunkN>(c, scaled, bias, residual, row, column, n);
      } else {
        store_finished<kFinish, kAligned, kChunkN>(c, scaled, bias, residual, row, column, n);
      }
    }
  }
};

using Sums = TileSums<float, kThreads, kThreadM * kColumnChunks, kChunkN>;

__device__ __forceinline__ void store_tile(const float (&sum)[kThreadM * kColumnChunks][kChunkN], TileStore store) {
#pragma unroll
  for (int chunk = 0; chunk < kThreadM * kColumnChunks; ++chunk) {
    store(chunk, sum[chunk]);
  }
}

}  // namespace

#if MIN_BLOCKS > 0
#define MATMUL_BOUNDS __launch_bounds__(kThreads, MIN_BLOCKS)
#else
#define MATMUL_BOUNDS
#endif

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void MATMUL_BOUNDS matmul(const STORAGE* __restrict__ a, const WEIGHT* __restrict__ b,
                                                const float* __restrict__ bias, const STORAGE* residual, STORAGE* c,
                                                float* workspace, int* counters, int m, int n, int k,
                                                const float* __restrict__ norm, const float* __restrict__ norm_bias,
                                                const float* __restrict__ statistics, const float* __restrict__ cosine,
                                                const float* __restrict__ sine, const int* __restrict__ positions,
                                                int position_count) {
  const Place place;
  const RowNorm row_norm{norm, norm_bias, statistics};
  const PairRotation rotation{cosine, sine, positions, position_count};
  const Matrix<WEIGHT> matrix_b(b);
  const int slices = (k + kBlockK - 1) / kBlockK;
  if constexpr (kStream) {
    const long long all = static_cast<long long>((m + kBlockM - 1) / kBlockM) * ((n + kBlockN - 1) / kBlockN) * slices;
    const Deal deal{all, all < gridDim.x ? all : gridDim.x};
    if (blockIdx.x >= deal.blocks) {
      return;
    }
    const long long end = deal.start_of(blockIdx.x + 1);
#pragma unroll 1
    for (long long slice = deal.start_of(blockIdx.x); slice < end;) {
      const int index = static_cast<int>(slice / slices);
      const int first = static_cast<int>(slice - static_cast<long long>(index) * slices);
      const int last = end - slice < slices - first ? first + static_cast<int>(end - slice) : slices;
      const Tile tile(index, m, n);
      const TileStore store{c, bias, residual, statistics, rotation, tile, place, m, n};
      float sum[kThreadM * kColumnChunks][kChunkN] = {};
      multiply_tile(sum, a, matrix_b, row_norm, tile, place, first * kBlockK, last < slices ? last * kBlockK : k, m, n,
                    k);
      if (first == 0 && last == slices) {
        store_tile(sum, store);
      } else {
        Sums::reduce_parts(sum, workspace, counters, DealtParts(index, slices, deal), store);
      }
      slice += last - first;
      __syncthreads();  // the next tile's slices overwrite this one's
    }
  } else {
    const Part part(m, n);
    const Tile tile(part.tile, m, n);
    const int depth = part.whole() ? k : (slices + kSplits - 1) / kSplits * kBlockK;
    const int begin = part.index * depth;
    const int end = k - begin < depth ? k : begin + depth;
    const Gathering<kSplits> gathering(counters + part.split);
    if constexpr (kSplits > 2) {
      if (!part.whole()) {
        gathering.begin();
      }
    }
    const TileStore store{c, bias, residual, statistics, rotation, tile, place, m, n};
    float sum[kThreadM * kColumnChunks][kChunkN] = {};
    if (begin < end) {
      multiply_tile(sum, a, matrix_b, row_norm, tile, place, begin, end, m, n, k);
    }
    if (part.whole()) {
      store_tile(sum, store);
    } else if constexpr (kSplits == 2) {
      Sums::reduce_pair(sum, workspace + part.split * Sums::kTile, counters + part.split, store);
    } else if constexpr (kSplits > 2) {
      Sums::reduce_together(sum, workspace + part.split * kSplits * Sums::kTile, part.index, gathering, store);
    }
  }
}

#else

// The same in float64, one thread an element of the product: what results are verified against.
// Launch: grid (ceil(N / 16), ceil(M / 16)), block (16, 16).
extern "C" __global__ void matmul_reference(const STORAGE* __restrict__ a, const WEIGHT* __restrict__ b,
                                            const float* __restrict__ bias, const STORAGE* residual, double* c,
                                            float* workspace, int* counters, int m, int n, int k, const float* norm,
                                            const float* norm_bias, const float* statistics, const float* cosine,
                                            const float* sine, const int* positions, int position_count) {
  constexpr int kTile = 16;
  __shared__ double tile_a[kTile][kTile + 1];
  __shared__ double tile_b[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + y;
  const int column = static_cast<int>(blockIdx.x) * kTile + x;
  const int row_of_b = static_cast<int>(blockIdx.x) * kTile + y;
  const Matrix<WEIGHT> matrix_b(b);
  double sum = 0.0;
  double gate = 0.0;
  double other = 0.0;  // that a turned pair's other column has
  for (int first = 0; first < k; first += kTile) {
    const bool inside = first + x < k;
    double element = inside && row < m ? to_float(a[static_cast<long long>(row) * k + first + x]) : 0.0f;
    if (kNormalise != kNormNone && inside && row < m) {
      constexpr bool kShifts = kNormalise != kNormRms;
      constexpr int kParts = kNormalise == kNormQuarters ? 4 : 1;
      const int part = row * kParts + (first + x) / (k / kParts);
      const int weight = (first + x) % (k / kParts);
      element -= kShifts ? statistics[m * kParts + part] : 0.0f;
      element = element * statistics[part] * norm[weight] + (kShifts ? norm_bias[weight] : 0.0f);
    }
    tile_a[y][x] = element;
    tile_b[y][x] =
        inside && row_of_b < n ? matrix_b(matrix_b.elements[static_cast<long long>(row_of_b) * k + first + x]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += tile_a[y][i] * tile_b[x][i];
      gate += tile_a[y][i] * tile_b[x & ~1][i];
      other += tile_a[y][i] * tile_b[x ^ 1][i];
    }
    __syncthreads();
  }
  if (row < m && column < n) {
    const long long at = static_cast<long long>(row) * n + column;
    if (kHeadSize == 0) {
      store_finished<kFinish>(c, sum, gate, bias, residual, at, column);
    } else if (column >= n / 3 * 2) {
      c[at] = sum + bias[column];
    } else {
      constexpr int kQuarter = kHeadSize > 0 ? kHeadSize / 4 : 1;
      const int slot = column % (4 * kQuarter) / 2;
      const int angle =
          clamp_row(positions[slot < kQuarter ? row : m + row], position_count) * kQuarter + slot % kQuarter;
      const double turned = (other + bias[column ^ 1]) * sine[angle];
      c[at] = (sum + bias[column]) * cosine[angle] + (column % 2 == 0 ? -turned : turned);
    }
  }
}

#endif
