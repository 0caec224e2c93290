#pragma once

#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#include "pascaline/cmath.h"
#include "pascaline/language.h"
#include "pascaline/vectors.h"

// Math functions CUDA has in the global namespace. The approximate intrinsics are exact here.

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

namespace pascaline_host {

/// CUDA's min and max convert to the type of `a + b`; for floating point they return the operand that is not NaN.
template <typename A, typename B>
using Common = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>,
                                decltype(std::declval<A>() + std::declval<B>())>;

}  // namespace pascaline_host

template <typename A, typename B>
constexpr pascaline_host::Common<A, B> min(A a, B b) {
  using T = pascaline_host::Common<A, B>;
  const T x = static_cast<T>(a);
  const T y = static_cast<T>(b);
  return y < x || x != x ? y : x;
}

template <typename A, typename B>
constexpr pascaline_host::Common<A, B> max(A a, B b) {
  using T = pascaline_host::Common<A, B>;
  const T x = static_cast<T>(a);
  const T y = static_cast<T>(b);
  return x < y || x != x ? y : x;
}

constexpr unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
constexpr unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline double sinpi(double x) {
  const double turn = remainder(x, 2.0);
  return sin(M_PI * (fabs(turn) > 0.5 ? copysign(1.0, turn) - turn : turn));
}
inline double cospi(double x) { return sinpi(0.5 - fabs(remainder(x, 2.0))); }
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
inline float fdividef(float a, float b) { return a / b; }

inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = sinf(x);
  *cosine = cosf(x);
}
// NaN becomes 0, as the hardware's saturation does.
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }

namespace pascaline_host {

/// The nearest value of the integer type, NaN being 0: what the hardware's conversions give.
template <typename Integer, typename Real>
inline Integer saturated(Real value) {
  const Real limit = std::ldexp(Real(1), std::numeric_limits<Integer>::digits);
  constexpr Integer lowest = std::numeric_limits<Integer>::lowest();
  if (value != value) {
    return 0;
  }
  if (value >= limit) {
    return std::numeric_limits<Integer>::max();
  }
  return value < static_cast<Real>(lowest) ? lowest : static_cast<Integer>(value);
}

}  // namespace pascaline_host

#define PASCALINE_CONVERSIONS(from, name, to, result)                                                     \
  inline result __##name##2##to##_rn(from x) { return pascaline_host::saturated<result>(nearbyint(x)); }  \
  inline result __##name##2##to##_rz(from x) { return pascaline_host::saturated<result>(std::trunc(x)); } \
  inline result __##name##2##to##_rd(from x) { return pascaline_host::saturated<result>(std::floor(x)); } \
  inline result __##name##2##to##_ru(from x) { return pascaline_host::saturated<result>(std::ceil(x)); }

PASCALINE_CONVERSIONS(float, float, int, int)
PASCALINE_CONVERSIONS(float, float, uint, unsigned)
PASCALINE_CONVERSIONS(float, float, ll, long long)
PASCALINE_CONVERSIONS(float, float, ull, unsigned long long)
PASCALINE_CONVERSIONS(double, double, int, int)
PASCALINE_CONVERSIONS(double, double, uint, unsigned)
PASCALINE_CONVERSIONS(double, double, ll, long long)
PASCALINE_CONVERSIONS(double, double, ull, unsigned long long)

#undef PASCALINE_CONVERSIONS

inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
