#include "runtime/cpu/vector_math_avx2.hpp"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace pascaline::cpu::avx2 {
namespace {

// Fewer than 8 values, the others `fill`.
PASCALINE_AVX2 __m256 load_values(const float* from, std::int64_t count, float fill) {
  if (count >= 8) {
    return _mm256_loadu_ps(from);
  }
  alignas(32) std::array<float, 8> padded;
  padded.fill(fill);
  std::copy_n(from, count, padded.begin());
  return _mm256_load_ps(padded.data());
}

PASCALINE_AVX2 void store_values(__m256 values, float* to, std::int64_t count) {
  if (count >= 8) {
    _mm256_storeu_ps(to, values);
    return;
  }
  alignas(32) std::array<float, 8> padded;
  _mm256_store_ps(padded.data(), values);
  std::copy_n(padded.begin(), count, to);
}

// 2^n for n from −126 to 127; any bits at all otherwise.
PASCALINE_AVX2 __m256 power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

// exp(x) = 2^n · exp(r) with |r| ≤ ln(2)/2, exp(r) by its Taylor polynomial, whose first term left out is below 6e-9.
// Within 2 units in the last place; denormals, zero, infinity and NaN as std::exp gives them.
PASCALINE_AVX2 __m256 exp8(__m256 x) {
  // Beyond these all results are 0 or infinite. The operands' order lets NaN through.
  x = _mm256_max_ps(_mm256_set1_ps(-104.0F), _mm256_min_ps(_mm256_set1_ps(89.0F), x));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(std::numbers::log2e_v<float>)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  constexpr float kLn2 = std::numbers::ln2_v<float>;
  constexpr auto kLn2Rest = static_cast<float>(std::numbers::ln2 - static_cast<double>(kLn2));
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2Rest), r);
  constexpr float kCoefficients[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};
  __m256 sum = _mm256_set1_ps(1.0F / 5040);
  for (const float coefficient : kCoefficients) {
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(coefficient));
  }
  // In two steps, as 2^n alone may be out of range where the product is not.
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return _mm256_mul_ps(_mm256_mul_ps(sum, power_of_two(half)), power_of_two(_mm256_sub_epi32(whole, half)));
}

struct Doubles {
  __m256d low;
  __m256d high;
};

PASCALINE_AVX2 Doubles widened(__m256 values) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(values)), _mm256_cvtps_pd(_mm256_extractf128_ps(values, 1))};
}

PASCALINE_AVX2 double sum_doubles(const Doubles& of) {
  alignas(32) std::array<double, 4> lanes;
  _mm256_store_pd(lanes.data(), _mm256_add_pd(of.low, of.high));
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

PASCALINE_AVX2 void add_to(Doubles& sums, __m256 values) {
  const Doubles wide = widened(values);
  sums.low = _mm256_add_pd(sums.low, wide.low);
  sums.high = _mm256_add_pd(sums.high, wide.high);
}

}  // namespace

float maximum(const float* values, std::int64_t count) {
  constexpr float kMin = -std::numeric_limits<float>::infinity();
  __m256 most = _mm256_set1_ps(kMin);
  for (std::int64_t i = 0; i < count; i += 8) {
    most = _mm256_max_ps(load_values(values + i, count - i, kMin), most);
  }
  alignas(32) std::array<float, 8> lanes;
  _mm256_store_ps(lanes.data(), most);
  return *std::max_element(lanes.begin(), lanes.end());
}

double exp_sum(float* values, std::int64_t count, float shift) {
  Doubles sums{_mm256_setzero_pd(), _mm256_setzero_pd()};
  const __m256 shifts = _mm256_set1_ps(shift);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 result = exp8(_mm256_sub_ps(_mm256_loadu_ps(values + i), shifts));
    _mm256_storeu_ps(values + i, result);
    add_to(sums, result);
  }
  double rest = 0;
  if (i < count) {
    store_values(exp8(_mm256_sub_ps(load_values(values + i, count - i, shift), shifts)), values + i, count - i);
    for (; i < count; ++i) {
      rest += values[i];
    }
  }
  return sum_doubles(sums) + rest;
}

double sum(const float* values, std::int64_t count) {
  Doubles sums{_mm256_setzero_pd(), _mm256_setzero_pd()};
  for (std::int64_t i = 0; i < count; i += 8) {
    add_to(sums, load_values(values + i, count - i, 0));
  }
  return sum_doubles(sums);
}

double squares(const float* values, std::int64_t count, double mean) {
  Doubles sums{_mm256_setzero_pd(), _mm256_setzero_pd()};
  const __m256d means = _mm256_set1_pd(mean);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const Doubles wide = widened(_mm256_loadu_ps(values + i));
    const __m256d low = _mm256_sub_pd(wide.low, means);
    const __m256d high = _mm256_sub_pd(wide.high, means);
    sums.low = _mm256_fmadd_pd(low, low, sums.low);
    sums.high = _mm256_fmadd_pd(high, high, sums.high);
  }
  double rest = 0;
  for (; i < count; ++i) {
    const double distance = values[i] - mean;
    rest += distance * distance;
  }
  return sum_doubles(sums) + rest;
}

void silu_multiply(const float* gate, const float* factor, float* y, std::int64_t count) {
  const __m256 one = _mm256_set1_ps(1);
  for (std::int64_t i = 0; i < count; i += 8) {
    const __m256 g = load_values(gate + i, count - i, 0);
    const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(one, exp8(_mm256_xor_ps(g, _mm256_set1_ps(-0.0F)))));
    store_values(_mm256_mul_ps(silu, load_values(factor + i, count - i, 0)), y + i, count - i);
  }
}

// As the portable one: x / (1 + exp(−2z)).
void gelu_tanh(const float* x, float* y, std::int64_t count) {
  const __m256 one = _mm256_set1_ps(1);
  const __m256 scale = _mm256_set1_ps(-2.0F * std::sqrt(2.0F * std::numbers::inv_pi_v<float>));
  for (std::int64_t i = 0; i < count; i += 8) {
    const __m256 value = load_values(x + i, count - i, 0);
    const __m256 cubic =
        _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(0.044715F), value), _mm256_mul_ps(value, value), value);
    store_values(_mm256_div_ps(value, _mm256_add_ps(one, exp8(_mm256_mul_ps(scale, cubic)))), y + i, count - i);
  }
}

}  // namespace pascaline::cpu::avx2

#endif
