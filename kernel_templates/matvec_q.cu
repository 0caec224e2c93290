// C[M,N] = epilogue(A[M,K] · B[N,K]ᵀ) for M = 1 … 8, with int8 activations and a weight in a format of matrices: what a
// decoding step does with a quantized linear layer.
//
// A[M,K] is row-major, of INPUT. As int8 an element's value is scales_a · q, with a scale for each row and block of 32
// columns, scales_a[K / 32, M], or with int8_row a scale for each row, scales_a[M]: what other kernels rounded. As
// float32 or float16 each block of threads rounds the rows to that by itself, as the kernel `quantize` does. B is
// packed (common/formats.cuh), its rows filled up to whole blocks. Epilogues as in matmul; or SwiGLU rounded to int8
// for the next product, q[M, N / 2] with scales_c[N / 64, M], instead of C: then N is a multiple of 64. FLOPs: 2·M·N·K.
// Bytes: A, scales, B and C. Requires: buffers aligned to 16 bytes; M, N, K >= 1; with int8, K a multiple of the
// columns that the format has together. C may be the residual, element for element. Where blocks share rows (SPLIT_K >
// 1) or a block of rounded results: `workspace` of SPLIT_K floats a row of B (rounded up to whole blocks) and row of A,
// and `counters` of one int for those that share, zero before the first launch (each launch leaves them zero).
// Launch: grid (ceil(N / (32 · WARPS / DEPTH_WARPS)), SPLIT_K), block 32 · WARPS.
//
// A lane has a row of B, so that nothing is exchanged between lanes, and a warp reads 512 bytes at once; the
// activations lie in shared memory, where all lanes read the same word. DEPTH_WARPS warps and SPLIT_K blocks share the
// depth of a row; LANES_K lanes of a warp, too, which then has fewer rows, so that few rows make more blocks.

#include "common/epilogue.cuh"
#include "common/formats.cuh"
#include "common/packed_products.cuh"
#include "common/quantize.cuh"
#include "common/row_squares.cuh"
#include "common/split.cuh"
#include "common/types.cuh"
#include "common/vector.cuh"

namespace {

struct Constants {
  using Weight = WEIGHT;
  static constexpr int kM = ROWS_A;
  static constexpr int kWarps = WARPS;
  static constexpr int kWarpsK = DEPTH_WARPS;
  static constexpr int kLanesK = LANES_K;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kPrefetch = PREFETCH;
  static constexpr bool kDp4a = DP4A != 0;
  static constexpr int kSegment = SEGMENT_COLUMNS;
  static constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
  static constexpr bool kWholeSteps = WHOLE_STEPS != 0;
  static constexpr bool kNormed = NORMED != 0;
  static constexpr bool kRowFirst = ROW_FIRST != 0;
};
using Products = PackedProducts<Constants>;
using Form = Products::Form;

constexpr int kWarpsK = DEPTH_WARPS;
constexpr int kLanesK = LANES_K;
constexpr int kBlocks = BLOCKS;
constexpr bool kDp4a = DP4A != 0;
constexpr int kSegment = SEGMENT_COLUMNS;
constexpr int kM = ROWS_A;
constexpr bool kNormed = NORMED != 0;

constexpr bool kRowScales = Products::kRowScales;
constexpr bool kRounds = kFinish == kEpilogueSwigluInt8;
constexpr int kThreads = Products::kThreads;
constexpr int kLaneRows = Products::kLaneRows;
constexpr int kBlockRows = Products::kBlockRows;
constexpr int kParts = Products::kParts;
constexpr int kDepthStep = Products::kDepthStep;

static_assert(WARPS_K == 0 || WARPS_K == kWarpsK, "the warps of a row lie in one block");
static_assert(kDp4a || sizeof(INPUT) > 1, "integers are multiplied as integers");
static_assert(SEGMENT == 0 || SEGMENT == kSegment, "a segment has the length that is asked for");
// Blocks of threads that have a block of 32 rounded results together, and all that gather in one of them.
constexpr int kRoundBlocks = kRounds && kBlockRows < 64 ? 64 / kBlockRows : 1;
constexpr int kSharing = kSplitK * kRoundBlocks;
constexpr int kGatheredRows = kBlockRows * kRoundBlocks;
static_assert(!kRounds || kGatheredRows % 64 == 0, "those that round together hold whole blocks of 32 results");
static_assert(kGatheredRows <= 32 * WARPS, "what is gathered fits where a block's own sums were");
static_assert(!kNormed || (sizeof(INPUT) > 1 && !kRowScales && kSplitK == 1), "a block has whole rows to normalise");
constexpr float kEpsilon = static_cast<float>(EPSILON_NANO / 1e9);

using Activations = PackedActivations<Products, INPUT>;
using Squares = RowSquares<(kNormed ? kM : 1), WARPS>;

// Adds up what warps and blocks summed of the same rows. partial then has row of those gathered * kM + row of A, in the
// block for which it returns true; with kNormed, times the rows' factors.
__device__ __forceinline__ bool gather_sums(float* partial, float* workspace, int* counters, const Squares& squares,
                                            int k) {
  constexpr int kCount = kBlockRows * kM;
  __syncthreads();
  const int gathered_at = static_cast<int>(blockIdx.x) / kRoundBlocks;  // of those that gather here
  float* place = workspace + static_cast<long long>(gathered_at) * (kSharing * kCount);
  for (int i = static_cast<int>(threadIdx.x); i < kCount; i += kThreads) {
    float total = partial[i];
#pragma unroll
    for (int other = 1; other < kParts; ++other) {
      total += partial[other * kCount + i];
    }
    partial[i] = kNormed ? total * squares.factor(i % kM, k, kEpsilon) : total;
    if constexpr (kSharing > 1) {
      place[(blockIdx.y * kRoundBlocks + blockIdx.x % kRoundBlocks) * kCount + i] = partial[i];
    }
  }
  if constexpr (kSharing > 1) {
    if (!arrived_last(counters + gathered_at, kSharing)) {
      return false;
    }
    constexpr int kGathered = kGatheredRows * kM;
    for (int i = static_cast<int>(threadIdx.x); i < kGathered; i += kThreads) {
      float total = 0.0f;
#pragma unroll
      for (int split = 0; split < kSplitK; ++split) {
        total += load_written<1>(place + split * kGathered + i).element[0];
      }
      partial[i] = total;
    }
  }
  __syncthreads();
  return true;
}

// What is added to the products of a block: a thread's first one is loaded while the weights are on their way, not when
// all has been summed up.
struct Addends {
  using Form = Epilogue<kFinish>;
  const float* bias;
  const STORAGE* residual;
  int first_row;
  int n;
  float first_bias = 0.0f;
  float first_residual = 0.0f;

