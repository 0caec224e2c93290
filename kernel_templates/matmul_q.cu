// C[M,N] = epilogue(A[M,K] · B[N,K]ᵀ) of quantized operands: int8 activations and a weight in a format of matrices, by
// dp4a. Integers are summed exactly within a block of 32 values (16 for q6_k, q3_k and q2_k; a whole row for int8_row)
// and folded into float32 sums with the scales of both.
//
// A[M,K] is int8, row-major; the value of an element is scales_a · q, with a scale for each row and block of 32
// columns, scales_a[K / 32, M], or with int8_row a scale for each row, scales_a[M]. B is packed (common/formats.cuh).
// Epilogues as in matmul; or SwiGLU rounded to int8 for the next product, q[M, N / 2] with scales_c[N / 64, M], instead
// of C: then N is a multiple of 64. FLOPs: 2·M·N·K. Bytes: A, B, scales and C.
// Requires: buffers aligned to 16 bytes; K a multiple of BLOCK_K and of the columns that the format has together. C may
// be the residual, element for element. With SPLITS > 1: `workspace` of SPLITS tiles of words a tile, and `counters` of
// one int a tile, zero before the first launch (each launch leaves them zero).
// Launch: grid (ceil(M / BLOCK_M) · ceil(N / BLOCK_N), SPLITS), block (BLOCK_M / THREAD_M) · (BLOCK_N / THREAD_N).
//
// A block computes a tile of BLOCK_M x BLOCK_N. Slices of BLOCK_K of A and B are staged in shared memory in units of 16
// bytes, units of neighbouring rows side by side, so that the threads of a warp read different banks or the same word.
// A thread holds a block of 32 values of each of its rows of A, and takes its columns of B in turn: the integer sum of
// a row and a column lives for eight instructions only, which is what leaves registers for the float32 sums.

#include "common/dot4.cuh"
#include "common/epilogue.cuh"
#include "common/formats.cuh"
#include "common/fragment.cuh"
#include "common/quantize.cuh"
#include "common/split.cuh"
#include "common/tile_sums.cuh"
#include "common/tiles.cuh"
#include "common/types.cuh"
#include "common/vector.cuh"

namespace {

constexpr int kLanesM = 32 / kLanesN;

using Form = Packed<WEIGHT>;
constexpr bool kRowScales = Form::kScales == 0;  // integers are summed along whole rows

constexpr int kThreads = (kBlockM / kThreadM) * (kBlockN / kThreadN);
constexpr int kWarpsN = kBlockN / (kLanesN * kThreadN);
constexpr int kChunk = kThreadN < 4 ? kThreadN : 4;  // neighbouring columns of a thread
constexpr int kChunksN = kThreadN / kChunk;
constexpr int kBlocks = kBlockK / 32;  // of a slice
constexpr int kFoldWords =
    Form::kScales == 1 ? 8 : 4;  // of a row that are summed as integers, where blocks have scales
constexpr int kFolds = kBlockK / (4 * kFoldWords);
constexpr int kMinima = Form::kHasMin && Form::kScales == 2 ? 2 : 1;  // of a block, where there are any

// Units of 16 bytes of a slice in shared memory: those of the same depth side by side. Columns lie in CHUNK runs, each
// a little behind a multiple of eight units, so that writing neighbouring columns meets different banks, too.
constexpr int kRunN = kBlockN / kChunk + 2;
constexpr int kUnitsM = kBlockM + 2;
constexpr int kUnitsN = kChunk * kRunN;
constexpr int kDepthsB = kUnpackLate ? kBlocks : 2 * kBlocks;

static_assert(32 % kLanesN == 0 && (!kLanePairs || kLanesM % 2 == 0), "a warp has 32 lanes");
static_assert(kBlockM % (kLanesM * kThreadM) == 0 && kBlockN % (kLanesN * kThreadN) == 0, "warps tile the block");
static_assert(kBlockN % kPackedRows == 0, "a tile has whole groups of packed rows");
static_assert(kThreadN % kChunk == 0 && kThreadN % 2 == 0, "chunks tile a thread's columns");
static_assert(kStages == 1 || kStages == 2, "one or two shared buffers");
static_assert(kBlockK % 32 == 0 && kFolds % kUnroll == 0, "unrolled steps tile a slice");
static_assert(kSplits >= 1 && kGroupM >= 1 && (SPLIT_K == 0 || SPLIT_K == kSplits), "counts");
static_assert(!kUnpackLate || kFoldWords == 8, "only values of four bits stay packed");
static_assert(!Epilogue<kFinish>::kHalves || kThreadN % 2 == 0, "a thread holds gate and factor");
constexpr bool kRounds = kFinish == kEpilogueSwigluInt8;
constexpr int kChunksOfBlock = 16 / kLanesN;  // of a thread that lie in the 64 columns of a block of 32 results
static_assert(!kRounds || (kChunk == 4 && kChunksN % kChunksOfBlock == 0 && kSplits == 1),
              "the lanes of a row hold whole blocks of 32 results");

template <bool INTEGER>
struct SumType {
  using Type = float;
};
template <>
struct SumType<true> {
  using Type = int;
};
using Total = SumType<kRowScales>::Type;
using Sums = TileSums<Total, kThreads, kThreadM * kChunksN, kChunk>;

using Tile = TileOf<kBlockM, kBlockN, kGroupM>;

// Where a thread's values lie in the block's tile.
struct Place {
  int row;     // of its first value
  int column;  // of its first value
  __device__ __forceinline__ Place() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int lane_m = kLanePairs ? lane / (2 * kLanesN) * 2 + lane % 2 : lane / kLanesN;
    const int lane_n = kLanePairs ? lane / 2 % kLanesN : lane % kLanesN;
    row = warp / kWarpsN * (kLanesM * kThreadM) + lane_m;
    column = warp % kWarpsN * (kLanesN * kThreadN) + lane_n * kChunk;
  }
  __device__ __forceinline__ int row_of(int i) const { return row + i * kLanesM; }
  __device__ __forceinline__ int column_of(int j) const {
    return column + j / kChunk * (kLanesN * kChunk) + j % kChunk;
  }
};

