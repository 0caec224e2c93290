#include "runtime/cpu/packed_kernels.hpp"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "runtime/cpu/packed_dispatch.hpp"
#include "runtime/cpu/packed_forms.hpp"
#include "runtime/formats/int8_activations.hpp"

// Without FMA, so that products and sums are rounded one by one, as in plain C++.
#define PASCALINE_PACKED_AVX2 __attribute__((target("avx2,f16c")))
#define PASCALINE_PACKED_INLINE __attribute__((target("avx2,f16c"), always_inline)) inline

namespace pascaline::cpu {
namespace {

// Eight rows of a group are computed together, one in each lane of 32 bits, so that nothing has to be added up across
// lanes. A load of 32 bytes brings a unit of two rows; turned round they have the rows in the order 0 2 4 6 1 3 5 7,
// which all that is of eight rows is in.
constexpr std::int64_t kLaneRows = 8;
constexpr int kWords = 8;  // of four integers each, in a block of a row

// What is fetched so far ahead is there when it is needed; all of a matrix lies in the order it is read in.
constexpr std::int64_t kBytesAhead = 8192;

PASCALINE_PACKED_INLINE __m256i load_32(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
PASCALINE_PACKED_INLINE __m128i load_16(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

// Eight words from the order that they lie in to that of the lanes, and back.
PASCALINE_PACKED_INLINE __m256i to_lanes(__m256i words) {
  return _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}
PASCALINE_PACKED_INLINE __m256i from_lanes(__m256i words) {
  return _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// The float16 in the low half of each word, or in its high half.
struct FloatPairs {
  __m256 low;
  __m256 high;
};
PASCALINE_PACKED_INLINE FloatPairs widen_pairs(__m256i words) {
  const __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xFFFF));
  const __m256i packed = _mm256_packus_epi32(low, _mm256_srli_epi32(words, 16));
  const __m256i sorted = _mm256_permute4x64_epi64(packed, 0xD8);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(sorted)), _mm256_cvtph_ps(_mm256_extracti128_si256(sorted, 1))};
}

// What a block's sums are multiplied with and reduced by, for eight rows.
struct LaneScales {
  __m256 scale;
  __m256 min;
};

// The four words of each of eight rows, by word.
struct LaneWords {
  __m256i word[4];
};
PASCALINE_PACKED_INLINE LaneWords lane_words(const std::byte* units) {
  const __m256i a = load_32(units);
  const __m256i b = load_32(units + 32);
  const __m256i c = load_32(units + 64);
  const __m256i d = load_32(units + 96);
  _mm_prefetch(reinterpret_cast<const char*>(units) + kBytesAhead, _MM_HINT_T0);
  _mm_prefetch(reinterpret_cast<const char*>(units) + kBytesAhead + 64, _MM_HINT_T0);
  const __m256i low_ab = _mm256_unpacklo_epi32(a, b);
  const __m256i low_cd = _mm256_unpacklo_epi32(c, d);
  const __m256i high_ab = _mm256_unpackhi_epi32(a, b);
  const __m256i high_cd = _mm256_unpackhi_epi32(c, d);
  return {{_mm256_unpacklo_epi64(low_ab, low_cd), _mm256_unpackhi_epi64(low_ab, low_cd),
           _mm256_unpacklo_epi64(high_ab, high_cd), _mm256_unpackhi_epi64(high_ab, high_cd)}};
}

// The integers of a block of eight rows: word w has integers 4w to 4w + 3 of each.
struct LaneIntegers {
  __m256i word[kWords];
};

// The activations of a block, and the sums of its halves.
struct BlockActivations {
  const std::int8_t* values;
  __m256i halves;

  // Four of them, in every lane.
  [[nodiscard]] PASCALINE_PACKED_INLINE __m256i four(int word) const {
    std::int32_t bits = 0;
    std::memcpy(&bits, values + 4 * word, sizeof bits);
    return _mm256_set1_epi32(bits);
  }
};
PASCALINE_PACKED_INLINE BlockActivations activations_at(const Int8Rows& rows, std::int64_t j, std::int64_t block) {
  BlockActivations with{rows.values + j * rows.columns + block * kBlock, _mm256_setzero_si256()};
  if (!rows.by_row) {
    std::int32_t pair = 0;
    std::memcpy(&pair, rows.halves + 2 * (j * (rows.columns / kBlock) + block), sizeof pair);
    with.halves = _mm256_set1_epi32(pair);
  }
  return with;
}

PASCALINE_PACKED_INLINE __m256i add_pairs(__m256i sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }

// `chunk` is where the chunk begins, `row` the first of the eight rows.
struct ByteLanes {
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    const std::byte* unit = chunk + 2 * block * kUnitStep + row * kUnitBytes;
    const LaneWords first = lane_words(unit);
    const LaneWords second = lane_words(unit + kUnitStep);
    LaneIntegers result;
    for (int w = 0; w < 4; ++w) {
      result.word[w] = first.word[w];
      result.word[4 + w] = second.word[w];
    }
    return result;
  }
  // The integers of one row in their order.
  PASCALINE_PACKED_INLINE static void halves(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                             __m128i (&of_row)[2]) {
    const std::byte* unit = chunk + 2 * block * kUnitStep + row * kUnitBytes;
    of_row[0] = load_16(unit);
    of_row[1] = load_16(unit + kUnitStep);
  }
  // With the sign of an integer at the activation a product is at most 128 · 127, and two of them fit 16 bits.
  template <typename Header>
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& /*header*/, std::int64_t /*block*/,
                                              const BlockActivations& with) {
    __m256i sum = _mm256_setzero_si256();
    for (int w = 0; w < kWords; ++w) {
      const __m256i products =
          _mm256_maddubs_epi16(_mm256_abs_epi8(of.word[w]), _mm256_sign_epi8(with.four(w), of.word[w]));
      sum = _mm256_add_epi32(sum, add_pairs(products));
    }
    return sum;
  }
};

