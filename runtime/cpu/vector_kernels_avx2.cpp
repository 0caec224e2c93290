#include "runtime/cpu/vector_kernels.hpp"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <array>

#include "runtime/cpu/vector_math_avx2.hpp"

namespace pascaline::cpu {
namespace {

PASCALINE_AVX2 __m256 load8(const float* from) { return _mm256_loadu_ps(from); }
PASCALINE_AVX2 __m256 load8(const Half* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
PASCALINE_AVX2 __m256 load8(const std::int8_t* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
PASCALINE_AVX2 __m256 load8(const Bfloat* from) {
  const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

// Loads elements of rows as floats.
template <typename Element>
struct Loader {
  PASCALINE_AVX2 explicit Loader(const FormatOf<Element>& /*format*/) {}
  PASCALINE_AVX2 __m256 operator()(const Element* from) const { return load8(from); }
};
// As Float16xDecoder; codes are widened with their sign, whose copies a mask takes away.
template <>
struct Loader<Code16x> {
  __m256i shift;
  __m256i mask;
  __m256 scale;
  PASCALINE_AVX2 explicit Loader(Float16x format) {
    const Float16xDecoder decoder(format);
    const std::uint32_t places = 0x7FFFU << static_cast<unsigned>(decoder.shift);
    shift = _mm256_set1_epi32(decoder.shift);
    mask = _mm256_set1_epi32(static_cast<int>(0x80000000U | places));
    scale = _mm256_set1_ps(decoder.scale);
  }
  PASCALINE_AVX2 __m256 operator()(const Code16x* from) const {
    const __m256i codes = _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const __m256i placed = _mm256_and_si256(_mm256_sllv_epi32(codes, shift), mask);
    return _mm256_mul_ps(_mm256_castsi256_ps(placed), scale);
  }
};

// Fewer than 8, and zeros.
template <typename Element>
PASCALINE_AVX2 __m256 load_some(const Loader<Element>& load, const Element* from, std::int64_t count) {
  std::array<Element, 8> padded{};
  std::copy_n(from, count, padded.begin());
  return load(padded.data());
}
template <typename Element>
PASCALINE_AVX2 __m256 load_some(const Element* from, std::int64_t count) {
  return load_some(Loader<Element>({}), from, count);
}

PASCALINE_AVX2 void store8(__m256 values, float* to) { _mm256_storeu_ps(to, values); }
PASCALINE_AVX2 void store8(__m256 values, Half* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}
PASCALINE_AVX2 void store8(__m256 values, std::int8_t* to) {
  const __m256i integers = _mm256_cvtps_epi32(values);
  const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(packed, packed));
}
PASCALINE_AVX2 void store8(__m256 values, Bfloat* to) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, nan);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(chosen, chosen), 0xD8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
}

template <typename Element>
PASCALINE_AVX2 void store_some(__m256 values, Element* to, std::int64_t count) {
  std::array<Element, 8> padded{};
  store8(values, padded.data());
  std::copy_n(padded.begin(), count, to);
}

template <typename Element>
PASCALINE_AVX2 void widen_by_8(const Element* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    store8(load8(from + i), to + i);
  }
  if (i < count) {
    store_some(load_some(from + i, count - i), to + i, count - i);
  }
}

PASCALINE_AVX2 void widen_codes_by_8(Float16x format, const Code16x* from, float* to, std::int64_t count) {
  const Loader<Code16x> load(format);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    store8(load(from + i), to + i);
  }
  if (i < count) {
    store_some(load_some(load, from + i, count - i), to + i, count - i);
  }
}

template <typename Element>
PASCALINE_AVX2 void narrow_by_8(const float* from, Element* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    store8(load8(from + i), to + i);
  }
  if (i < count) {
    store_some(load_some(from + i, count - i), to + i, count - i);
  }
}

// Rows that are taken together: so few that they are still in the first cache for the next four vectors. The ones that
// follow are asked for meanwhile, as the processor's own looking ahead ends with a page, which often holds just a row.
constexpr std::int64_t kRowsAtOnce = 4;

template <typename Element>
std::int64_t bytes_ahead(const Rows<Element>& rows) {
  return 2 * kRowsAtOnce * rows.stride * static_cast<std::int64_t>(sizeof(Element));
}