// Place of a column's unit among those of a depth.
__device__ __forceinline__ int unit_of_column(int column) { return column % kChunk * kRunN + column / kChunk; }

struct ScalePair {
  float first;
  float second;
};

// A slice of both operands in shared memory. The words of B's units are turned by one, so that those multiplied by each
// other come to lie in different register banks of sm_61: a load of four words fills registers of the banks 0 to 3.
struct Stage {
  Words4 a[2 * kBlocks][kUnitsM];
  Words4 b[kDepthsB][kUnitsN];
  // Of a row and block of A (or half of one, where there are two minima): the scale, and its product with the sum of
  // the integers, which a minimum is multiplied by.
  ScalePair scales_a[kRowScales ? 1 : kMinima * kBlocks][kRowScales ? 1 : kBlockM];
  // Of a column and block of B, or half of one: the scale, and the minimum or else the scale of the upper 16 values.
  ScalePair scales_b[kRowScales ? 1 : kMinima * kBlocks][kRowScales ? 1 : kUnitsN];
};

// A thread's share of the blocks of A's slices, of 32 values each.
struct OperandA {
  static constexpr int kItems = kBlockM * kBlocks;
  static constexpr int kLoads = (kItems + kThreads - 1) / kThreads;
  const signed char* source[kLoads];
  const float* scale_source[kLoads];
  Words4 units[kLoads][2];
  float scale[kLoads];
  int scale_step;

  static __device__ __forceinline__ int item(int load) { return static_cast<int>(threadIdx.x) + load * kThreads; }
  static __device__ __forceinline__ bool has(int load) { return kItems % kThreads == 0 || item(load) < kItems; }
  static __device__ __forceinline__ int block_of(int load) { return item(load) % kBlocks; }
  static __device__ __forceinline__ int row_of(int load) { return item(load) / kBlocks; }

  __device__ __forceinline__ OperandA(const signed char* a, const float* scales, int first_row, int m, int first_k,
                                      int k) {
    scale_step = kBlocks * m;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int wanted = first_row + row_of(i);
      const int row = wanted < m ? wanted : m - 1;
      source[i] = a + static_cast<long long>(row) * k + first_k + block_of(i) * 32;
      scale_source[i] = scales + static_cast<long long>(first_k / 32 + block_of(i)) * m + row;
    }
  }
  __device__ __forceinline__ void load_next() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i)) {
        units[i][0] = load_vector<4>(reinterpret_cast<const int*>(source[i]));
        units[i][1] = load_vector<4>(reinterpret_cast<const int*>(source[i] + 16));
        source[i] += kBlockK;
        if constexpr (!kRowScales) {
          scale[i] = *scale_source[i];
          scale_source[i] += scale_step;
        }
      }
    }
  }
  __device__ __forceinline__ void store(Stage& stage) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i)) {
        const int block = block_of(i);
        const int row = row_of(i);
        stage.a[2 * block][row] = units[i][0];
        stage.a[2 * block + 1][row] = units[i][1];
        if constexpr (!kRowScales) {
#pragma unroll
          for (int part = 0; part < kMinima; ++part) {
            int sum = 0;
            if constexpr (Form::kHasMin) {
#pragma unroll
              for (int w = part * 4; w < 8 - 4 * (kMinima - 1 - part); ++w) {
                sum = dot4(units[i][w / 4].element[w % 4], 0x01010101, sum);
              }
            }
            stage.scales_a[kMinima * block + part][row] = {scale[i], -scale[i] * static_cast<float>(sum)};
          }
        }
      }
    }
  }
};

