#pragma once

// Softmax in one pass over its scores: a running maximum and sum, and whatever was summed with them, are scaled down
// whenever a larger score turns up. Scores are in units of log2, so that a power is one instruction. (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018.)

#include "reduce.cuh"

constexpr float kLog2E = 1.4426950408889634f;

// Where a running maximum begins. It is finite: the difference of two of them is 0, not NaN, where nothing was seen.
constexpr float kNoMaximum = -1e30f;

// A score that does not count: its power is 0 whatever the maximum.
__device__ __forceinline__ float no_score() { return Max::identity(); }

// 2 to the power of `value`, 0 where that would be denormal.
__device__ __forceinline__ float power_of_2(float value) {
#ifdef __CUDA_ARCH__
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(value));
  return out;
#else
  return exp2f(value);
#endif
}

// Over the LANES lanes of a warp whose numbers differ in multiples of STRIDE only; each of them gets the result.
template <typename Operation, bool PTX, int LANES, int STRIDE>
__device__ __forceinline__ float lanes_reduce(float value) {
  static_assert(LANES >= 1 && LANES * STRIDE <= 32 && (LANES & (LANES - 1)) == 0, "lanes of a warp");
  if constexpr (LANES > 1) {
    value = exchange_step<Operation, PTX, LANES / 2 * STRIDE>(value);
    return lanes_reduce<Operation, PTX, LANES / 2, STRIDE>(value);
  }
  return value;
}

struct OnlineSoftmax {
  float maximum;
  float sum;

  // The state before the first score.
  static __device__ __forceinline__ OnlineSoftmax empty() { return {kNoMaximum, 0.0f}; }

  // Makes room for scores up to `score`; returns the factor for everything summed so far besides `sum`.
  __device__ __forceinline__ float raise(float score) {
    const float raised = fmaxf(maximum, score);
    const float factor = power_of_2(maximum - raised);
    maximum = raised;
    sum *= factor;
    return factor;
  }

  // What sums are multiplied with in the end; 0 where there was no score.
  __device__ __forceinline__ float normaliser() const { return sum > 0.0f ? 1.0f / sum : 0.0f; }
};

// Joins the first `count` of up to LIMIT states of one head, which `states[i]` gives: returns the whole, and in
// `weights` the factor each state's sums count with. All lanes of a warp must take part.
template <int LIMIT, bool PTX, typename States>
__device__ __forceinline__ OnlineSoftmax join_states(float* weights, const States& states, int count) {
  constexpr int kRounds = (LIMIT + 31) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  OnlineSoftmax own[kRounds];
  OnlineSoftmax whole = OnlineSoftmax::empty();
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    own[i] = lane + i * 32 < count ? states[lane + i * 32] : OnlineSoftmax::empty();
    whole.maximum = fmaxf(whole.maximum, own[i].maximum);
  }
  whole.maximum = warp_reduce<Max, PTX>(whole.maximum);
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const float weight = power_of_2(own[i].maximum - whole.maximum);
    whole.sum += weight * own[i].sum;
    if (lane + i * 32 < count) {
      weights[lane + i * 32] = weight;
    }
  }
  whole.sum = warp_reduce<Sum, PTX>(whole.sum);
  return whole;
}
