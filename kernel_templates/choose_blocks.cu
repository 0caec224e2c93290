// blocks[LISTS, ceil(QUERIES / BLOCK), WIDTH]: lists of the blocks of keys that each block of BLOCK queries is to see,
// by scores[LISTS, ceil(QUERIES / BLOCK), ceil(KEYS / BLOCK)]. Queries are the last QUERIES of `length` rows. Of the n
// blocks up to its last query a block of queries gets ceil(n · PART / 10⁶), at most WIDTH: always the first one and
// those of its own queries, then those with the largest scores. Of equal scores that of the earlier block counts more;
// one that is no number counts least. Lists ascend; after their end they are -1. `length` lies in device memory: a
// captured launch serves a growing context. It is held to QUERIES … KEYS.
//
// scores are float32, blocks int32.
// Bytes: scores and blocks. FLOPs: none.
// Requires: KEYS at least QUERIES; WIDTH at least 3, or the blocks that there are; ceil(KEYS / BLOCK) at most 8192.
// Launch: grid (ceil(QUERIES / BLOCK), LISTS), block THREADS.
//
// Scores become integers of the same order, in shared memory. The smallest chosen one is found bit by bit, by counting
// how many are as large; what is larger is chosen, and of the equal ones the first.

namespace {

constexpr int kWarps = kThreads / 32;
constexpr int kMaxBlocks = 8192;

static_assert(kThreads % 32 == 0 && kWarps <= 32, "whole warps");

// An integer that is larger where the score is; 0 where it is no number.
__device__ __forceinline__ unsigned int order_of(float score) {
  const unsigned int bits = __float_as_uint(score == 0.0f ? 0.0f : score);  // of both zeros the same
  if (!(score == score)) {
    return 0;
  }
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Over the block; all threads get it.
struct Counter {
  int* of_warps;  // two times kWarps, in turns

  // How many of the threads say so, and how many of those are before this one.
  __device__ __forceinline__ int count(bool counts, int turn, int& before) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const unsigned int lanes = __ballot_sync(0xffffffffu, counts);
    const unsigned int earlier = (1u << (threadIdx.x % 32)) - 1;
    int* own = of_warps + turn % 2 * kWarps;
    if (threadIdx.x % 32 == 0) {
      own[warp] = __popc(lanes);
    }
    __syncthreads();
    int sum = 0;
    before = __popc(lanes & earlier);
    for (int i = 0; i < kWarps; ++i) {
      before += i < warp ? own[i] : 0;
      sum += own[i];
    }
    return sum;
  }
};

}  // namespace

#ifndef PASCALINE_REFERENCE

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    choose_blocks(const float* __restrict__ scores, const int* __restrict__ length, int* __restrict__ blocks,
                  int queries, int keys, int block, int width, int part) {
  __shared__ unsigned int orders[kMaxBlocks];
  __shared__ int of_warps[2 * kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int key_blocks = (keys + block - 1) / block;
  const long long list = static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x;
  const float* own_scores = scores + list * key_blocks;
  int* own = blocks + list * width;
  const int rows = *length < queries ? queries : *length < keys ? *length : keys;
  const int first = rows - queries + static_cast<int>(blockIdx.x) * block;
  const int last = first + block < rows ? first + block - 1 : rows - 1;
  const int diagonal = first / block;
  const int there = last / block + 1;
  const int always = there - diagonal + (diagonal > 0 ? 1 : 0);
  // Blocks 1 … diagonal - 1 are chosen among.
  const int candidates = diagonal > 1 ? diagonal - 1 : 0;
  int wanted = static_cast<int>((static_cast<long long>(there) * part + 999999) / 1000000);
  wanted = wanted < width ? wanted : width;
  wanted = wanted > always ? wanted - always : 0;
  wanted = wanted < candidates ? wanted : candidates;
  for (int i = thread; i < candidates; i += kThreads) {
    orders[i] = order_of(own_scores[i + 1]);
  }
  __syncthreads();

  // The largest number that at least `wanted` are as large as.
  const Counter counter{of_warps};
  unsigned int least = 0;
  int turn = 0;
  int before = 0;
#pragma unroll 1
  for (int bit = 31; bit >= 0 && wanted > 0; --bit) {
    const unsigned int tried = least | 1u << bit;
    int reached = 0;
    for (int i = 0; i < candidates; i += kThreads) {
      reached += counter.count(i + thread < candidates && orders[i + thread] >= tried, turn++, before);
    }
    least = reached >= wanted ? tried : least;
  }
  int larger = 0;
  for (int i = 0; i < candidates && wanted > 0; i += kThreads) {
    larger += counter.count(i + thread < candidates && orders[i + thread] > least, turn++, before);
  }

  int listed = diagonal > 0 ? 1 : 0;
  if (thread == 0 && listed > 0) {
    own[0] = 0;
  }
  int equals = 0;  // chosen or not, in earlier rounds
  for (int i = 0; i < candidates && wanted > 0; i += kThreads) {
    const bool exists = i + thread < candidates;
    const bool equal = exists && orders[i + thread] == least;
    const int equals_here = counter.count(equal, turn++, before);
    const bool chosen = exists && (orders[i + thread] > least || (equal && equals + before < wanted - larger));
    equals += equals_here;
    const int chosen_here = counter.count(chosen, turn++, before);
    if (chosen) {
      own[listed + before] = i + thread + 1;
    }
    listed += chosen_here;
  }
  for (int i = listed + thread; i < width; i += kThreads) {
    const int of_queries = diagonal + i - listed;
    own[i] = of_queries < there ? of_queries : -1;
  }
}

#else

// The same by one thread, block after block. Launch: grid (ceil(QUERIES / BLOCK), LISTS), block 1.
extern "C" __global__ void choose_blocks_reference(const float* __restrict__ scores, const int* __restrict__ length,
                                                   double* __restrict__ blocks, int queries, int keys, int block,
                                                   int width, int part) {
  const int key_blocks = (keys + block - 1) / block;
  const long long list = static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x;
  const float* own_scores = scores + list * key_blocks;
  double* own = blocks + list * width;
  const int rows = *length < queries ? queries : *length < keys ? *length : keys;
  const int first = rows - queries + static_cast<int>(blockIdx.x) * block;
  const int last = first + block < rows ? first + block - 1 : rows - 1;
  const int diagonal = first / block;
  const int there = last / block + 1;
  int wanted = static_cast<int>((static_cast<long long>(there) * part + 999999) / 1000000);
  wanted = (wanted < width ? wanted : width) - (there - diagonal) - (diagonal > 0 ? 1 : 0);
  int listed = 0;
  for (int key = 0; key < there; ++key) {
    bool chosen = key == 0 || key >= diagonal;
    if (!chosen) {
      int better = 0;
      for (int other = 1; other < diagonal; ++other) {
        const unsigned int a = order_of(own_scores[other]);
        const unsigned int b = order_of(own_scores[key]);
        better += a > b || (a == b && other < key) ? 1 : 0;
      }
      chosen = better < wanted;
    }
    if (chosen && listed < width) {
      own[listed++] = key;
    }
  }
  while (listed < width) {
    own[listed++] = -1;
  }
}

#endif
