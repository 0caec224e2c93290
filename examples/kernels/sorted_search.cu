// positions[QUERIES]: for each query, how many of the ascending keys[KEYS] are smaller; int32.
//
// Comparisons: QUERIES · log₂ KEYS. Bytes: 8·QUERIES and the keys that are met.
// Requires: keys in ascending order.
// Launch: grid ceil(QUERIES / (BLOCK · PER_THREAD)), block BLOCK.
//
// A thread searches for PER_THREAD queries at once, so that their reads overlap. A block with SAMPLES copies so many
// keys, evenly apart, to shared memory and does the first steps of each search there.

namespace {

constexpr int kSampled = kSamples > 0 ? kSamples : 1;

// Adds to each of `found` how many of the `count` ascending keys from there on are smaller than the query. All searches
// halve the same count.
__device__ __forceinline__ void search(const int* keys, int count, const int* wanted, int* found) {
  for (; count > 1; count -= count / 2) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      found[i] += keys[found[i] + count / 2 - 1] < wanted[i] ? count / 2 : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    found[i] += keys[found[i]] < wanted[i];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    sorted_search(const int* __restrict__ keys, const int* __restrict__ queries, int* __restrict__ positions,
                  int key_count, int query_count) {
  const int thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * kBlock * kPerThread + thread;
  int wanted[kPerThread];
  int found[kPerThread] = {};
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    wanted[i] = queries[min(first + i * kBlock, query_count - 1)];
  }
  int range = key_count;
  if constexpr (kSamples > 0) {
    __shared__ int samples[kSampled];
    range = (key_count + kSampled - 1) / kSampled;
    // Each is the last key of its range. There may be fewer ranges, of which the last may be shorter.
    for (int i = thread; i < kSampled; i += kBlock) {
      samples[i] = keys[min((i + 1) * range, key_count) - 1];
    }
    __syncthreads();
    search(samples, kSampled, wanted, found);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      found[i] = min(found[i] * range, key_count - range);
    }
  }
  search(keys, range, wanted, found);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (first + i * kBlock < query_count) {
      positions[first + i * kBlock] = found[i];
    }
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void sorted_search_reference(const int* keys, const int* queries, double* positions,
                                                   int key_count, int query_count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < query_count) {
    int below = 0;
    int end = key_count;
    while (below < end) {
      const int middle = below + (end - below) / 2;
      if (keys[middle] < queries[i]) {
        below = middle + 1;
      } else {
        end = middle;
      }
    }
    positions[i] = below;
  }
}

#endif