struct NibbleLanes {
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    const LaneWords both = lane_words(chunk + block * kUnitStep + row * kUnitBytes);
    const __m256i low = _mm256_set1_epi8(0x0F);
    LaneIntegers result;
    for (int w = 0; w < 4; ++w) {
      result.word[w] = _mm256_and_si256(both.word[w], low);
      result.word[4 + w] = _mm256_and_si256(_mm256_srli_epi16(both.word[w], 4), low);
    }
    return result;
  }
  PASCALINE_PACKED_INLINE static void halves(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                             __m128i (&of_row)[2]) {
    const __m128i both = load_16(chunk + block * kUnitStep + row * kUnitBytes);
    of_row[0] = _mm_and_si128(both, _mm_set1_epi8(0x0F));
    of_row[1] = _mm_and_si128(_mm_srli_epi16(both, 4), _mm_set1_epi8(0x0F));
  }
  // Sixteen products of at most 15 · 127 fit 16 bits.
  PASCALINE_PACKED_INLINE static __m256i unsigned_sums(const LaneIntegers& of, const BlockActivations& with) {
    __m256i sum = _mm256_maddubs_epi16(of.word[0], with.four(0));
    for (int w = 1; w < kWords; ++w) {
      sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(of.word[w], with.four(w)));
    }
    return add_pairs(sum);
  }
  template <typename Header>
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& /*header*/, std::int64_t /*block*/,
                                              const BlockActivations& with) {
    return unsigned_sums(of, with);
  }
};

template <typename Form>
struct Lanes;

template <>
struct Lanes<PackedForm<ElementType::int8_row>> : ByteLanes {
  struct Header {};
  PASCALINE_PACKED_INLINE static Header header(const std::byte* /*chunk*/, std::int64_t /*row*/) { return {}; }
};

// Two blocks with a float16 each in a word of a row.
struct WordHeader {
  FloatPairs scales;
};
template <std::int64_t scales_at>
struct WordScales {
  using Header = WordHeader;
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    return {widen_pairs(to_lanes(load_32(chunk + scales_at + 4 * row)))};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t block) {
    return {block == 0 ? header.scales.low : header.scales.high, _mm256_setzero_ps()};
  }
};

template <>
struct Lanes<PackedForm<ElementType::q8_0>> : ByteLanes, WordScales<PackedForm<ElementType::q8_0>::kHeaders> {};

template <>
struct Lanes<PackedForm<ElementType::q4_0>> : NibbleLanes, WordScales<PackedForm<ElementType::q4_0>::kHeaders> {
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& /*header*/, std::int64_t /*block*/,
                                              const BlockActivations& with) {
    return _mm256_sub_epi32(unsigned_sums(of, with), _mm256_madd_epi16(with.halves, _mm256_set1_epi16(8)));
  }
};

// Looks four-bit indices up in a table; its integers are signed, as in ByteLanes.
template <typename Form>
struct IndexLanes {
  PASCALINE_PACKED_INLINE static __m128i table() { return load_16(Form::kTable.data()); }
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    const __m256i both = _mm256_broadcastsi128_si256(table());
    LaneIntegers result = NibbleLanes::integers(chunk, row, block);
    for (__m256i& word : result.word) {
      word = _mm256_shuffle_epi8(both, word);
    }
    return result;
  }
  PASCALINE_PACKED_INLINE static void halves(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                             __m128i (&of_row)[2]) {
    NibbleLanes::halves(chunk, row, block, of_row);
    of_row[0] = _mm_shuffle_epi8(table(), of_row[0]);
    of_row[1] = _mm_shuffle_epi8(table(), of_row[1]);
  }
  template <typename Header>
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& header, std::int64_t block,
                                              const BlockActivations& with) {
    return ByteLanes::sums(of, header, block, with);
  }
};

template <>
struct Lanes<PackedForm<ElementType::iq4_nl>> : IndexLanes<PackedForm<ElementType::iq4_nl>>,
                                                WordScales<PackedForm<ElementType::iq4_nl>::kHeaders> {};

template <typename Form>
struct FiveLanes {
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    LaneIntegers result = NibbleLanes::integers(chunk, row, block);
    const __m256i upper = to_lanes(load_32(Form::upper_of(chunk, row, block)));
    for (int w = 0; w < kWords; ++w) {
      const __m256i shifted = w < 4 ? _mm256_slli_epi32(upper, 4 - w) : _mm256_srli_epi32(upper, w - 4);
      result.word[w] = _mm256_or_si256(result.word[w], _mm256_and_si256(shifted, _mm256_set1_epi8(0x10)));
    }
    return result;
  }
  PASCALINE_PACKED_INLINE static void halves(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                             __m128i (&of_row)[2]) {
    const __m128i upper = _mm_set1_epi32(static_cast<int>(Form::upper(chunk, row, block)));
    const __m128i bit = _mm_set1_epi8(0x10);
    NibbleLanes::halves(chunk, row, block, of_row);
    of_row[0] = _mm_or_si128(of_row[0], _mm_and_si128(_mm_sllv_epi32(upper, _mm_setr_epi32(4, 3, 2, 1)), bit));
    of_row[1] = _mm_or_si128(of_row[1], _mm_and_si128(_mm_srlv_epi32(upper, _mm_setr_epi32(0, 1, 2, 3)), bit));
  }
  // Eight products of at most 31 · 127 fit 16 bits.
  PASCALINE_PACKED_INLINE static __m256i unsigned_sums(const LaneIntegers& of, const BlockActivations& with) {
    __m256i sum = _mm256_setzero_si256();
    for (int first = 0; first < kWords; first += 4) {
      __m256i part = _mm256_maddubs_epi16(of.word[first], with.four(first));
      for (int w = first + 1; w < first + 4; ++w) {
        part = _mm256_add_epi16(part, _mm256_maddubs_epi16(of.word[w], with.four(w)));
      }
      sum = _mm256_add_epi32(sum, add_pairs(part));
    }
    return sum;
  }
  template <typename Header>
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& /*header*/, std::int64_t /*block*/,
                                              const BlockActivations& with) {
    return unsigned_sums(of, with);
  }
};