// `kRows` rows from the first with `kVectors` vectors from the first: one sum of 8 lanes each.
template <typename Element, int kRows, int kVectors>
PASCALINE_AVX2 void dot_block(const Rows<Element>& rows, const Rows<float>& vectors, const FloatRows& sums) {
  __m256 lanes[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kVectors; ++i) {
      lanes[r][i] = _mm256_setzero_ps();
    }
  }
  const Loader<Element> load(rows.format);
  const std::int64_t ahead = bytes_ahead(rows);
  std::int64_t k = 0;
  for (; k + 8 <= rows.depth; k += 8) {
    __m256 vector[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      vector[i] = load8(vectors.data + i * vectors.stride + k);
    }
    for (int r = 0; r < kRows; ++r) {
      const Element* at = rows.data + r * rows.stride + k;
      _mm_prefetch(reinterpret_cast<const char*>(at) + ahead, _MM_HINT_T0);
      const __m256 row = load(at);
      for (int i = 0; i < kVectors; ++i) {
        lanes[r][i] = _mm256_fmadd_ps(row, vector[i], lanes[r][i]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kVectors; ++i) {
      if (k < rows.depth) {
        const __m256 row = load_some(load, rows.data + r * rows.stride + k, rows.depth - k);
        const __m256 vector = load_some(vectors.data + i * vectors.stride + k, rows.depth - k);
        lanes[r][i] = _mm256_fmadd_ps(row, vector, lanes[r][i]);
      }
      sums.data[i * sums.stride + r] = sum_lanes(lanes[r][i]);
    }
  }
}

// All rows, `kRows` at a time, with `kVectors` vectors.
template <typename Element, int kRows, int kVectors>
PASCALINE_AVX2 void dot_blocks(const Rows<Element>& rows, const Rows<float>& vectors, const FloatRows& sums) {
  Rows<Element> part = rows;
  FloatRows to = sums;
  for (std::int64_t r = 0; r < rows.count;) {
    const bool whole = r + kRows <= rows.count;
    if (whole) {
      dot_block<Element, kRows, kVectors>(part, vectors, to);
    } else {
      dot_block<Element, 1, kVectors>(part, vectors, to);
    }
    const int done = whole ? kRows : 1;
    part.data += done * rows.stride;
    to.data += done;
    r += done;
  }
}

template <typename Element>
PASCALINE_AVX2 void dot_by_8(const Rows<Element>& rows, const Rows<float>& vectors, const FloatRows& sums) {
  for (std::int64_t r = 0; r < rows.count; r += kRowsAtOnce) {
    const Rows<Element> some{rows.data + r * rows.stride, rows.stride, std::min(kRowsAtOnce, rows.count - r),
                             rows.depth, rows.format};
    for (std::int64_t i = 0; i < vectors.count; i += 4) {
      const Rows<float> with{vectors.data + i * vectors.stride, vectors.stride, 0, 0};
      const FloatRows to{sums.data + i * sums.stride + r, sums.stride};
      switch (vectors.count - i) {
        case 1:
          dot_blocks<Element, 4, 1>(some, with, to);
          break;
        case 2:
          dot_blocks<Element, 4, 2>(some, with, to);
          break;
        case 3:
          dot_blocks<Element, 2, 3>(some, with, to);
          break;
        default:
          dot_blocks<Element, 2, 4>(some, with, to);
      }
    }
  }
}

// `kRows` rows from the first, onto `kSums` sums from the first.
template <typename Element, int kRows, int kSums>
PASCALINE_AVX2 void weigh_block(const Rows<Element>& rows, const Rows<float>& factors, const FloatRows& sums) {
  __m256 factor[kSums][kRows];
  for (int i = 0; i < kSums; ++i) {
    for (int r = 0; r < kRows; ++r) {
      factor[i][r] = _mm256_broadcast_ss(factors.data + i * factors.stride + r);
    }
  }
  const std::int64_t ahead = bytes_ahead(rows);
  for (std::int64_t d = 0; d < rows.depth; d += 8) {
    const std::int64_t left = rows.depth - d;
    __m256 row[kRows];
    for (int r = 0; r < kRows; ++r) {
      const Element* from = rows.data + r * rows.stride + d;
      _mm_prefetch(reinterpret_cast<const char*>(from) + ahead, _MM_HINT_T0);
      row[r] = left >= 8 ? load8(from) : load_some(from, left);
    }
    for (int i = 0; i < kSums; ++i) {
      float* to = sums.data + i * sums.stride + d;
      __m256 sum = left >= 8 ? load8(to) : load_some(to, left);
      for (int r = 0; r < kRows; ++r) {
        sum = _mm256_fmadd_ps(factor[i][r], row[r], sum);
      }
      if (left >= 8) {
        store8(sum, to);
      } else {
        store_some(sum, to, left);
      }
    }
  }
}

template <typename Element, int kSums>
PASCALINE_AVX2 void weigh_blocks(const Rows<Element>& rows, const Rows<float>& factors, const FloatRows& sums) {
  Rows<Element> part = rows;
  Rows<float> with = factors;
  for (std::int64_t r = 0; r < rows.count;) {
    const bool whole = r + 4 <= rows.count;
    if (whole) {
      weigh_block<Element, 4, kSums>(part, with, sums);
    } else {
      weigh_block<Element, 1, kSums>(part, with, sums);
    }
    const int done = whole ? 4 : 1;
    part.data += done * rows.stride;
    with.data += done;
    r += done;
  }
}

template <typename Element>
PASCALINE_AVX2 void add_weighted_by_8(const Rows<Element>& rows, const Rows<float>& factors, const FloatRows& sums) {
  for (std::int64_t i = 0; i < factors.count; i += 2) {
    const Rows<float> with{factors.data + i * factors.stride, factors.stride, 0, 0};
    const FloatRows to{sums.data + i * sums.stride, sums.stride};
    if (i + 2 <= factors.count) {
      weigh_blocks<Element, 2>(rows, with, to);
    } else {
      weigh_blocks<Element, 1>(rows, with, to);
    }
  }
}

template <typename Element>
constexpr ElementKernels<Element> avx2_element_kernels() {
  return {widen_by_8<Element>, narrow_by_8<Element>, dot_by_8<Element>, add_weighted_by_8<Element>};
}

// Not every compiler's built-in test knows this one.
bool has_f16c() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

const VectorKernels* avx2_kernels() noexcept {
  static constexpr VectorKernels kAvx2{"AVX2",
                                       avx2_element_kernels<float>(),
                                       avx2_element_kernels<Half>(),
                                       avx2_element_kernels<Bfloat>(),
                                       avx2_element_kernels<std::int8_t>(),
                                       {widen_codes_by_8, dot_by_8<Code16x>},
                                       avx2::maximum,
                                       avx2::exp_sum,
                                       avx2::sum,
                                       avx2::squares,
                                       avx2::silu_multiply,
                                       avx2::gelu_tanh};
  static const bool has_all = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  return has_all ? &kAvx2 : nullptr;
}

}  // namespace pascaline::cpu

#else

namespace pascaline::cpu {

const VectorKernels* avx2_kernels() noexcept { return nullptr; }

}  // namespace pascaline::cpu

#endif