  __device__ __forceinline__ int column(int item) const { return first_row + item % kBlockRows; }
  __device__ __forceinline__ float bias_of(int item) const {
    return Form::kHasBias && column(item) < n ? bias[column(item)] : 0.0f;
  }
  __device__ __forceinline__ float residual_of(int item) const {
    return Form::kHasResidual && column(item) < n
               ? to_float(residual[static_cast<long long>(item / kBlockRows) * n + column(item)])
               : 0.0f;
  }
  __device__ __forceinline__ void load_first() {
    const int item = static_cast<int>(threadIdx.x);
    if (item < kBlockRows * kM) {
      first_bias = bias_of(item);
      first_residual = residual_of(item);
    }
  }
};

// Finishes the block's sums and stores them.
__device__ __forceinline__ void store_sums(STORAGE* c, const float* sums, const Addends& addends) {
  for (int i = static_cast<int>(threadIdx.x); i < kBlockRows * kM; i += kThreads) {
    const bool first = i < kThreads;
    const float bias = first ? addends.first_bias : addends.bias_of(i);
    const float residual = first ? addends.first_residual : addends.residual_of(i);
    const int row_a = i / kBlockRows;
    if (addends.column(i) < addends.n) {
      c[static_cast<long long>(row_a) * addends.n + addends.column(i)] =
          from_float<STORAGE>(finish<kFinish>(sums[i % kBlockRows * kM + row_a], bias, residual));
    }
  }
}

// The products of gate and factor, of rows next to each other.
__device__ __forceinline__ void store_gated(STORAGE* c, const float* sums, int first_row, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < kBlockRows / 2 * kM; i += kThreads) {
    const int row = i % (kBlockRows / 2) * 2;
    const int row_a = i / (kBlockRows / 2);
    if (first_row + row + 1 < n) {
      c[static_cast<long long>(row_a) * (n / 2) + (first_row + row) / 2] =
          from_float<STORAGE>(silu(sums[row * kM + row_a]) * sums[(row + 1) * kM + row_a]);
    }
  }
}

