// C[M,N] = A[M,K] · B[N,K]ᵀ, all row-major (B is a linear layer's weight). float32 or float16 storage, float32
// accumulation.
//
// FLOPs: 2·M·N·K. Bytes: (M·K + N·K + M·N) · sizeof(STORAGE).
// Requires: a, b, c and workspace aligned to 16 bytes; M, N, K >= 1, of any value. With SPLIT_K > 1: `workspace` of
// SPLIT_K·M·N floats, and `counters` of one int a tile of C, zero before the first launch (each launch leaves them
// zero).
// Launch: grid (ceil(N / BLOCK_N), ceil(M / BLOCK_M), SPLIT_K), block (BLOCK_M / THREAD_M) · (BLOCK_N / THREAD_N).
//
// A block computes a tile of BLOCK_M x BLOCK_N. Slices of BLOCK_K of A and B are staged in shared memory, transposed,
// so that a thread reads its rows and columns as vectors. A thread owns THREAD_M x THREAD_N values in chunks of up to
// 4 x 4, spread over its warp's tile so that a warp's shared reads fall in different banks or on the same word.

#include "common/types.cuh"
#include "common/vector.cuh"

#ifndef BLOCK_M
#define BLOCK_M 128  // rows of C a block computes
#endif
#ifndef BLOCK_N
#define BLOCK_N 128  // columns of C a block computes
#endif
#ifndef BLOCK_K
#define BLOCK_K 8  // depth of a slice held in shared memory
#endif
#ifndef THREAD_M
#define THREAD_M 8  // rows of C a thread computes
#endif
#ifndef THREAD_N
#define THREAD_N 8  // columns of C a thread computes
#endif
#ifndef LANES_N
#define LANES_N 8  // threads of a warp side by side along N; the other 32 / LANES_N lie along M
#endif
#ifndef VECTOR
#define VECTOR 4  // elements a global load takes
#endif
#ifndef PADDING
#define PADDING 4  // unused floats behind each row in shared memory
#endif
#ifndef STAGES
#define STAGES 2  // 2: the next slice is stored to a second buffer while this one is used
#endif
#ifndef UNROLL_K
#define UNROLL_K 8  // unrolling of the loop over a slice's depth
#endif
#ifndef SPLIT_K
#define SPLIT_K 1  // blocks that share the depth of one tile
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2  // resident blocks an SM asked of the compiler; 0: no launch bounds
#endif
#ifndef ROWS_ALIGNED
#define ROWS_ALIGNED 0  // 1: K is a multiple of VECTOR
#endif
#ifndef COLUMNS_ALIGNED
#define COLUMNS_ALIGNED 0  // 1: N is a multiple of 4
#endif
#ifndef STORAGE
#define STORAGE float32  // element type of A, B and C
#endif

namespace {

constexpr int kBlockM = BLOCK_M;
constexpr int kBlockN = BLOCK_N;
constexpr int kBlockK = BLOCK_K;
constexpr int kThreadM = THREAD_M;
constexpr int kThreadN = THREAD_N;
constexpr int kLanesN = LANES_N;
constexpr int kLanesM = 32 / kLanesN;
constexpr int kVector = VECTOR;
constexpr int kPadding = PADDING;
constexpr int kStages = STAGES;
constexpr int kUnrollK = UNROLL_K;
constexpr int kSplitK = SPLIT_K;
constexpr bool kRowsAligned = ROWS_ALIGNED != 0;
constexpr bool kColumnsAligned = COLUMNS_ALIGNED != 0;

constexpr int kThreads = (kBlockM / kThreadM) * (kBlockN / kThreadN);
constexpr int kWarpsN = kBlockN / (kLanesN * kThreadN);
constexpr int kChunkM = kThreadM < 4 ? kThreadM : 4;
constexpr int kChunkN = kThreadN < 4 ? kThreadN : 4;
constexpr int kLoadsA = kBlockM * kBlockK / kVector / kThreads;  // a thread, a slice
constexpr int kLoadsB = kBlockN * kBlockK / kVector / kThreads;
constexpr int kRowA = kBlockM + kPadding;  // floats of a row in shared memory
constexpr int kRowB = kBlockN + kPadding;

static_assert(32 % kLanesN == 0, "a warp has 32 lanes");
static_assert(kBlockM % (kLanesM * kThreadM) == 0 && kBlockN % (kLanesN * kThreadN) == 0, "warps tile the block");
static_assert(kThreadM % kChunkM == 0 && kThreadN % kChunkN == 0, "chunks tile a thread's values");
static_assert(kBlockK % kVector == 0, "a slice's row is whole vectors");
static_assert(kLoadsA * kThreads * kVector == kBlockM * kBlockK, "threads share A's slice evenly");
static_assert(kLoadsB * kThreads * kVector == kBlockN * kBlockK, "threads share B's slice evenly");
static_assert(kPadding % 4 == 0, "rows in shared memory stay aligned");
static_assert(kStages == 1 || kStages == 2, "one or two shared buffers");
static_assert(kSplitK >= 1 && kUnrollK >= 1, "counts");

// Reads this thread's share of a slice [ROWS, kBlockK] of a row-major matrix [rows, depth]; zeros outside of it.
template <int LOADS>
__device__ __forceinline__ void load_slice(Vector<STORAGE, kVector> (&staged)[LOADS],
                                           const STORAGE* __restrict__ matrix, int first_row, int rows, int first_k,
                                           int depth) {
  constexpr int kVectorsPerRow = kBlockK / kVector;
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int index = static_cast<int>(threadIdx.x) + i * kThreads;
    const int row = first_row + index / kVectorsPerRow;
    const int k = first_k + index % kVectorsPerRow * kVector;
    const STORAGE* address = matrix + static_cast<long long>(row) * depth + k;
    if constexpr (kRowsAligned) {
      if (row < rows && k < depth) {
        staged[i] = load_vector<kVector>(address);
      } else {
        staged[i] = Vector<STORAGE, kVector>{};
      }
    } else {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        staged[i].element[v] = row < rows && k + v < depth ? address[v] : STORAGE{};
      }
    }
  }
}

