#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

/// A function of which the compiler may use these instructions; whoever calls it has asked whether they are there.
#define PASCALINE_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace pascaline::cpu {

/// The sum of 8 lanes, always in the same order.
PASCALINE_AVX2 inline float sum_lanes(__m256 lanes) {
  __m128 sums = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
  return _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)));
}

namespace avx2 {

// The functions of VectorKernels.
PASCALINE_AVX2 float maximum(const float* values, std::int64_t count);
PASCALINE_AVX2 double exp_sum(float* values, std::int64_t count, float shift);
PASCALINE_AVX2 double sum(const float* values, std::int64_t count);
PASCALINE_AVX2 double squares(const float* values, std::int64_t count, double mean);
PASCALINE_AVX2 void silu_multiply(const float* gate, const float* factor, float* y, std::int64_t count);
PASCALINE_AVX2 void gelu_tanh(const float* x, float* y, std::int64_t count);

}  // namespace avx2
}  // namespace pascaline::cpu

#endif