template <>
struct Lanes<PackedForm<ElementType::q5_0>> : FiveLanes<PackedForm<ElementType::q5_0>>,
                                              WordScales<PackedForm<ElementType::q5_0>::kScales> {
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& /*header*/, std::int64_t /*block*/,
                                              const BlockActivations& with) {
    return _mm256_sub_epi32(unsigned_sums(of, with), _mm256_madd_epi16(with.halves, _mm256_set1_epi16(16)));
  }
};

// Words 0 and 1 of each of eight rows.
struct LanePairs {
  __m256i word[2];
};
PASCALINE_PACKED_INLINE LanePairs lane_pairs(const std::byte* words) {
  const __m256 low = _mm256_castsi256_ps(load_32(words));
  const __m256 high = _mm256_castsi256_ps(load_32(words + 32));
  // The shuffles leave rows in the order 0 1 4 5 2 3 6 7.
  const __m256i order = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);
  const __m256i first = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
  const __m256i second = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xDD));
  return {{_mm256_permutevar8x32_epi32(first, order), _mm256_permutevar8x32_epi32(second, order)}};
}

// Two blocks of a row, each with a scale and a minimum.
struct PairHeader {
  FloatPairs block[2];
};
PASCALINE_PACKED_INLINE PairHeader pair_header(const std::byte* words) {
  const LanePairs pairs = lane_pairs(words);
  return {{widen_pairs(pairs.word[0]), widen_pairs(pairs.word[1])}};
}
PASCALINE_PACKED_INLINE LaneScales pair_scales(const PairHeader& header, std::int64_t block) {
  const FloatPairs& pair = header.block[block];
  return {pair.low, _mm256_xor_ps(pair.high, _mm256_set1_ps(-0.0F))};
}

template <>
struct Lanes<PackedForm<ElementType::mxfp4>> : IndexLanes<PackedForm<ElementType::mxfp4>> {
  using Form = PackedForm<ElementType::mxfp4>;
  struct Header {
    __m256i exponents;  // of two blocks
  };
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    return {to_lanes(_mm256_cvtepu16_epi32(load_16(chunk + Form::kHeaders + 2 * row)))};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t block) {
    const __m256i words = block == 0 ? header.exponents : _mm256_srli_epi32(header.exponents, 8);
    const __m256i exponent = _mm256_and_si256(words, _mm256_set1_epi32(0xFF));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), exponent);
    const __m256i large = _mm256_cmpgt_epi32(exponent, _mm256_set1_epi32(1));
    return {_mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, large)), _mm256_setzero_ps()};
  }
};

template <>
struct Lanes<PackedForm<ElementType::iq4_xs>> : IndexLanes<PackedForm<ElementType::iq4_xs>> {
  using Form = PackedForm<ElementType::iq4_xs>;
  struct Header {
    __m256 scale;
    LanePairs words;
  };
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    const LanePairs words = lane_pairs(chunk + Form::kHeaders + 8 * row);
    return {widen_pairs(words.word[0]).low, words};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t block) {
    const __m256i low = _mm256_srl_epi32(header.words.word[1], _mm_cvtsi32_si128(static_cast<int>(4 * block)));
    // The upper bits go to bits 4 and 5.
    const __m256i high = _mm256_srl_epi32(header.words.word[0], _mm_cvtsi32_si128(static_cast<int>(12 + 2 * block)));
    const __m256i factor = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(0x0F)),
                                           _mm256_and_si256(high, _mm256_set1_epi32(0x30)));
    const __m256 number = _mm256_cvtepi32_ps(_mm256_sub_epi32(factor, _mm256_set1_epi32(32)));
    return {_mm256_mul_ps(header.scale, number), _mm256_setzero_ps()};
  }
};

template <>
struct Lanes<PackedForm<ElementType::q4_1>> : NibbleLanes {
  using Form = PackedForm<ElementType::q4_1>;
  using Header = PairHeader;
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    return pair_header(chunk + Form::kHeaders + 8 * row);
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t block) {
    return pair_scales(header, block);
  }
};

template <>
struct Lanes<PackedForm<ElementType::q5_1>> : FiveLanes<PackedForm<ElementType::q5_1>> {
  using Form = PackedForm<ElementType::q5_1>;
  using Header = PairHeader;
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    return pair_header(chunk + Form::kPairs + 8 * row);
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t block) {
    return pair_scales(header, block);
  }
};