// Writes the staged share to shared memory as [kBlockK, ROW] floats.
template <int ROW, int LOADS>
__device__ __forceinline__ void store_slice(float* shared, const Vector<STORAGE, kVector> (&staged)[LOADS]) {
  constexpr int kVectorsPerRow = kBlockK / kVector;
#pragma unroll
  for (int i = 0; i < LOADS; ++i) {
    const int index = static_cast<int>(threadIdx.x) + i * kThreads;
    const int row = index / kVectorsPerRow;
    const int k = index % kVectorsPerRow * kVector;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      shared[(k + v) * ROW + row] = to_float(staged[i].element[v]);
    }
  }
}

// Reads a thread's values of one depth: COUNT floats in chunks CHUNK wide, STRIDE apart.
template <int COUNT, int CHUNK, int STRIDE>
__device__ __forceinline__ void load_fragment(float (&fragment)[COUNT], const float* shared) {
#pragma unroll
  for (int c = 0; c < COUNT / CHUNK; ++c) {
    const auto chunk = load_vector<CHUNK>(shared + c * STRIDE);
#pragma unroll
    for (int i = 0; i < CHUNK; ++i) {
      fragment[c * CHUNK + i] = chunk.element[i];
    }
  }
}

__device__ __forceinline__ void multiply_slice(float (&sum)[kThreadM][kThreadN], const float* shared_a,
                                               const float* shared_b) {
#pragma unroll kUnrollK
  for (int k = 0; k < kBlockK; ++k) {
    float a[kThreadM];
    float b[kThreadN];
    load_fragment<kThreadM, kChunkM, kLanesM * kChunkM>(a, shared_a + k * kRowA);
    load_fragment<kThreadN, kChunkN, kLanesN * kChunkN>(b, shared_b + k * kRowB);
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadN; ++j) {
        sum[i][j] += a[i] * b[j];
      }
    }
  }
}

// Where a thread's values lie in the block's tile.
struct Place {
  int row;     // of its first value
  int column;  // of its first value
  __device__ int row_of(int i) const { return row + i / kChunkM * (kLanesM * kChunkM) + i % kChunkM; }
  __device__ int column_of(int j) const { return column + j / kChunkN * (kLanesN * kChunkN) + j % kChunkN; }
};

// Writes one row's chunk of values to a row-major matrix [m, n] of T.
template <typename T>
__device__ __forceinline__ void store_chunk(T* matrix, const float* values, int row, int column, int m, int n) {
  if (row >= m) {
    return;
  }
  T* address = matrix + static_cast<long long>(row) * n + column;
  if constexpr (kColumnsAligned && kChunkN == 4) {
    if (column < n) {
      Vector<T, kChunkN> out;
#pragma unroll
      for (int j = 0; j < kChunkN; ++j) {
        out.element[j] = from_float<T>(values[j]);
      }
      store_vector(address, out);
    }
  } else {
#pragma unroll
    for (int j = 0; j < kChunkN; ++j) {
      if (column + j < n) {
        address[j] = from_float<T>(values[j]);
      }
    }
  }
}

template <typename T>
__device__ __forceinline__ void store_tile(T* matrix, const float (&sum)[kThreadM][kThreadN], Place place,
                                           int first_row, int first_column, int m, int n) {
#pragma unroll
  for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadN; j += kChunkN) {
      store_chunk(matrix, &sum[i][j], first_row + place.row_of(i), first_column + place.column_of(j), m, n);
    }
  }
}

// Adds up the partial tiles in the order of the splits, so that the result does not depend on who came last. Loops
// stay rolled: this runs once a tile, and unrolled it would be longer than all the rest.
__device__ __forceinline__ void reduce_partials(STORAGE* c, const float* workspace, Place place, int first_row,
                                                int first_column, int m, int n) {
  const long long plane = static_cast<long long>(m) * n;
#pragma unroll 1
  for (int i = 0; i < kThreadM; ++i) {
    const int row = first_row + place.row_of(i);
#pragma unroll 1
    for (int j = 0; j < kThreadN; j += kChunkN) {
      const int column = first_column + place.column_of(j);
      float total[kChunkN] = {};
#pragma unroll
      for (int v = 0; v < kChunkN; ++v) {
        if (row < m && column + v < n) {
          // volatile: other blocks wrote these during this launch, so a cached line may be old.
          const volatile float* partial = workspace + static_cast<long long>(row) * n + column + v;
#pragma unroll
          for (int split = 0; split < kSplitK; ++split) {
            total[v] += partial[split * plane];
          }
        }
      }
      store_chunk(c, total, row, column, m, n);
    }
  }
}