// The same rounded to int8; 32 neighbouring lanes have a block of results.
__device__ __forceinline__ void store_rounded(int8* q, float* scales, const float* sums, int first_row, int n) {
  constexpr int kResults = kGatheredRows / 2;
  for (int i = static_cast<int>(threadIdx.x); i < kResults * kM; i += kThreads) {
    const int row_a = i / kResults;
    const float* pair = sums + i % kResults * (2 * kM) + row_a;
    const float result = silu(pair[0]) * pair[kM];
    const Int8Scale scale = int8_scale(largest_of_lanes<32>(magnitude_bits(result)));
    const int column = first_row / 2 + i % kResults;
    if (column < n / 2) {
      q[static_cast<long long>(row_a) * (n / 2) + column] = to_int8(result, scale.inverse);
      if (column % 32 == 0) {
        scales[static_cast<long long>(column / 32) * kM + row_a] = scale.scale;
      }
    }
  }
}

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS > 0 ? MIN_BLOCKS : 1)
    matvec_q(const INPUT* __restrict__ a, const float* __restrict__ scales_a, const float* __restrict__ norm,
             const unsigned char* __restrict__ b, const float* __restrict__ bias, const STORAGE* residual, STORAGE* c,
             int8* q, float* scales_c, float* workspace, int* counters, int n, int k) {
  extern __shared__ __align__(16) char memory[];
  __shared__ Squares squares;
  const Products::Segment segment{memory};
  const int filled = (k + Form::kColumns - 1) / Form::kColumns * Form::kColumns;
  const int depth = ((filled + kSplitK - 1) / kSplitK + kDepthStep - 1) / kDepthStep * kDepthStep;
  const int begin = static_cast<int>(blockIdx.y) * depth;
  const int end = filled - begin < depth ? filled : begin + depth;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(blockIdx.x) * kBlockRows;
  const long long group_bytes = packed_group_bytes<WEIGHT>(k);
  const int groups = (n + kPackedRows - 1) / kPackedRows;
  const int row_of_warp = first_row + warp / kWarpsK * kLaneRows;
  const int wanted = row_of_warp / kPackedRows;
  const unsigned char* group = b + (wanted < groups ? wanted : groups - 1) * group_bytes;
  const int row = row_of_warp % kPackedRows + lane % kLaneRows;  // of the group
  const int part = warp % kWarpsK * kLanesK + lane / kLaneRows;  // of the row's depth

  float sums[kM] = {};
  int integers[kM] = {};
  Activations activations(a, scales_a, norm, k);
  Addends addends{bias, residual, first_row, n};
  activations.ask(begin);
#pragma unroll 1
  for (int first = begin; first < end; first += kSegment) {
    const int stop = end - first < kSegment ? end : first + kSegment;
    const int block = first / 32 + part * kBlocks;
    Products::Ahead ahead;
    ahead.load(group, row, block, stop / 32, end / 32);
    if (first == begin) {
      addends.load_first();
    }
    if constexpr (kRowScales) {
      if (first == begin) {
        activations.measure_rows();
      }
    }
    __syncthreads();  // the segment before was read
    activations.fill(segment, first, (stop - first + kDepthStep - 1) / kDepthStep * kDepthStep, first == begin);
    __syncthreads();
    Products::multiply_segment(ahead, group, row, block, stop / 32, end / 32, [&](const Products::Step& step, int at) {
      if constexpr (kRowScales && kDp4a) {
        Products::multiply_integers(integers, step, segment, first / 32, at);
      } else {
        Products::multiply(sums, step, segment, first / 32, at);
      }
    });
  }
  if constexpr (kRowScales) {
    const float of_row = row_scale<WEIGHT>(group, group_bytes, row);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      sums[m] = kDp4a ? static_cast<float>(integers[m]) * (activations.scale_of_row(m) * of_row) : sums[m] * of_row;
    }
  }
  activations.leave_squares(squares);
  __syncthreads();  // the last segment was read; its memory now takes the sums
  float* partial = reinterpret_cast<float*>(memory);
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    partial[part * (kBlockRows * kM) + (warp / kWarpsK * kLaneRows + lane % kLaneRows) * kM + m] = sums[m];
  }
  if (gather_sums(partial, workspace, counters, squares, k)) {
    if constexpr (kRounds) {
      store_rounded(q, scales_c, partial, static_cast<int>(blockIdx.x) / kRoundBlocks * kGatheredRows, n);
    } else if constexpr (Epilogue<kFinish>::kHalves) {
      store_gated(c, partial, first_row, n);
    } else {
      store_sums(c, partial, addends);
    }
  }
}

#else

