#pragma once

// What query and key heads pass between their projection and attention: RMSNorm over a head, interleaved rotary
// embedding by three positions (M-RoPE), and the scale of a head in an int8 cache.

#include "rotary.cuh"
#include "row.cuh"

// Of a token: by T, by the row of an image and by its column.
struct HeadPosition {
  int t;
  int h;
  int w;
};

// Reads a thread's slots of the tables [positions, HALF], from slot `first` on, as cosines (low) and sines (high). Slot
// j turns by H if j % 3 == 1 and j < 3 · section_h, by W if j % 3 == 2 and j < 3 · section_w, else by T.
template <bool ALIGNED, int HALF, int STEP, int N>
__device__ __forceinline__ void load_rotation(RotaryPart<HALF, STEP, N>& turn, const float* __restrict__ cosine,
                                              const float* __restrict__ sine, HeadPosition position, int first,
                                              int section_h, int section_w) {
  constexpr int kChunks = RotaryPart<HALF, STEP, N>::kChunks;
  const long long row = static_cast<long long>(position.t) * HALF;
  if (position.t == position.h && position.t == position.w) {  // text
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      load_floats<ALIGNED>(turn.low[c], cosine + row, first + c * STEP, HALF);
      load_floats<ALIGNED>(turn.high[c], sine + row, first + c * STEP, HALF);
    }
    return;
  }
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      const int slot = first + c * STEP + v;
      const bool is_h = slot % 3 == 1 && slot < 3 * section_h;
      const bool is_w = slot % 3 == 2 && slot < 3 * section_w;
      const long long index = static_cast<long long>(is_h ? position.h : is_w ? position.w : position.t) * HALF + slot;
      turn.low[c][v] = slot < HALF ? cosine[index] : 0.0f;
      turn.high[c][v] = slot < HALF ? sine[index] : 0.0f;
    }
  }
}

template <int HALF, int STEP, int N>
__device__ __forceinline__ float sum_of_squares(const RotaryPart<HALF, STEP, N>& pairs) {
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < RotaryPart<HALF, STEP, N>::kChunks; ++c) {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      sum += pairs.low[c][v] * pairs.low[c][v] + pairs.high[c][v] * pairs.high[c][v];
    }
  }
  return sum;
}

// Multiplies a thread's slots with `factor` and with `weights`.
template <int HALF, int STEP, int N>
__device__ __forceinline__ void normalise(RotaryPart<HALF, STEP, N>& pairs, const RotaryPart<HALF, STEP, N>& weights,
                                          float factor) {
#pragma unroll
  for (int c = 0; c < RotaryPart<HALF, STEP, N>::kChunks; ++c) {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      pairs.low[c][v] *= factor * weights.low[c][v];
      pairs.high[c][v] *= factor * weights.high[c][v];
    }
  }
}

// The larger of two magnitudes. As integers floats that are not negative have the same order, with NaN above all.
struct MaxMagnitude {
  static __device__ __forceinline__ float combine(float a, float b) {
    return __int_as_float(max(__float_as_int(a), __float_as_int(b)));
  }
};

// The scale of a head in an int8 cache: max |x| / 127, 0 if that is below the least normal float32. LANES neighbouring
// lanes share a head; all lanes of the warp must take part.
template <int LANES, int HALF, int STEP, int N>
__device__ __forceinline__ float scale_of(const RotaryPart<HALF, STEP, N>& pairs) {
  constexpr float kMinNormal = 1.17549435e-38f;
  float largest = 0.0f;
#pragma unroll
  for (int c = 0; c < RotaryPart<HALF, STEP, N>::kChunks; ++c) {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      largest = MaxMagnitude::combine(largest, fabsf(pairs.low[c][v]));
      largest = MaxMagnitude::combine(largest, fabsf(pairs.high[c][v]));
    }
  }
  const float scale = warp_reduce<MaxMagnitude, false, LANES>(largest) / 127.0f;
  return scale < kMinNormal ? 0.0f : scale;
}

template <int HALF, int STEP, int N>
__device__ __forceinline__ void divide(RotaryPart<HALF, STEP, N>& pairs, float scale) {
  const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
#pragma unroll
  for (int c = 0; c < RotaryPart<HALF, STEP, N>::kChunks; ++c) {
#pragma unroll
    for (int v = 0; v < N; ++v) {
      pairs.low[c][v] *= inverse;
      pairs.high[c][v] *= inverse;
    }
  }
}