// True in the block that arrives last at its tile; leaves the tile's counter at zero.
__device__ __forceinline__ bool arrived_last(int* counters) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int* counter = counters + blockIdx.y * gridDim.x + blockIdx.x;
    last = atomicAdd(counter, 1) == kSplitK - 1 ? 1 : 0;
    if (last != 0) {
      *counter = 0;
    }
  }
  __syncthreads();
  __threadfence();
  return last != 0;
}

}  // namespace

#if MIN_BLOCKS > 0
#define MATMUL_BOUNDS __launch_bounds__(kThreads, MIN_BLOCKS)
#else
#define MATMUL_BOUNDS
#endif

extern "C" __global__ void MATMUL_BOUNDS matmul(const STORAGE* __restrict__ a, const STORAGE* __restrict__ b,
                                                STORAGE* __restrict__ c, float* workspace, int* counters, int m, int n,
                                                int k) {
  __shared__ __align__(16) float shared_a[kStages][kBlockK * kRowA];
  __shared__ __align__(16) float shared_b[kStages][kBlockK * kRowB];
  const int first_row = static_cast<int>(blockIdx.y) * kBlockM;
  const int first_column = static_cast<int>(blockIdx.x) * kBlockN;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Place place{warp / kWarpsN * (kLanesM * kThreadM) + lane / kLanesN * kChunkM,
                    warp % kWarpsN * (kLanesN * kThreadN) + lane % kLanesN * kChunkN};

  const int slices = (k + kBlockK - 1) / kBlockK;
  const int slices_per_split = (slices + kSplitK - 1) / kSplitK;
  int slice = static_cast<int>(blockIdx.z) * slices_per_split;
  const int end = slice + slices_per_split < slices ? slice + slices_per_split : slices;

  float sum[kThreadM][kThreadN] = {};
  Vector<STORAGE, kVector> staged_a[kLoadsA];
  Vector<STORAGE, kVector> staged_b[kLoadsB];
  if (slice < end) {
    load_slice(staged_a, a, first_row, m, slice * kBlockK, k);
    load_slice(staged_b, b, first_column, n, slice * kBlockK, k);
    store_slice<kRowA>(shared_a[0], staged_a);
    store_slice<kRowB>(shared_b[0], staged_b);
    __syncthreads();
  }
  int stage = 0;
  for (; slice < end; ++slice) {
    const bool more = slice + 1 < end;
    if (more) {
      load_slice(staged_a, a, first_row, m, (slice + 1) * kBlockK, k);
      load_slice(staged_b, b, first_column, n, (slice + 1) * kBlockK, k);
    }
    multiply_slice(sum, shared_a[stage] + place.row, shared_b[stage] + place.column);
    if (more) {
      if constexpr (kStages == 2) {
        stage ^= 1;
      } else {
        __syncthreads();
      }
      store_slice<kRowA>(shared_a[stage], staged_a);
      store_slice<kRowB>(shared_b[stage], staged_b);
      __syncthreads();
    }
  }

  if constexpr (kSplitK > 1) {
    float* partial = workspace + static_cast<long long>(blockIdx.z) * m * n;
    store_tile(partial, sum, place, first_row, first_column, m, n);
    if (arrived_last(counters)) {
      reduce_partials(c, workspace, place, first_row, first_column, m, n);
    }
  } else {
    store_tile(c, sum, place, first_row, first_column, m, n);
  }
}

#ifdef PASCALINE_REFERENCE

// The same in float64, one thread an element of C: what results are verified against.
// Launch: grid (ceil(N / 16), ceil(M / 16)), block (16, 16).
extern "C" __global__ void matmul_reference(const STORAGE* __restrict__ a, const STORAGE* __restrict__ b,
                                            double* __restrict__ c, float* workspace, int* counters, int m, int n,
                                            int k) {
  constexpr int kTile = 16;
  __shared__ double tile_a[kTile][kTile + 1];
  __shared__ double tile_b[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + y;
  const int column = static_cast<int>(blockIdx.x) * kTile + x;
  const int row_of_b = static_cast<int>(blockIdx.x) * kTile + y;
  double sum = 0.0;
  for (int first = 0; first < k; first += kTile) {
    const bool inside = first + x < k;
    tile_a[y][x] = inside && row < m ? to_float(a[static_cast<long long>(row) * k + first + x]) : 0.0f;
    tile_b[y][x] = inside && row_of_b < n ? to_float(b[static_cast<long long>(row_of_b) * k + first + x]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += tile_a[y][i] * tile_b[x][i];
    }
    __syncthreads();
  }
  if (row < m && column < n) {
    c[static_cast<long long>(row) * n + column] = sum;
  }
}

#endif