template <>
struct Lanes<PackedForm<ElementType::q4_k>> : NibbleLanes {
  using Form = PackedForm<ElementType::q4_k>;
  struct Header {
    FloatPairs both;
    LaneWords words;
  };
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    const LaneWords words = lane_words(chunk + Form::kHeaders + row * kUnitBytes);
    return {widen_pairs(words.word[0]), words};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t block) {
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(block % 4 * 8));
    const __m256i first = _mm256_srl_epi32(header.words.word[1], shift);
    const __m256i second = _mm256_srl_epi32(header.words.word[2], shift);
    __m256i scale = _mm256_and_si256(first, _mm256_set1_epi32(0x3F));
    __m256i min = _mm256_and_si256(second, _mm256_set1_epi32(0x3F));
    if (block >= 4) {
      const __m256i third = _mm256_srl_epi32(header.words.word[3], shift);
      const __m256i low = _mm256_set1_epi32(0x0F);
      const __m256i upper = _mm256_set1_epi32(0x30);
      scale = _mm256_or_si256(_mm256_and_si256(third, low), _mm256_and_si256(_mm256_srli_epi32(first, 2), upper));
      min = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(third, 4), low),
                            _mm256_and_si256(_mm256_srli_epi32(second, 2), upper));
    }
    return {_mm256_mul_ps(header.both.low, _mm256_cvtepi32_ps(scale)),
            _mm256_mul_ps(header.both.high, _mm256_cvtepi32_ps(min))};
  }
};

template <>
struct Lanes<PackedForm<ElementType::q5_k>> : FiveLanes<PackedForm<ElementType::q5_k>> {
  using Header = Lanes<PackedForm<ElementType::q4_k>>::Header;
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    return Lanes<PackedForm<ElementType::q4_k>>::header(chunk, row);
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t block) {
    return Lanes<PackedForm<ElementType::q4_k>>::scales(header, block);
  }
};

template <>
struct Lanes<PackedForm<ElementType::int4_g128>> : NibbleLanes {
  using Form = PackedForm<ElementType::int4_g128>;
  struct Header {
    __m256 scale;
    __m256i zeros;  // each twice, in 16 bits
  };
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    const __m256i words = to_lanes(load_32(chunk + Form::kHeaders + 4 * row));
    const __m256i zero = _mm256_and_si256(_mm256_srli_epi32(words, 16), _mm256_set1_epi32(0xFF));
    return {widen_pairs(words).low, _mm256_or_si256(zero, _mm256_slli_epi32(zero, 16))};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t /*block*/) {
    return {header.scale, _mm256_setzero_ps()};
  }
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& header, std::int64_t /*block*/,
                                              const BlockActivations& with) {
    return _mm256_sub_epi32(unsigned_sums(of, with), _mm256_madd_epi16(with.halves, header.zeros));
  }
};

// Sums of half a block of integers from 0 to 63 times a factor: four products of at most 63 · 127 fit 16 bits.
PASCALINE_PACKED_INLINE __m256i factor_half_sums(const LaneIntegers& of, int first, const BlockActivations& with,
                                                 __m256i factors) {
  __m256i pairs[2];
  for (int p = 0; p < 2; ++p) {
    const int w = first + 2 * p;
    pairs[p] = _mm256_madd_epi16(_mm256_add_epi16(_mm256_maddubs_epi16(of.word[w], with.four(w)),
                                                  _mm256_maddubs_epi16(of.word[w + 1], with.four(w + 1))),
                                 factors);
  }
  return _mm256_add_epi32(pairs[0], pairs[1]);
}

// Sums of a block of such integers less an offset, where `both` has the factors of its halves in 16 bits each, by row.
template <int offset>
PASCALINE_PACKED_INLINE __m256i factor_sums(const LaneIntegers& of, __m256i both, const BlockActivations& with) {
  const __m256i low = _mm256_and_si256(both, _mm256_set1_epi32(0xFFFF));
  const __m256i high = _mm256_srli_epi32(both, 16);
  const __m256i sum =
      _mm256_add_epi32(factor_half_sums(of, 0, with, _mm256_or_si256(low, _mm256_slli_epi32(both, 16))),
                       factor_half_sums(of, 4, with, _mm256_or_si256(_mm256_slli_epi32(high, 16), high)));
  if constexpr (offset == 0) {
    return sum;
  } else {
    const __m256i less = _mm256_mullo_epi16(both, _mm256_set1_epi16(offset));
    return _mm256_sub_epi32(sum, _mm256_madd_epi16(less, with.halves));
  }
}

template <>
struct Lanes<PackedForm<ElementType::q6_k>> {
  using Form = PackedForm<ElementType::q6_k>;
  struct Header {
    __m256 scale;
    LaneWords factors;
  };
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    const __m256 scale = _mm256_cvtph_ps(load_16(chunk + Form::kScales + 2 * row));
    return {_mm256_castsi256_ps(to_lanes(_mm256_castps_si256(scale))),
            lane_words(chunk + Form::kHeaders + row * kUnitBytes)};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t /*block*/) {
    return {header.scale, _mm256_setzero_ps()};
  }
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    LaneIntegers result = NibbleLanes::integers(chunk, row, block);
    const LaneWords upper = lane_words(chunk + Form::kUpper + block / 2 * kUnitStep + row * kUnitBytes);
    const __m256i bits = _mm256_set1_epi8(0x30);
    for (int w = 0; w < 2; ++w) {
      const __m256i of = upper.word[block % 2 * 2 + w];
      const __m256i shifted[4] = {_mm256_slli_epi32(of, 4), _mm256_slli_epi32(of, 2), of, _mm256_srli_epi32(of, 2)};
      for (int part = 0; part < 4; ++part) {
        __m256i& word = result.word[2 * part + w];
        word = _mm256_or_si256(word, _mm256_and_si256(shifted[part], bits));
      }
    }
    return result;
  }
  PASCALINE_PACKED_INLINE static void halves(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                             __m128i (&of_row)[2]) {
    std::int64_t bits = 0;
    std::memcpy(&bits, chunk + Form::kUpper + block / 2 * kUnitStep + row * kUnitBytes + block % 2 * 8, sizeof bits);
    const __m256i upper = _mm256_and_si256(_mm256_sllv_epi64(_mm256_set1_epi64x(bits), _mm256_setr_epi64x(4, 2, 0, 0)),
                                           _mm256_set1_epi8(0x30));
    const __m256i last = _mm256_and_si256(_mm256_srli_epi64(_mm256_set1_epi64x(bits), 2), _mm256_set1_epi8(0x30));
    const __m256i all = _mm256_blend_epi32(upper, last, 0xC0);
    NibbleLanes::halves(chunk, row, block, of_row);
    of_row[0] = _mm_or_si128(of_row[0], _mm256_castsi256_si128(all));
    of_row[1] = _mm_or_si128(of_row[1], _mm256_extracti128_si256(all, 1));
  }
  // The two factors of a block in 16 bits each, by row.
  PASCALINE_PACKED_INLINE static __m256i factors(const Header& header, std::int64_t block) {
    const __m256i words = header.factors.word[block / 2];
    const __m256i bytes = block % 2 == 0 ? words : _mm256_srli_epi32(words, 16);
    // Each byte into the upper half of its 16 bits, and down again with its sign.
    const __m256i upper = _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi32(bytes, 8), _mm256_set1_epi32(0xFF00)),
                                          _mm256_slli_epi32(_mm256_srli_epi32(bytes, 8), 24));
    return _mm256_srai_epi16(upper, 8);
  }
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& header, std::int64_t block,
                                              const BlockActivations& with) {
    return factor_sums<32>(of, factors(header, block), with);
  }
};