// A block of 32 columns of a row of A, one a lane, as the product takes it; `whole` is the scale of the row, where it
// has one.
template <typename T>
__device__ double rounded_value(const T* row, const float* /*scales*/, const float* norm, int block, int /*row_a*/,
                                int k, Int8Scale whole) {
  const int at = block * 32 + static_cast<int>(threadIdx.x);
  float value = at < k ? to_float(row[at]) : 0.0f;
  if constexpr (kNormed) {
    value = at < k ? __fmul_rn(value, norm[at]) : 0.0f;
  }
  const Int8Scale scale = kRowScales ? whole : int8_scale(largest_of_lanes<32>(magnitude_bits(value)));
  return static_cast<double>(scale.scale) * to_int8(value, scale.inverse);
}
template <>
__device__ double rounded_value<int8>(const int8* row, const float* scales, const float* /*norm*/, int block, int row_a,
                                      int /*k*/, Int8Scale /*whole*/) {
  const float scale = scales[kRowScales ? row_a : block * kM + row_a];
  return static_cast<double>(scale) * row[block * 32 + static_cast<int>(threadIdx.x)];
}

// The scale of a row of floats that has one for all of it.
template <typename T>
__device__ Int8Scale whole_scale(const T* row, int k) {
  int largest = 0;
  for (int i = static_cast<int>(threadIdx.x); kRowScales && sizeof(T) > 1 && i < k; i += 32) {
    const int bits = magnitude_bits(to_float(row[i]));
    largest = bits > largest ? bits : largest;
  }
  return int8_scale(largest_of_lanes<32>(largest));
}

// What the product of a row is multiplied by.
template <typename T>
__device__ double norm_factor(const T* row, int k) {
  if constexpr (kNormed) {
    double sum = 0.0;
    for (int i = static_cast<int>(threadIdx.x); i < k; i += 32) {
      const double value = to_float(row[i]);
      sum += value * value;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    return 1.0 / sqrt(sum / k + EPSILON_NANO / 1e9);
  } else {
    return 1.0;
  }
}

// The same in float64 of exactly these operands, one thread an element of the product; rounded results are given before
// rounding, in units of their scale, each warp's and its neighbour's by one of the two.
// Launch: grid (ceil(N / 32), M), block 32.
extern "C" __global__ void matvec_q_reference(const INPUT* __restrict__ a, const float* __restrict__ scales_a,
                                              const float* __restrict__ norm, const unsigned char* __restrict__ b,
                                              const float* __restrict__ bias, const STORAGE* residual, double* c,
                                              double* q, double* scales_c, float* workspace, int* counters, int n,
                                              int k) {
  const int row = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x);
  const long long group_bytes = packed_group_bytes<WEIGHT>(k);
  const INPUT* values = a + static_cast<long long>(row) * k;
  const Int8Scale whole = whole_scale(values, k);
  const double factor = norm_factor(values, k);
  const auto product = [&](int group_index) {
    const unsigned char* group = b + group_index * group_bytes;
    double sum = 0.0;
    for (int block = 0; block < (k + 31) / 32; ++block) {
      const double rounded = rounded_value(values, scales_a, norm, block, row, k, whole);
      sum += block_product<WEIGHT>(group, lane, block, [&](int i) { return __shfl_sync(0xffffffffu, rounded, i); });
    }
    return sum * factor * row_scale<WEIGHT>(group, group_bytes, lane);
  };
  const int group_index = static_cast<int>(blockIdx.x);
  if constexpr (kRounds) {
    if (group_index % 2 == 0) {
      // The first 16 lanes have the gates and factors of their results from one group, the others from the next.
      const double first = product(group_index);
      const double second = product(group_index + 1);
      double pair[2];
      for (int v = 0; v < 2; ++v) {
        const double of_first = __shfl_sync(0xffffffffu, first, 2 * lane % 32 + v);
        const double of_second = __shfl_sync(0xffffffffu, second, 2 * lane % 32 + v);
        pair[v] = lane < 16 ? of_first : of_second;
      }
      const double result = finished<kFinish>(pair[1], pair[0], 0.0, 0.0);
      double largest = fabs(result);
      for (int distance = 16; distance > 0; distance /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, largest, distance);
        largest = other > largest ? other : largest;
      }
      const int column = group_index * 16 + lane;
      q[static_cast<long long>(row) * (n / 2) + column] = largest > 0.0 ? result / (largest / 127.0) : 0.0;
      scales_c[static_cast<long long>(column / 32) * kM + row] = largest / 127.0;
    }
  } else {
    const int column = group_index * 32 + lane;
    const double sum = product(group_index);
    const double gate = __shfl_sync(0xffffffffu, sum, lane & ~1);
    if (column < n) {
      store_finished<kFinish>(c, sum, gate, bias, residual, static_cast<long long>(row) * n + column, column);
    }
  }
}

#endif
