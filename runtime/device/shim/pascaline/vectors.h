#pragma once

#include "pascaline/language.h"

// CUDA's vector types with CUDA's alignment, and their make_ functions.

using uint3 = pascaline_host::Index3;

#define PASCALINE_VECTORS(element, base, align2, align4)                    \
  struct base##1 {                                                          \
    element x;                                                              \
  };                                                                        \
  struct alignas(align2) base##2 {                                          \
    element x, y;                                                           \
  };                                                                        \
  struct alignas(align4) base##4 {                                          \
    element x, y, z, w;                                                     \
  };                                                                        \
  constexpr base##1 make_##base##1(element x) { return {x}; }               \
  constexpr base##2 make_##base##2(element x, element y) { return {x, y}; } \
  constexpr base##4 make_##base##4(element x, element y, element z, element w) { return {x, y, z, w}; }

#define PASCALINE_VECTOR3(element, base) \
  struct base##3 {                       \
    element x, y, z;                     \
  };                                     \
  constexpr base##3 make_##base##3(element x, element y, element z) { return {x, y, z}; }

PASCALINE_VECTORS(signed char, char, 2, 4)
PASCALINE_VECTORS(unsigned char, uchar, 2, 4)
PASCALINE_VECTORS(short, short, 4, 8)
PASCALINE_VECTORS(unsigned short, ushort, 4, 8)
PASCALINE_VECTORS(int, int, 8, 16)
PASCALINE_VECTORS(unsigned, uint, 8, 16)
PASCALINE_VECTORS(float, float, 8, 16)
PASCALINE_VECTORS(double, double, 16, 16)
PASCALINE_VECTORS(long long, longlong, 16, 16)
PASCALINE_VECTORS(unsigned long long, ulonglong, 16, 16)
PASCALINE_VECTOR3(signed char, char)
PASCALINE_VECTOR3(unsigned char, uchar)
PASCALINE_VECTOR3(short, short)
PASCALINE_VECTOR3(unsigned short, ushort)
PASCALINE_VECTOR3(int, int)
PASCALINE_VECTOR3(float, float)
PASCALINE_VECTOR3(double, double)
PASCALINE_VECTOR3(long long, longlong)
PASCALINE_VECTOR3(unsigned long long, ulonglong)
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

#undef PASCALINE_VECTORS
#undef PASCALINE_VECTOR3

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 value) : x(value.x), y(value.y), z(value.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