// Unpacks values of two bits: a block of eight rows (integers) or of one row (all_of).
struct TwoLanes {
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    const LaneWords words = lane_words(chunk + block / 2 * kUnitStep + row * kUnitBytes);
    LaneIntegers result;
    for (int w = 0; w < kWords; ++w) {
      result.word[w] =
          _mm256_and_si256(_mm256_srli_epi32(words.word[block % 2 * 2 + w % 2], w / 2 * 2), _mm256_set1_epi8(0x03));
    }
    return result;
  }
  PASCALINE_PACKED_INLINE static __m256i all_of(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    std::int64_t twos = 0;
    std::memcpy(&twos, PackedTwoForm::twos_of(chunk, row, block), sizeof twos);
    return _mm256_and_si256(_mm256_srlv_epi64(_mm256_set1_epi64x(twos), _mm256_setr_epi64x(0, 2, 4, 6)),
                            _mm256_set1_epi8(0x03));
  }
  PASCALINE_PACKED_INLINE static void split(__m256i all, __m128i (&of_row)[2]) {
    of_row[0] = _mm256_castsi256_si128(all);
    of_row[1] = _mm256_extracti128_si256(all, 1);
  }
};

template <>
struct Lanes<PackedForm<ElementType::q3_k>> {
  using Form = PackedForm<ElementType::q3_k>;
  struct Header {
    __m256 scale;
    LaneWords words;
  };
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    const LaneWords words = lane_words(chunk + Form::kHeaders + row * kUnitBytes);
    return {widen_pairs(words.word[3]).low, words};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t /*block*/) {
    return {header.scale, _mm256_setzero_ps()};
  }
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    LaneIntegers result = TwoLanes::integers(chunk, row, block);
    const __m256i high = lane_words(chunk + Form::kUpper + block / 4 * kUnitStep + row * kUnitBytes).word[block % 4];
    for (int w = 0; w < kWords; ++w) {
      const __m256i shifted = w < 2 ? _mm256_slli_epi32(high, 2 - w) : _mm256_srli_epi32(high, w - 2);
      result.word[w] = _mm256_or_si256(result.word[w], _mm256_and_si256(shifted, _mm256_set1_epi8(0x04)));
    }
    return result;
  }
  PASCALINE_PACKED_INLINE static void halves(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                             __m128i (&of_row)[2]) {
    std::int32_t upper = 0;
    std::memcpy(&upper, Form::upper_of(chunk, row, block), sizeof upper);
    const __m256i left = _mm256_sllv_epi32(_mm256_set1_epi32(upper), _mm256_setr_epi32(2, 1, 0, 0, 0, 0, 0, 0));
    const __m256i high = _mm256_srlv_epi32(left, _mm256_setr_epi32(0, 0, 0, 1, 2, 3, 4, 5));
    TwoLanes::split(
        _mm256_or_si256(TwoLanes::all_of(chunk, row, block), _mm256_and_si256(high, _mm256_set1_epi8(0x04))), of_row);
  }
  PASCALINE_PACKED_INLINE static __m256i factors(const Header& header, std::int64_t block) {
    const __m128i low_shift = _mm_cvtsi32_si128(static_cast<int>(block / 4 * 4 + block % 2 * 16));
    const __m128i high_shift = _mm_cvtsi32_si128(static_cast<int>(block / 2 * 2 + block % 2 * 16));
    const __m256i low =
        _mm256_and_si256(_mm256_srl_epi32(header.words.word[block % 4 / 2], low_shift), _mm256_set1_epi8(0x0F));
    const __m256i high = _mm256_and_si256(_mm256_srl_epi32(header.words.word[2], high_shift), _mm256_set1_epi8(0x03));
    const __m256i bytes = _mm256_or_si256(low, _mm256_slli_epi32(high, 4));
    const __m256i both = _mm256_or_si256(_mm256_and_si256(bytes, _mm256_set1_epi32(0xFF)),
                                         _mm256_and_si256(_mm256_slli_epi32(bytes, 8), _mm256_set1_epi32(0xFF0000)));
    return _mm256_sub_epi16(both, _mm256_set1_epi16(32));
  }
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& header, std::int64_t block,
                                              const BlockActivations& with) {
    return factor_sums<4>(of, factors(header, block), with);
  }
};