// The same of B's.
struct OperandB {
  static constexpr int kItems = kBlockN * kBlocks;
  static constexpr int kLoads = (kItems + kThreads - 1) / kThreads;
  const unsigned char* group[kLoads];
  int next_block[kLoads];
  Form::Values values[kLoads];
  Form::Header header[kLoads];

  static __device__ __forceinline__ int item(int load) { return static_cast<int>(threadIdx.x) + load * kThreads; }
  static __device__ __forceinline__ bool has(int load) { return kItems % kThreads == 0 || item(load) < kItems; }
  static __device__ __forceinline__ int block_of(int load) { return item(load) / kBlockN; }
  static __device__ __forceinline__ int column_of(int load) { return item(load) % kBlockN; }
  static __device__ __forceinline__ int lane_of(int load) { return column_of(load) % kPackedRows; }

  __device__ __forceinline__ OperandB(const unsigned char* b, int first_column, int n, int first_k, int k) {
    const long long group_bytes = packed_group_bytes<WEIGHT>(k);
    const int last_group = (n - 1) / kPackedRows;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int wanted = (first_column + column_of(i)) / kPackedRows;
      group[i] = b + (wanted < last_group ? wanted : last_group) * group_bytes;
      next_block[i] = first_k / 32 + block_of(i);
      if (has(i)) {
        Form::load_header(header[i], group[i], lane_of(i), next_block[i]);
      }
    }
  }
  __device__ __forceinline__ void load_next() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i)) {
        Form::load(values[i], group[i], lane_of(i), next_block[i]);
        if (next_block[i] % Form::kHeaderBlocks < kBlocks) {
          Form::load_header(header[i], group[i], lane_of(i), next_block[i]);
        }
      }
      next_block[i] += kBlocks;
    }
  }
  __device__ __forceinline__ void store(Stage& stage) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (has(i)) {
        const int block = block_of(i);
        const int unit = unit_of_column(column_of(i));
        store_values<kUnpackLate>(stage, values[i], block, unit);
        if constexpr (!kRowScales) {
          const BlockScales scales = Form::scales(header[i], next_block[i] - kBlocks);
          stage.scales_b[kMinima * block][unit] = {scales.scale[0], Form::kHasMin ? scales.min : scales.scale[1]};
          if constexpr (kMinima == 2) {
            stage.scales_b[kMinima * block + 1][unit] = {scales.scale[1], scales.upper_min};
          }
        }
      }
    }
  }
  template <bool PACKED, typename Values>
  static __device__ __forceinline__ void store_values(Stage& stage, const Values& from, int block, int unit) {
    if constexpr (PACKED) {
      stage.b[block][unit] = from.unit;
    } else {
      int words[8];
      Form::unpack(words, from);
      stage.b[2 * block][unit] = {{words[3], words[0], words[1], words[2]}};
      stage.b[2 * block + 1][unit] = {{words[7], words[4], words[5], words[6]}};
    }
  }
};

// The words of a column that are folded together.
template <bool PACKED, typename Format>
__device__ __forceinline__ void load_fold(int (&words)[kFoldWords], const Stage& stage, int unit, int fold) {
  if constexpr (PACKED) {
    Format::unpack(words, typename Format::Values{stage.b[fold][unit]});
  } else {
#pragma unroll
    for (int h = 0; h < kFoldWords / 4; ++h) {
      const Words4 loaded = stage.b[fold * (kFoldWords / 4) + h][unit];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        words[4 * h + w] = loaded.element[(w + 1) % 4];
      }
    }
  }
}

// What a column's integer sums are folded with.
struct ColumnScales {
  float scale;
  float offset;  // kFloatOffset times the scale: exact, as scales have few bits
  float min;
};

