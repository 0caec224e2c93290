#pragma once

// A head of queries or keys in float64, by one thread: what kernels that turn heads are verified against.

#include "attention_reference.cuh"
#include "rotary.cuh"

struct RotationReference {
  const float* cosine;
  const float* sine;
  const int* positions;  // of a token, those of the three axes `tokens` apart
  int tokens;
  int position_count;
  int section_h;
  int section_w;
  double epsilon;

  // RMSNorm with these weights, if there are some, and rotation.
  template <int HEAD, typename T>
  __device__ void apply(const T* in, double* out, const float* weight) const {
    constexpr int kHalf = HEAD / 2;
    double squares = 0.0;
    for (int i = 0; i < HEAD; ++i) {
      squares += as_double(in[i]) * as_double(in[i]);
    }
    const double factor = 1.0 / sqrt(squares / HEAD + epsilon);
    for (int j = 0; j < kHalf; ++j) {
      const int axis = j % 3 == 1 && j < 3 * section_h ? 1 : j % 3 == 2 && j < 3 * section_w ? 2 : 0;
      const long long row = clamp_row(positions[axis * tokens], position_count);
      const double c = cosine[row * kHalf + j];
      const double s = sine[row * kHalf + j];
      const double low = as_double(in[j]) * (weight != nullptr ? factor * weight[j] : 1.0);
      const double high = as_double(in[j + kHalf]) * (weight != nullptr ? factor * weight[j + kHalf] : 1.0);
      out[j] = low * c - high * s;
      out[j + kHalf] = high * c + low * s;
    }
  }
};

// In an int8 cache: a head's scale, and its elements in units of it, not rounded.
template <int HEAD>
__device__ void divide_by_scale_reference(double* head, double* scale) {
  double largest = 0.0;
  for (int i = 0; i < HEAD; ++i) {
    largest = fmax(largest, fabs(head[i]));
  }
  *scale = largest / 127.0;
  for (int i = 0; i < HEAD; ++i) {
    head[i] = largest > 0.0 ? head[i] / *scale : 0.0;
  }
}
