#pragma once

#include "pascaline/cmath.h"
#include "pascaline/integer.h"
#include "pascaline/math.h"
#include "pascaline/narrow_floats.h"

// CUDA's half precision types on the host: stored as in CUDA, computed in float and rounded once.

struct alignas(2) __half {
  unsigned short bits;

  __half() = default;
  __half(float value) : bits(pascaline_host::half_bits(value)) {}
  __half(double value) : bits(pascaline_host::half_bits(pascaline_host::rounded_to_odd(value))) {}
  __half(int value) : __half(static_cast<double>(value)) {}
  __half(unsigned value) : __half(static_cast<double>(value)) {}
  operator float() const { return pascaline_host::half_value(bits); }
};

struct alignas(4) __half2 {
  __half x, y;
};

using half = __half;
using half2 = __half2;

inline __half __ushort_as_half(unsigned short bits) { return pascaline_host::bits_as<__half>(bits); }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half __short_as_half(short bits) { return pascaline_host::bits_as<__half>(bits); }
inline short __half_as_short(__half value) { return static_cast<short>(value.bits); }

inline float __half2float(__half value) { return pascaline_host::half_value(value.bits); }
inline __half __float2half(float value) { return __half(value); }
inline __half __float2half_rn(float value) { return __half(value); }
inline __half __double2half(double value) { return __half(value); }
inline __half __int2half_rn(int value) { return __half(value); }
inline int __half2int_rn(__half value) { return __float2int_rn(value); }
inline int __half2int_rz(__half value) { return __float2int_rz(value); }

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __halves2half2(__half low, __half high) { return {low, high}; }
inline __half2 __half2half2(__half value) { return {value, value}; }
inline __half2 __float2half2_rn(float value) { return {__half(value), __half(value)}; }
inline __half2 __floats2half2_rn(float low, float high) { return {__half(low), __half(high)}; }
inline __half2 __float22half2_rn(float2 value) { return __floats2half2_rn(value.x, value.y); }
inline float2 __half22float2(__half2 value) { return {__half2float(value.x), __half2float(value.y)}; }
inline float __low2float(__half2 value) { return value.x; }
inline float __high2float(__half2 value) { return value.y; }
inline __half __low2half(__half2 value) { return value.x; }
inline __half __high2half(__half2 value) { return value.y; }
inline __half2 __low2half2(__half2 value) { return {value.x, value.x}; }
inline __half2 __high2half2(__half2 value) { return {value.y, value.y}; }
inline __half2 __lowhigh2highlow(__half2 value) { return {value.y, value.x}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }

// A float has more than twice the bits of a half, so rounding a float result of one operation is rounding once.
inline __half __hadd(__half a, __half b) { return __half(float(a) + float(b)); }
inline __half __hsub(__half a, __half b) { return __half(float(a) - float(b)); }
inline __half __hmul(__half a, __half b) { return __half(float(a) * float(b)); }
inline __half __hdiv(__half a, __half b) { return __half(float(a) / float(b)); }
inline __half __hfma(__half a, __half b, __half c) { return __half(double(float(a)) * float(b) + float(c)); }
inline __half __hneg(__half a) { return __ushort_as_half(static_cast<unsigned short>(a.bits ^ 0x8000u)); }
inline __half __habs(__half a) { return __ushort_as_half(static_cast<unsigned short>(a.bits & 0x7fffu)); }
inline __half __hmax(__half a, __half b) { return __half(fmaxf(a, b)); }
inline __half __hmin(__half a, __half b) { return __half(fminf(a, b)); }
inline bool __hisnan(__half a) { return (a.bits & 0x7fffu) > 0x7c00u; }
inline int __hisinf(__half a) { return (a.bits & 0x7fffu) != 0x7c00u ? 0 : (a.bits & 0x8000u) != 0 ? -1 : 1; }
inline bool __heq(__half a, __half b) { return float(a) == float(b); }
inline bool __hne(__half a, __half b) { return float(a) != float(b); }
inline bool __hlt(__half a, __half b) { return float(a) < float(b); }
inline bool __hle(__half a, __half b) { return float(a) <= float(b); }
inline bool __hgt(__half a, __half b) { return float(a) > float(b); }
inline bool __hge(__half a, __half b) { return float(a) >= float(b); }

inline __half operator+(__half a, __half b) { return __hadd(a, b); }
inline __half operator-(__half a, __half b) { return __hsub(a, b); }
inline __half operator*(__half a, __half b) { return __hmul(a, b); }
inline __half operator/(__half a, __half b) { return __hdiv(a, b); }
inline __half operator-(__half a) { return __hneg(a); }
inline __half& operator+=(__half& a, __half b) { return a = a + b; }
inline __half& operator-=(__half& a, __half b) { return a = a - b; }
inline __half& operator*=(__half& a, __half b) { return a = a * b; }
inline __half& operator/=(__half& a, __half b) { return a = a / b; }

inline __half2 __hadd2(__half2 a, __half2 b) { return {a.x + b.x, a.y + b.y}; }
inline __half2 __hsub2(__half2 a, __half2 b) { return {a.x - b.x, a.y - b.y}; }
inline __half2 __hmul2(__half2 a, __half2 b) { return {a.x * b.x, a.y * b.y}; }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline __half2 __hneg2(__half2 a) { return {-a.x, -a.y}; }
inline __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
inline __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
inline __half2 operator+(__half2 a, __half2 b) { return __hadd2(a, b); }
inline __half2 operator-(__half2 a, __half2 b) { return __hsub2(a, b); }
inline __half2 operator*(__half2 a, __half2 b) { return __hmul2(a, b); }

inline __half hexp(__half a) { return __half(expf(a)); }
inline __half hlog(__half a) { return __half(logf(a)); }
inline __half hsqrt(__half a) { return __half(sqrtf(a)); }
inline __half hrsqrt(__half a) { return __half(1.0f / sqrtf(a)); }
inline __half hrcp(__half a) { return __half(1.0f / float(a)); }