// Rows and columns of a thread whose integers are summed side by side: where scales are of 16 values, registers are
// left for one alone.
constexpr int kRowsAtOnce = kFoldWords == 8 ? kThreadM : 1;
constexpr int kColumnsAtOnce = kFoldWords == 8 ? 2 : 1;

__device__ __forceinline__ int begin_dot(int total) { return total; }
__device__ __forceinline__ int begin_dot(float /*total*/) { return kFloatBits; }

__device__ __forceinline__ void end_dot(int& total, int dot, ScalePair /*of_row*/, ColumnScales /*of_column*/) {
  total = dot;
}
__device__ __forceinline__ void end_dot(float& total, int dot, ScalePair of_row, ColumnScales of_column) {
  total = fmaf(fmaf(__int_as_float(dot), of_column.scale, of_column.offset), of_row.first, total);
  if constexpr (Form::kHasMin) {
    total = fmaf(of_column.min, of_row.second, total);
  }
}

__device__ __forceinline__ Total& total_of(Total (&sum)[kThreadM * kChunksN][kChunk], int row, int column) {
  return sum[row * kChunksN + column / kChunk][column % kChunk];
}

// Adds a fold of kRowsAtOnce rows from `row` and of kColumnsAtOnce columns from `column` on. The products of one depth
// follow one another, to and fro, so that each finds a register of the one before at hand.
__device__ __forceinline__ void multiply_part(Total (&sum)[kThreadM * kChunksN][kChunk], int row, int column,
                                              const int (&a)[kThreadM][kFoldWords],
                                              const int (&b)[kColumnsAtOnce][kFoldWords],
                                              const ScalePair (&scales_a)[kThreadM],
                                              const ColumnScales (&scales_b)[kColumnsAtOnce]) {
  using Order = Walk<2, kRowsAtOnce, kColumnsAtOnce>;
  constexpr int kSteps = kRowsAtOnce * kColumnsAtOnce;
  int dots[kRowsAtOnce][kColumnsAtOnce];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int i = Order::row(step);
    const int j = Order::column(step);
    dots[i][j] = begin_dot(total_of(sum, row + i, column + j));
  }
#pragma unroll
  for (int w = 0; w < kFoldWords; ++w) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = Order::row(step);
      const int j = Order::column(step);
      dots[i][j] = dot4(a[row + i][w], b[j][w], dots[i][j]);
    }
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int i = Order::row(step);
    const int j = Order::column(step);
    end_dot(total_of(sum, row + i, column + j), dots[i][j], scales_a[row + i], scales_b[j]);
  }
}

// Adds a fold of all columns and rows of the thread.
__device__ __forceinline__ void multiply_fold(Total (&sum)[kThreadM * kChunksN][kChunk], const Stage& stage,
                                              Place place, int fold) {
  int a[kThreadM][kFoldWords];
  ScalePair scales_a[kThreadM];
#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
    for (int h = 0; h < kFoldWords / 4; ++h) {
      const Words4 loaded = stage.a[fold * (kFoldWords / 4) + h][place.row_of(i)];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        a[i][4 * h + w] = loaded.element[w];
      }
    }
    if constexpr (!kRowScales) {
      scales_a[i] = stage.scales_a[fold * kFoldWords * kMinima / 8][place.row_of(i)];
    }
  }
#pragma unroll
  for (int column = 0; column < kThreadN; column += kColumnsAtOnce) {
    int b[kColumnsAtOnce][kFoldWords];
    ColumnScales scales_b[kColumnsAtOnce] = {};
#pragma unroll
    for (int g = 0; g < kColumnsAtOnce; ++g) {
      const int j = column + g;
      const int unit = unit_of_column(place.column) + j % kChunk * kRunN + j / kChunk * kLanesN;
      load_fold<kUnpackLate, Form>(b[g], stage, unit, fold);
      if constexpr (!kRowScales) {
        const ScalePair loaded = stage.scales_b[fold * kFoldWords * kMinima / 8][unit];
        const float scale = Form::kScales == 2 && kMinima == 1 && fold % 2 == 1 ? loaded.second : loaded.first;
        scales_b[g] = {scale, -kFloatOffset * scale, loaded.second};
      }
    }
#pragma unroll
    for (int row = 0; row < kThreadM; row += kRowsAtOnce) {
      multiply_part(sum, row, column, a, b, scales_a, scales_b);
    }
  }
}

