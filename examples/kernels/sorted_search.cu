// positions[QUERIES]: for each query, how many of the ascending keys[KEYS] are smaller; int32.
//
// Comparisons: QUERIES · log₂ KEYS. Bytes: 8·QUERIES and the keys that are met.
// Requires: keys in ascending order.
// Launch: grid ceil(QUERIES / (BLOCK · PER_THREAD)), block BLOCK.
//
// A thread searches for PER_THREAD queries at once, so that their reads overlap. A block with SAMPLES copies so many
// keys, evenly apart, to shared memory and does the first steps of each search there.

namespace {

// How many of `count` ascending keys are smaller than each query. All searches halve the same count.
__device__ __forceinline__ void search(const int* const* keys, int count, const int* queries, int* found) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    found[i] = 0;
  }
  for (; count > 1; count -= count / 2) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      found[i] += keys[i][found[i] + count / 2 - 1] < queries[i] ? count / 2 : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    found[i] += keys[i][found[i]] < queries[i];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    sorted_search(const int* __restrict__ keys, const int* __restrict__ queries, int* __restrict__ positions,
                  int key_count, int query_count) {
  const int thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * kBlock * kPerThread + thread;
  int wanted[kPerThread];
  int found[kPerThread];
  const int* from[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    wanted[i] = queries[min(first + i * kBlock, query_count - 1)];
    from[i] = keys;
  }
  int range = key_count;
  if constexpr (kSamples > 0) {
    __shared__ int samples[kSamples];
    range = (key_count + kSamples - 1) / kSamples;
    // Each is the last key of its range. There may be fewer ranges, of which the last may be shorter.
    for (int i = thread; i < kSamples; i += kBlock) {
      samples[i] = keys[min((i + 1) * range, key_count) - 1];
    }
    __syncthreads();
    const int* all[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      all[i] = samples;
    }
    search(all, kSamples, wanted, found);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      from[i] = keys + min(found[i] * range, key_count - range);
    }
  }
  search(from, range, wanted, found);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (first + i * kBlock < query_count) {
      positions[first + i * kBlock] = static_cast<int>(from[i] - keys) + found[i];
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
