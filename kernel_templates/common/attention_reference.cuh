#pragma once

// One row of attention in float64, by a block of kReferenceThreads threads: what attention kernels are verified
// against. Scores are computed for a chunk of keys, one a thread, then every thread adds the chunk to its columns.

constexpr int kReferenceThreads = 128;

template <typename T>
__device__ double as_double(T value) {
  return to_float(value);
}
template <>
__device__ double as_double<double>(double value) {
  return value;
}

// One head's rows of keys or values, `stride` elements apart. If there are scales, elements count times the row's, in
// column `scale` of rows of `scale_stride`.
template <typename C, typename S = float>
struct ReferenceRows {
  const C* data;
  long long stride;
  const S* scales;
  int scale;
  int scale_stride;

  __device__ double at(int row, int column) const {
    const double value = as_double(data[row * stride + column]);
    return scales != nullptr ? value * scales[static_cast<long long>(row) * scale_stride + scale] : value;
  }
};

// A query that sees every key that it is given.
struct FullSight {
  __device__ bool operator()(int /*key*/) const { return true; }
};

// out[HEAD] = softmax(q · kᵀ / sqrt(HEAD)) · v over those of `keys` rows of k and v from `begin` on that `sees` tells;
// zeros if there are none. `out` may be `q`.
template <int HEAD, typename T, typename C, typename S, typename Sight = FullSight>
__device__ void attention_row_reference(const T* q, const ReferenceRows<C, S>& k, const ReferenceRows<C, S>& v,
                                        int begin, int keys, double* out, Sight sees = {}) {
  constexpr int kColumns = (HEAD + kReferenceThreads - 1) / kReferenceThreads;
  __shared__ double scores[kReferenceThreads];
  const int thread = static_cast<int>(threadIdx.x);
  constexpr double kUnseen = -1e301;
  double maximum = -1e300;
  double sum = 0.0;
  double total[kColumns] = {};
  for (int first = 0; first < keys; first += kReferenceThreads) {
    const int count = keys - first < kReferenceThreads ? keys - first : kReferenceThreads;
    if (thread < count) {
      double dot = 0.0;
      for (int d = 0; d < HEAD; ++d) {
        dot += as_double(q[d]) * k.at(begin + first + thread, d);
      }
      scores[thread] = sees(begin + first + thread) ? dot / sqrt(static_cast<double>(HEAD)) : kUnseen;
    }
    __syncthreads();
    double raised = maximum;
    for (int i = 0; i < count; ++i) {
      raised = fmax(raised, scores[i]);
    }
    const double factor = exp(maximum - raised);
    maximum = raised;
    __syncthreads();
    if (thread < count) {
      scores[thread] = exp(scores[thread] - maximum);
    }
    __syncthreads();
    sum *= factor;
    for (int c = 0; c < kColumns; ++c) {
      total[c] *= factor;
    }
    for (int i = 0; thread < HEAD && i < count; ++i) {
      const double weight = scores[i];
      sum += weight;
      for (int c = 0; c < kColumns; ++c) {
        const int d = thread + c * kReferenceThreads;
        total[c] += d < HEAD ? weight * v.at(begin + first + i, d) : 0.0;
      }
    }
    __syncthreads();
  }
  for (int c = 0; c < kColumns; ++c) {
    const int d = thread + c * kReferenceThreads;
    if (d < HEAD) {
      out[d] = sum > 0.0 ? total[c] / sum : 0.0;
    }
  }
}