// The sums of a tile over the depths [begin, end).
__device__ __forceinline__ void multiply_tile(Total (&sum)[kThreadM * kChunksN][kChunk], Stage* stages,
                                              const signed char* a, const float* scales, const unsigned char* b,
                                              Tile tile, Place place, int begin, int end, int m, int n, int k) {
  OperandA operand_a(a, scales, tile.first_row, m, begin, k);
  OperandB operand_b(b, tile.first_column, n, begin, k);
  operand_a.load_next();
  operand_b.load_next();
  operand_a.store(stages[0]);
  operand_b.store(stages[0]);
  __syncthreads();
  int stage = 0;
#pragma unroll 1
  for (int left = (end - begin) / kBlockK - 1; left >= 0; --left) {
    if (left > 0) {
      operand_a.load_next();
      operand_b.load_next();
    }
#pragma unroll kUnroll
    for (int fold = 0; fold < kFolds; ++fold) {
      multiply_fold(sum, stages[stage], place, fold);
    }
    if (left > 0) {
      if constexpr (kStages == 1) {
        __syncthreads();
      }
      operand_a.store(stages[stage ^ (kStages - 1)]);
      operand_b.store(stages[stage ^ (kStages - 1)]);
      __syncthreads();
      stage ^= kStages - 1;
    }
  }
}

// What the epilogue of a chunk takes, with the scales that whole rows of A and of B have.
struct Finisher {
  STORAGE* c;
  int8* q;
  float* scales_c;
  const float* bias;
  const STORAGE* residual;
  const float* scales_a;
  const unsigned char* b;
  Tile tile;
  Place place;
  int m;
  int n;
  int k;

  __device__ __forceinline__ int row_of(int chunk) const { return tile.first_row + place.row_of(chunk / kChunksN); }
  __device__ __forceinline__ int column_of(int chunk) const {
    return tile.first_column + place.column_of(chunk % kChunksN * kChunk);
  }

  // Sums as floats.
  __device__ __forceinline__ void scale(float (&values)[kChunk], const Total (&total)[kChunk], int row,
                                        int column) const {
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      values[j] = static_cast<float>(total[j]);
      if constexpr (kRowScales) {
        const int at = column + j < n ? column + j : n - 1;
        const long long group_bytes = packed_group_bytes<WEIGHT>(k);
        values[j] *= scales_a[row < m ? row : m - 1] *
                     row_scale<WEIGHT>(b + at / kPackedRows * group_bytes, group_bytes, at % kPackedRows);
      }
    }
  }

  __device__ __forceinline__ void operator()(int chunk, const Total (&total)[kChunk]) const {
    const int row = row_of(chunk);
    if (row < m) {
      float values[kChunk];
      scale(values, total, row, column_of(chunk));
      store_finished<kFinish, kColumnsAligned && kChunk == 4, kChunk>(c, values, bias, residual, row, column_of(chunk),
                                                                      n);
    }
  }

  // Of chunks from `first` on: the results of 64 columns of a row, shared by the lanes of that row. All lanes take
  // part.
  __device__ __forceinline__ void round_block(int first, const Total (&sum)[kThreadM * kChunksN][kChunk]) const {
    const int row = row_of(first);
    float results[2 * kChunksOfBlock];
    int largest = 0;
#pragma unroll
    for (int i = 0; i < kChunksOfBlock; ++i) {
      float values[kChunk];
      scale(values, sum[first + i], row, column_of(first + i));
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float result = silu(values[2 * j]) * values[2 * j + 1];
        results[2 * i + j] = result;
        const int bits = magnitude_bits(result);
        largest = bits > largest ? bits : largest;
      }
    }
    constexpr int kStep = kLanePairs ? 2 : 1;  // from a lane to its neighbour in the row
#pragma unroll
    for (int distance = kLanesN / 2; distance > 0; distance /= 2) {
      const int other = __shfl_xor_sync(0xffffffffu, largest, distance * kStep);
      largest = other > largest ? other : largest;
    }
    const Int8Scale rounding = int8_scale(largest);
    if (row < m && column_of(first) < n) {
#pragma unroll
      for (int i = 0; i < kChunksOfBlock; ++i) {
        Vector<int8, 2> pair;
        set_element(pair, 0, to_int8(results[2 * i], rounding.inverse));
        set_element(pair, 1, to_int8(results[2 * i + 1], rounding.inverse));
        store_vector(q + static_cast<long long>(row) * (n / 2) + column_of(first + i) / 2, pair);
      }
      if (column_of(first) % 64 == 0) {
        scales_c[static_cast<long long>(column_of(first) / 64) * m + row] = rounding.scale;
      }
    }
  }
};

}  // namespace