template <>
struct Lanes<PackedForm<ElementType::q2_k>> {
  using Form = PackedForm<ElementType::q2_k>;
  struct Header {
    FloatPairs both;
    LaneWords words;
  };
  PASCALINE_PACKED_INLINE static Header header(const std::byte* chunk, std::int64_t row) {
    return {widen_pairs(to_lanes(load_32(chunk + Form::kScales + 4 * row))),
            lane_words(chunk + Form::kHeaders + row * kUnitBytes)};
  }
  PASCALINE_PACKED_INLINE static LaneScales scales(const Header& header, std::int64_t /*block*/) {
    return {header.both.low, header.both.high};
  }
  PASCALINE_PACKED_INLINE static LaneIntegers integers(const std::byte* chunk, std::int64_t row, std::int64_t block) {
    return TwoLanes::integers(chunk, row, block);
  }
  PASCALINE_PACKED_INLINE static void halves(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                             __m128i (&of_row)[2]) {
    TwoLanes::split(TwoLanes::all_of(chunk, row, block), of_row);
  }
  // Returns four bits of each of two bytes, those of the first in the lower 16 bits.
  PASCALINE_PACKED_INLINE static __m256i four_bits(const Header& header, std::int64_t block, int from) {
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(block % 2 * 16) + from);
    const __m256i bytes = _mm256_srl_epi32(header.words.word[block / 2], shift);
    return _mm256_or_si256(_mm256_and_si256(bytes, _mm256_set1_epi32(0x0F)),
                           _mm256_and_si256(_mm256_slli_epi32(bytes, 8), _mm256_set1_epi32(0x0F0000)));
  }
  PASCALINE_PACKED_INLINE static __m256i factors(const Header& header, std::int64_t block) {
    return four_bits(header, block, 0);
  }
  PASCALINE_PACKED_INLINE static __m256i min_sums(const Header& header, std::int64_t block,
                                                  const BlockActivations& with) {
    return _mm256_madd_epi16(four_bits(header, block, 4), with.halves);
  }
  PASCALINE_PACKED_INLINE static __m256i sums(const LaneIntegers& of, const Header& header, std::int64_t block,
                                              const BlockActivations& with) {
    return factor_sums<0>(of, factors(header, block), with);
  }
};

// Sums of a group's rows, kept by eight in the order of the lanes.
struct GroupSums {
  alignas(32) float floats[kMaxActivations][kPackedRows];
};

template <typename Form, bool is_one>
PASCALINE_PACKED_AVX2 void dot_floats(const std::byte* group, const Int8Rows& activations, GroupSums& sums) {
  const std::int64_t count = is_one ? 1 : activations.rows;
  const std::int64_t blocks = activations.columns / kBlock;
  const std::byte* chunk = group;
  for (std::int64_t first = 0; first < blocks; first += Form::kBlocks, chunk += Form::kChunkBytes) {
    for (std::int64_t row = 0; row < kPackedRows; row += kLaneRows) {
      const auto header = Lanes<Form>::header(chunk, row);
#pragma GCC unroll 8
      for (std::int64_t block = 0; block < Form::kBlocks; ++block) {
        const LaneIntegers integers = Lanes<Form>::integers(chunk, row, block);
        const LaneScales scales = Lanes<Form>::scales(header, block);
        for (std::int64_t j = 0; j < count; ++j) {
          const std::int64_t at = j * blocks + first + block;
          const BlockActivations with = activations_at(activations, j, first + block);
          const __m256 exact = _mm256_cvtepi32_ps(Lanes<Form>::sums(integers, header, block, with));
          __m256 sum = _mm256_load_ps(sums.floats[j] + row);
          sum = _mm256_add_ps(
              sum, _mm256_mul_ps(_mm256_mul_ps(exact, scales.scale), _mm256_set1_ps(activations.scales[at])));
          if constexpr (requires { Lanes<Form>::min_sums(header, block, with); }) {
            const __m256 of_min = _mm256_cvtepi32_ps(Lanes<Form>::min_sums(header, block, with));
            const __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(activations.scales[at]), of_min);
            sum = _mm256_sub_ps(sum, _mm256_mul_ps(scales.min, scaled));
          } else if constexpr (Form::kHasMin) {
            sum = _mm256_sub_ps(sum, _mm256_mul_ps(scales.min, _mm256_set1_ps(activations.sums[at])));
          }
          _mm256_store_ps(sums.floats[j] + row, sum);
        }
      }
    }
  }
}

// So many columns have sums of 32 bits.
constexpr std::int64_t kExactColumns = std::int64_t{1} << 16;

struct GroupIntegers {
  alignas(32) std::int32_t parts[kMaxActivations][kPackedRows];
  std::int64_t wholes[kMaxActivations][kPackedRows];

  void clear_parts() { std::fill(&parts[0][0], &parts[0][0] + kMaxActivations * kPackedRows, 0); }
  void add_parts() {
    for (std::int64_t j = 0; j < kMaxActivations; ++j) {
      for (std::int64_t row = 0; row < kPackedRows; ++row) {
        wholes[j][row] += parts[j][row];
      }
    }
  }
};

