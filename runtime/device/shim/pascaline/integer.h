#pragma once

#include <cstring>

#include "pascaline/language.h"
#include "pascaline/vectors.h"

// Integer intrinsics and reinterpretations of bits.

namespace pascaline_host {

template <typename To, typename From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename Lane>
inline int dot4(unsigned a, unsigned b) {
  int sum = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    sum += static_cast<int>(static_cast<Lane>(a >> shift)) * static_cast<int>(static_cast<Lane>(b >> shift));
  }
  return sum;
}

}  // namespace pascaline_host

inline int __float_as_int(float value) { return pascaline_host::bits_as<int>(value); }
inline unsigned __float_as_uint(float value) { return pascaline_host::bits_as<unsigned>(value); }
inline float __int_as_float(int value) { return pascaline_host::bits_as<float>(value); }
inline float __uint_as_float(unsigned value) { return pascaline_host::bits_as<float>(value); }
inline long long __double_as_longlong(double value) { return pascaline_host::bits_as<long long>(value); }
inline double __longlong_as_double(long long value) { return pascaline_host::bits_as<double>(value); }
inline int __double2loint(double value) { return static_cast<int>(__double_as_longlong(value)); }
inline int __double2hiint(double value) { return static_cast<int>(__double_as_longlong(value) >> 32); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(
      static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}

// The sum wraps around, as the hardware's does.
inline int __dp4a(int a, int b, int c) {
  return static_cast<int>(static_cast<unsigned>(c) + static_cast<unsigned>(pascaline_host::dot4<signed char>(
                                                         static_cast<unsigned>(a), static_cast<unsigned>(b))));
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return c + static_cast<unsigned>(pascaline_host::dot4<unsigned char>(a, b));
}
inline int __dp4a(char4 a, char4 b, int c) {
  return __dp4a(pascaline_host::bits_as<int>(a), pascaline_host::bits_as<int>(b), c);
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(pascaline_host::bits_as<unsigned>(a), pascaline_host::bits_as<unsigned>(b), c);
}

inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
inline int __clzll(long long value) {
  return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __ffsll(long long value) { return __builtin_ffsll(value); }

inline unsigned __brev(unsigned value) {
  value = (value >> 1 & 0x55555555u) | (value & 0x55555555u) << 1;
  value = (value >> 2 & 0x33333333u) | (value & 0x33333333u) << 2;
  value = (value >> 4 & 0x0f0f0f0fu) | (value & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(value);
}
inline unsigned long long __brevll(unsigned long long value) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(value))) << 32 |
         __brev(static_cast<unsigned>(value >> 32));
}

inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a << 8 >> 8) * static_cast<unsigned>(b << 8 >> 8));
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline unsigned __sad(int a, int b, unsigned c) {
  return c + (a < b ? static_cast<unsigned>(b) - static_cast<unsigned>(a)
                    : static_cast<unsigned>(a) - static_cast<unsigned>(b));
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> (4 * i) & 7u;
    out |= (static_cast<unsigned>(bytes >> (8 * pick)) & 0xffu) << (8 * i);
  }
  return out;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31u));
}