#if MIN_BLOCKS > 0
#define MATMUL_Q_BOUNDS __launch_bounds__(kThreads, MIN_BLOCKS)
#else
#define MATMUL_Q_BOUNDS
#endif

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void MATMUL_Q_BOUNDS matmul_q(const signed char* __restrict__ a,
                                                    const float* __restrict__ scales_a,
                                                    const unsigned char* __restrict__ b, const float* __restrict__ bias,
                                                    const STORAGE* residual, STORAGE* c, int8* q, float* scales_c,
                                                    float* workspace, int* counters, int m, int n, int k) {
  __shared__ __align__(16) Stage stages[kStages];
  const Place place;
  const int index = static_cast<int>(blockIdx.x);
  const Tile tile(index, m, n);
  const int depth = (k / kBlockK + kSplits - 1) / kSplits * kBlockK;
  const int begin = static_cast<int>(blockIdx.y) * depth;
  const int end = k - begin < depth ? k : begin + depth;
  const Gathering<kSplits> gathering(counters + index);
  if constexpr (kSplits > 2) {
    gathering.begin();
  }
  Total sum[kThreadM * kChunksN][kChunk] = {};
  if (begin < end) {
    multiply_tile(sum, stages, a, scales_a, b, tile, place, begin, end, m, n, k);
  }
  const Finisher store{c, q, scales_c, bias, residual, scales_a, b, tile, place, m, n, k};
  if constexpr (kSplits == 2) {
    Sums::reduce_pair(sum, workspace + index * Sums::kTile, counters + index, store);
  } else if constexpr (kSplits > 2) {
    Sums::reduce_together(sum, workspace + index * kSplits * Sums::kTile, static_cast<int>(blockIdx.y), gathering,
                          store);
  } else if constexpr (kRounds) {
#pragma unroll
    for (int chunk = 0; chunk < kThreadM * kChunksN; chunk += kChunksOfBlock) {
      store.round_block(chunk, sum);
    }
  } else {
#pragma unroll
    for (int chunk = 0; chunk < kThreadM * kChunksN; ++chunk) {
      store(chunk, sum[chunk]);
    }
  }
}

#else

// The same in float64 of exactly these operands, one thread an element of the product; rounded results are given before
// rounding, in units of their scale, by one thread each of half of the warps.
// Launch: grid (ceil(N / 32), M), block 32.
extern "C" __global__ void matmul_q_reference(const signed char* __restrict__ a, const float* __restrict__ scales_a,
                                              const unsigned char* __restrict__ b, const float* __restrict__ bias,
                                              const STORAGE* residual, double* c, double* q, double* scales_c,
                                              float* workspace, int* counters, int m, int n, int k) {
  const int row = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x);
  const long long group_bytes = packed_group_bytes<WEIGHT>(k);
  const auto product = [&](int column) {
    const unsigned char* group = b + column / kPackedRows * group_bytes;
    double sum = 0.0;
    for (int block = 0; block < k / 32; ++block) {
      const double scale = kRowScales ? 1.0f : scales_a[static_cast<long long>(block) * m + row];
      sum += scale * block_product<WEIGHT>(group, column % kPackedRows, block,
                                           [&](int i) { return a[static_cast<long long>(row) * k + block * 32 + i]; });
    }
    const double whole = kRowScales ? scales_a[row] : 1.0f;
    return sum * whole * row_scale<WEIGHT>(group, group_bytes, column % kPackedRows);
  };
  if constexpr (kRounds) {
    if (blockIdx.x % 2 == 0) {
      const int column = static_cast<int>(blockIdx.x) * 32 + 2 * lane;
      const double result = finished<kFinish>(product(column + 1), product(column), 0.0, 0.0);
      double largest = fabs(result);
      for (int distance = 16; distance > 0; distance /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, largest, distance);
        largest = other > largest ? other : largest;
      }
      q[static_cast<long long>(row) * (n / 2) + column / 2] = largest > 0.0 ? result / (largest / 127.0) : 0.0;
      scales_c[static_cast<long long>(column / 64) * m + row] = largest / 127.0;
    }
  } else {
    const int column = static_cast<int>(blockIdx.x) * 32 + lane;
    const double sum = product(column);
    const double gate = __shfl_sync(0xffffffffu, sum, lane & ~1);
    if (column < n) {
      store_finished<kFinish>(c, sum, gate, bias, residual, static_cast<long long>(row) * n + column, column);
    }
  }
}

#endif