// Of the columns from `begin` to `end`.
template <typename Form>
PASCALINE_PACKED_AVX2 void dot_integers(const std::byte* group, const Int8Rows& activations, std::int64_t begin,
                                        std::int64_t end, GroupIntegers& sums) {
  for (std::int64_t first = begin / kBlock; first < end / kBlock; first += Form::kBlocks) {
    const std::byte* chunk = group + first / Form::kBlocks * Form::kChunkBytes;
    for (std::int64_t row = 0; row < kPackedRows; row += kLaneRows) {
      const auto header = Lanes<Form>::header(chunk, row);
#pragma GCC unroll 2
      for (std::int64_t block = 0; block < Form::kBlocks; ++block) {
        const LaneIntegers integers = Lanes<Form>::integers(chunk, row, block);
        for (std::int64_t j = 0; j < activations.rows; ++j) {
          const BlockActivations with = activations_at(activations, j, first + block);
          auto* to = reinterpret_cast<__m256i*>(sums.parts[j] + row);
          _mm256_store_si256(to,
                             _mm256_add_epi32(_mm256_load_si256(to), Lanes<Form>::sums(integers, header, block, with)));
        }
      }
    }
  }
}

PASCALINE_PACKED_AVX2 void sort_lanes(const float* lanes, float* rows) {
  for (std::int64_t row = 0; row < kPackedRows; row += kLaneRows) {
    _mm256_storeu_ps(rows + row, _mm256_castsi256_ps(from_lanes(load_32(lanes + row))));
  }
}

template <typename Form>
struct Avx2Dot {
  static void run(const PackedGroup& group, const Int8Rows& activations, float* to) {
    if constexpr (Form::kByRow) {
      run_by_row(group, activations, to);
    } else {
      GroupSums sums;
      std::memset(&sums, 0, sizeof sums);
      if (activations.rows == 1) {
        dot_floats<Form, true>(group.data, activations, sums);
      } else {
        dot_floats<Form, false>(group.data, activations, sums);
      }
      for (std::int64_t j = 0; j < activations.rows; ++j) {
        sort_lanes(sums.floats[j], to + j * kPackedRows);
      }
    }
  }

  static void run_by_row(const PackedGroup& group, const Int8Rows& activations, float* to) {
    GroupIntegers sums;
    std::memset(&sums, 0, sizeof sums);
    for (std::int64_t begin = 0; begin < activations.columns; begin += kExactColumns) {
      sums.clear_parts();
      dot_integers<Form>(group.data, activations, begin, std::min(begin + kExactColumns, activations.columns), sums);
      sums.add_parts();
    }
    alignas(32) float lanes[kPackedRows];
    for (std::int64_t j = 0; j < activations.rows; ++j) {
      std::copy_n(sums.wholes[j], kPackedRows, lanes);
      float* rows = to + j * kPackedRows;
      sort_lanes(lanes, rows);
      for (std::int64_t row = 0; row < kPackedRows; ++row) {
        rows[row] *= activations.scales[j] * group.row_scale(row);
      }
    }
  }
};

// Eight bytes as floats.
PASCALINE_PACKED_INLINE __m256 floats_of(__m128i bytes) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)); }

template <typename Form>
struct Avx2Widen {
  PASCALINE_PACKED_INLINE static __m256 value(__m128i bytes, __m256 scale, __m256 min, __m256 row_scale) {
    __m256 product = _mm256_mul_ps(scale, floats_of(bytes));
    if constexpr (Form::kHasMin) {
      product = _mm256_sub_ps(product, min);
    }
    return Form::kByRow ? _mm256_mul_ps(product, row_scale) : product;
  }

  PASCALINE_PACKED_AVX2 static void widen_block(const std::byte* chunk, std::int64_t row, std::int64_t block,
                                                float row_scale, float* to) {
    const BlockScale scale = Form::scale(chunk, row, block);
    __m128i halves[2];
    Lanes<Form>::halves(chunk, row, block, halves);
    const __m128i less = _mm_set1_epi8(static_cast<char>(scale.offset));
    halves[0] = _mm_sub_epi8(halves[0], less);
    halves[1] = _mm_sub_epi8(halves[1], less);
    const __m256 of_row = _mm256_set1_ps(row_scale);
    for (int half = 0; half < 2; ++half) {
      const auto at = static_cast<std::size_t>(half);
      const __m256 factor = _mm256_set1_ps(scale.scale * static_cast<float>(scale.factors[at]));
      const __m256 min = _mm256_set1_ps(scale.min * static_cast<float>(scale.min_factors[at]));
      _mm256_storeu_ps(to + 16 * half, value(halves[half], factor, min, of_row));
      _mm256_storeu_ps(to + 16 * half + 8, value(_mm_srli_si128(halves[half], 8), factor, min, of_row));
    }
  }

  PASCALINE_PACKED_AVX2 static void run(const std::byte* chunk, std::int64_t row, std::int64_t width, float row_scale,
                                        float* to) {
    std::int64_t first = 0;
    for (; first + kBlock <= width; first += kBlock) {
      widen_block(chunk, row, first / kBlock, row_scale, to + first);
    }
    if (first < width) {
      float last[kBlock];
      widen_block(chunk, row, first / kBlock, row_scale, last);
      std::copy_n(last, width - first, to + first);
    }
  }
};

PASCALINE_PACKED_INLINE __m256i largest_of(__m256i largest, __m256 values) {
  const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7FFFFFFF));
  return _mm256_max_epu32(largest, magnitude);
}

PASCALINE_PACKED_INLINE float largest_lane(__m256i lanes) {
  __m128i largest = _mm_max_epu32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  largest = _mm_max_epu32(largest, _mm_shuffle_epi32(largest, 0x4E));
  largest = _mm_max_epu32(largest, _mm_shuffle_epi32(largest, 0xB1));
  return _mm_cvtss_f32(_mm_castsi128_ps(largest));
}

