#pragma once

// The choice of a token by bisection over ranks, by one block: what `sample` and `sample_next` are verified against. In
// float64 the choice would differ wherever rounding moves a boundary between tokens across the drawn number, so that
// this, too, is integers and single operations of float32.

#include "sampling.cuh"

constexpr int kSampleThreads = 256;

struct SampleReference {
  const float* logits;
  const float* settings;
  const double* seen;
  int vocabulary;
  Warmth warmth;
  int top;  // exponent of the largest logit's mass

  __device__ float logit(int i) const {
    const float value = logits[i];
    const float repetition = settings[2];
    if (seen[i] <= 0.0) {
      return value;
    }
    return __fsub_rn(value > 0.0f ? __fdiv_rn(value, repetition) : __fmul_rn(value, repetition), settings[3]);
  }

  // 0 if all are NaN.
  __device__ Wide largest_rank() const {
    __shared__ Wide largest[kSampleThreads];
    const int thread = static_cast<int>(threadIdx.x);
    largest[thread] = 0;
    for (int i = thread; i < vocabulary; i += kSampleThreads) {
      const Wide rank = isnan(logit(i)) ? 0 : rank_of(logit(i), i);
      largest[thread] = rank > largest[thread] ? rank : largest[thread];
    }
    __syncthreads();
    Wide rank = 0;
    for (int i = 0; i < kSampleThreads; ++i) {
      rank = largest[i] > rank ? largest[i] : rank;
    }
    return rank;
  }

  // Number, or weight, of the tokens with at least that rank and at least that weight of their own.
  __device__ Wide measure(bool by_weight, Wide least_rank, Wide least_weight = 0) const {
    __shared__ Wide bins[kBins];
    const int thread = static_cast<int>(threadIdx.x);
    __syncthreads();
    if (thread < kBins) {
      bins[thread] = 0;
    }
    __syncthreads();
    for (int i = thread; i < vocabulary; i += kSampleThreads) {
      const float value = logit(i);
      if (isnan(value) || rank_of(value, i) < least_rank) {
        continue;
      }
      const long long power = warmth.power(value);
      const int bin = top - exponent_of(power);
      if (bin < kBins && weight_in(mass_of(power), bin) >= least_weight) {
        atomicAdd(&bins[bin], packed(1, mass_of(power)));
      }
    }
    __syncthreads();
    Wide sum = 0;
    for (int bin = 0; bin < kBins; ++bin) {
      sum += by_weight ? weight_in(bins[bin], bin) : tokens_in(bins[bin]);
    }
    return sum;
  }

  // Rank of the token with which, going down the ranks, a target is reached.
  __device__ Wide reaching(bool by_weight, Wide target) const {
    Wide rank = 0;
    for (int bit = 63; bit >= 0; --bit) {
      const Wide tried = rank | Wide{1} << bit;
      rank = measure(by_weight, tried) >= target ? tried : rank;
    }
    return rank;
  }
};

// Writes the token and its probability; counts it in `seen`, and the draw in generator[1]. Returns the token.
__device__ int sample_reference_token(const float* logits, const float* settings, const int* top_k, double* generator,
                                      double* seen, double* token, double* probability, int vocabulary) {
  SampleReference of{logits, settings, seen, vocabulary, Warmth(settings[0]), 0};
  const Wide first = of.largest_rank();
  const int greedy = first > 0 ? id_of(first) : 0;
  int chosen = greedy;
  double chosen_probability = first > 0 ? 1.0 : 0.0;
  if (first > 0 && settings[0] >= kColdest && *top_k != 1) {
    const long long power = of.warmth.power(of.logit(greedy));
    of.top = exponent_of(power);
    Wide kept = of.measure(true, 0);
    if (*top_k > 0 && *top_k < of.measure(false, 0)) {
      kept = of.measure(true, of.reaching(false, *top_k));
    }
    if (settings[1] < 1.0f) {
      kept = of.measure(true, of.reaching(true, share_of(settings[1], kept)));
    }
    if (settings[4] > 0.0f) {
      const Wide likely = of.measure(true, 0, share_of(fminf(settings[4], 1.0f), weight_in(mass_of(power), 0)));
      kept = likely < kept ? likely : kept;
    }
    const Wide random = philox(static_cast<Wide>(generator[0]), static_cast<Wide>(generator[1]));
    const Wide rank = of.reaching(true, __umul64hi(random, kept) + 1);
    chosen = id_of(rank);
    const Wide weight = of.measure(true, rank) - of.measure(true, rank + 1);
    chosen_probability = static_cast<float>(static_cast<double>(weight) / static_cast<double>(kept));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    generator[1] += 1.0;
    seen[chosen] += first > 0 && seen[chosen] < 2147483647.0 ? 1.0 : 0.0;
    *token = chosen;
    *probability = chosen_probability;
  }
  return chosen;
}