// Eight products to the nearest integers; 0 for NaN.
PASCALINE_PACKED_INLINE __m256i nearest(__m256 values, __m256 inverse) {
  const __m256 product = _mm256_mul_ps(values, inverse);
  const __m256 number = _mm256_and_ps(product, _mm256_cmp_ps(product, product, _CMP_ORD_Q));
  const __m256 limit = _mm256_set1_ps(127.0F);
  const __m256 bounded = _mm256_max_ps(_mm256_min_ps(number, limit), _mm256_set1_ps(-127.0F));
  return _mm256_cvtps_epi32(bounded);
}

PASCALINE_PACKED_INLINE __m256i nearest_32(const float* from, __m256 inverse) {
  const __m256i low =
      _mm256_packs_epi32(nearest(_mm256_loadu_ps(from), inverse), nearest(_mm256_loadu_ps(from + 8), inverse));
  const __m256i high =
      _mm256_packs_epi32(nearest(_mm256_loadu_ps(from + 16), inverse), nearest(_mm256_loadu_ps(from + 24), inverse));
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// A block of 32 floats as integers with a scale of their own.
PASCALINE_PACKED_AVX2 void round_block(const float* from, const Int8Rows& to, std::int64_t block) {
  __m256i largest = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < kBlock; i += 8) {
    largest = largest_of(largest, _mm256_loadu_ps(from + i));
  }
  const float magnitude = largest_lane(largest);
  const Int8Scale scale = int8_scale({&magnitude, 1});
  const __m256i integers = nearest_32(from, _mm256_set1_ps(scale.inverse));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.values + block * kBlock), integers);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), integers);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  const __m256i eights = _mm256_add_epi32(fours, _mm256_shuffle_epi32(fours, 0x4E));
  const __m256i halves = _mm256_add_epi32(eights, _mm256_shuffle_epi32(eights, 0xB1));
  const std::int32_t first = _mm256_extract_epi32(halves, 0);
  const std::int32_t second = _mm256_extract_epi32(halves, 4);
  to.halves[2 * block] = static_cast<std::int16_t>(first);
  to.halves[2 * block + 1] = static_cast<std::int16_t>(second);
  to.scales[block] = scale.scale;
  to.sums[block] = scale.scale * static_cast<float>(first + second);
}

PASCALINE_PACKED_AVX2 void round_blocks(const float* from, std::int64_t width, const Int8Rows& to) {
  const std::int64_t blocks = to.columns / kBlock;
  const std::int64_t whole = width / kBlock;
  for (std::int64_t block = 0; block < whole; ++block) {
    round_block(from + block * kBlock, to, block);
  }
  for (std::int64_t block = whole; block < blocks; ++block) {
    float last[kBlock] = {};
    std::copy_n(from + std::min(block * kBlock, width), std::clamp<std::int64_t>(width - block * kBlock, 0, kBlock),
                last);
    round_block(last, to, block);
  }
}

PASCALINE_PACKED_AVX2 void round_whole_row(const float* from, std::int64_t width, const Int8Rows& to) {
  float last[kBlock] = {};
  const std::int64_t whole = width / kBlock * kBlock;
  std::copy_n(from + whole, width - whole, last);
  __m256i largest = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < whole; i += 8) {
    largest = largest_of(largest, _mm256_loadu_ps(from + i));
  }
  for (std::int64_t i = 0; i < kBlock; i += 8) {
    largest = largest_of(largest, _mm256_loadu_ps(last + i));
  }
  const float magnitude = largest_lane(largest);
  const Int8Scale scale = int8_scale({&magnitude, 1});
  const __m256 inverse = _mm256_set1_ps(scale.inverse);
  for (std::int64_t i = 0; i < to.columns; i += kBlock) {
    const __m256i integers = i < whole    ? nearest_32(from + i, inverse)
                             : i == whole ? nearest_32(last, inverse)
                                          : _mm256_setzero_si256();
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.values + i), integers);
  }
  *to.scales = scale.scale;
}

void round_rows_by_8(const float* from, std::int64_t width, const Int8Rows& to) {
  for (std::int64_t row = 0; row < to.rows; ++row) {
    if (to.by_row) {
      round_whole_row(from + row * width, width, to.at(row));
    } else {
      round_blocks(from + row * width, width, to.at(row));
    }
  }
}

PASCALINE_PACKED_AVX2 void widen_rounded_by_8(const Int8Rows& rows, std::int64_t width, float* to) {
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const Int8Rows alone = rows.at(row);
    float* floats = to + row * width;
    std::int64_t i = 0;
    for (; i + 8 <= width; i += 8) {
      const __m256 scale = _mm256_set1_ps(alone.scales[rows.by_row ? 0 : i / kBlock]);
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(alone.values + i));
      _mm256_storeu_ps(floats + i, _mm256_mul_ps(scale, floats_of(bytes)));
    }
    for (; i < width; ++i) {
      floats[i] = alone.scales[rows.by_row ? 0 : i / kBlock] * static_cast<float>(alone.values[i]);
    }
  }
}

// Not every compiler's built-in test knows this one.
bool can_widen_halves() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

const PackedKernels* avx2_packed_kernels() noexcept {
  static constexpr PackedKernels kAvx2Packed{"AVX2", round_rows_by_8, widen_rounded_by_8, dot_matrix<Avx2Dot>,
                                             widen_matrix_part<Avx2Widen>};
  static const bool has_all = __builtin_cpu_supports("avx2") && can_widen_halves();
  return has_all ? &kAvx2Packed : nullptr;
}

}  // namespace pascaline::cpu

#else

namespace pascaline::cpu {

const PackedKernels* avx2_packed_kernels() noexcept { return nullptr; }

}  // namespace pascaline::cpu

#endif
