#pragma once

// Formats of matrices as they lie in memory (docs/formats.md, "Packed for wide loads"): 32 rows together, of which each
// has 16 bytes in turn, so that the lanes of a warp, a row each, read 512 bytes at once.
//
// Packed<FORMAT> reads blocks of 32 values of a row as integers, and their scales:
//   value = scale[i / (32 / kScales)] · q - min
// (one scale for 32 values, or two for 16 each, and as many minima if kHasMin). kHeaderBlocks blocks share a header.
// Where kTwoLevels, scales and minima are integers times numbers that the blocks of a header share: `steps` and
// `units`. Only the remainder of `block` by kHeaderBlocks counts there; what the compiler knows of it need not be
// computed.

#include "types.cuh"
#include "vector.cuh"

struct q8_0;
struct q2_k;
struct q3_k;
struct q4_0;
struct q4_1;
struct q4_k;
struct q5_0;
struct q5_1;
struct q5_k;
struct q6_k;
struct iq4_nl;
struct iq4_xs;
struct int8_row;
struct int4_g128;
struct mxfp4;

constexpr int kPackedRows = 32;              // rows together
constexpr int kUnitStep = 16 * kPackedRows;  // bytes from one unit of 16 bytes of a row to its next

using Words4 = Vector<int, 4>;
using Words2 = Vector<int, 2>;

__device__ __forceinline__ float half_bits(unsigned int bits) {
  return to_float(float16{static_cast<unsigned short>(bits)});
}

template <typename T>
__device__ __forceinline__ T read_as(const unsigned char* address) {
  return *reinterpret_cast<const T*>(address);
}

// 32 values of four bits: byte i has values i and 16 + i. OFFSET is what is taken off each.
template <int OFFSET>
__device__ __forceinline__ void unpack_nibbles(int (&words)[8], const Words4& unit) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = unit.element[i] & 0x0f0f0f0f;
    words[4 + i] = static_cast<int>(static_cast<unsigned int>(unit.element[i]) >> 4) & 0x0f0f0f0f;
  }
  if constexpr (OFFSET == 8) {
    // 0x78 + q stays within its byte; with the upper bit turned it is q - 8.
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      words[i] = static_cast<int>((static_cast<unsigned int>(words[i]) + 0x78787878u) ^ 0x80808080u);
    }
  }
}

// The upper four of each pair as they lie, sixteen times their value, which spares shifting them.
__device__ __forceinline__ void unpack_nibbles_in_place(int (&words)[8], const Words4& unit) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = unit.element[i] & 0x0f0f0f0f;
    words[4 + i] = static_cast<int>(static_cast<unsigned int>(unit.element[i]) & 0xf0f0f0f0u);
  }
}

struct BlockScales {
  float scale[2];
  float min;
  float upper_min = 0.0f;  // of the upper 16 values, with kHasMin and two scales
};

// Returns the word with the two bytes of block `block` % 8. Uses comparisons, as an index known only at run time would
// put the words into local memory.
__device__ __forceinline__ int word_of_block(const Words4& words, unsigned int block) {
  const int lower = block % 4 < 2 ? words.element[0] : words.element[1];
  const int upper = block % 4 < 2 ? words.element[2] : words.element[3];
  return block % 8 < 4 ? lower : upper;
}

// What scales and minima of all blocks of a header are multiplied by.
struct BlockUnits {
  float scale;
  float min;
};

__device__ __forceinline__ BlockScales absolute(const BlockScales& steps, const BlockUnits& units) {
  return {
      {steps.scale[0] * units.scale, steps.scale[1] * units.scale}, steps.min * units.min, steps.upper_min * units.min};
}

template <typename FORMAT>
struct Packed;

// Values of eight bits, 64 columns together.
struct PackedBytes {
  static constexpr int kColumns = 64;
  static constexpr bool kUpperInPlace = false;
  static constexpr bool kTwoLevels = false;
  struct Values {
    Words4 unit[2];
  };
  template <int CHUNK_BYTES>
  static __device__ __forceinline__ void read_values(Values& values, const unsigned char* group, int lane,
                                                     unsigned int block) {
    const unsigned char* place = group + block / 2 * CHUNK_BYTES + block % 2 * (2 * kUnitStep) + lane * 16;
    values.unit[0] = load_vector<4>(reinterpret_cast<const int*>(place));
    values.unit[1] = load_vector<4>(reinterpret_cast<const int*>(place + kUnitStep));
  }
  static __device__ __forceinline__ void unpack(int (&words)[8], const Values& values) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      words[i] = values.unit[i / 4].element[i % 4];
    }
  }
};

template <>
struct Packed<int8_row> : PackedBytes {
  static constexpr int kChunkBytes = 4 * kUnitStep;
  static constexpr int kTailBytes = 4 * kPackedRows;  // a scale for each row
  static constexpr int kScales = 0;
  static constexpr bool kHasMin = false;
  static constexpr int kHeaderBlocks = 1;
  struct Header {};
  static __device__ __forceinline__ void load(Values& values, const unsigned char* group, int lane,
                                              unsigned int block) {
    read_values<kChunkBytes>(values, group, lane, block);
  }
  static __device__ __forceinline__ void load_header(Header&, const unsigned char*, int, unsigned int) {}
  static __device__ __forceinline__ BlockScales scales(const Header&, unsigned int) { return {{1.0f, 1.0f}, 0.0f}; }
};

template <>
struct Packed<q8_0> : PackedBytes {
  static constexpr int kChunkBytes = 4 * kUnitStep + 4 * kPackedRows;
  static constexpr int kTailBytes = 0;
  static constexpr int kScales = 1;
  static constexpr bool kHasMin = false;
  static constexpr int kHeaderBlocks = 2;
  struct Header {
    unsigned int scales;
  };
  static __device__ __forceinline__ void load(Values& values, const unsigned char* group, int lane,
                                              unsigned int block) {
    read_values<kChunkBytes>(values, group, lane, block);
  }
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.scales = read_as<unsigned int>(group + block / 2 * kChunkBytes + 4 * kUnitStep + lane * 4);
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    const float scale = half_bits(header.scales >> (block % 2 * 16));
    return {{scale, scale}, 0.0f};
  }
};

// Values of four bits, COLUMNS of them together.
template <int COLUMNS, int CHUNK_BYTES, int OFFSET>
struct PackedNibbles {
  static constexpr int kColumns = COLUMNS;
  static constexpr int kChunkBytes = CHUNK_BYTES;
  static constexpr int kTailBytes = 0;
  static constexpr int kScales = 1;
  static constexpr int kHeaderBlocks = COLUMNS / 32;
  static constexpr bool kUpperInPlace = OFFSET == 0;  // dots may use unpack_in_place
  struct Values {
    Words4 unit;
  };
  static __device__ __forceinline__ void load(Values& values, const unsigned char* group, int lane,
                                              unsigned int block) {
    const unsigned char* place =
        group + block / kHeaderBlocks * kChunkBytes + block % kHeaderBlocks * kUnitStep + lane * 16;
    values.unit = load_vector<4>(reinterpret_cast<const int*>(place));
  }
  static __device__ __forceinline__ void unpack(int (&words)[8], const Values& values) {
    unpack_nibbles<OFFSET>(words, values.unit);
  }
  static __device__ __forceinline__ void unpack_in_place(int (&words)[8], const Values& values) {
    unpack_nibbles_in_place(words, values.unit);
  }
  // Where the headers of the chunk with that block begin.
  static __device__ __forceinline__ const unsigned char* headers(const unsigned char* group, unsigned int block) {
    return group + block / kHeaderBlocks * kChunkBytes + kHeaderBlocks * kUnitStep;
  }
};

template <>
struct Packed<q4_0> : PackedNibbles<64, 2 * kUnitStep + 4 * kPackedRows, 8> {
  static constexpr bool kHasMin = false;
  static constexpr bool kTwoLevels = false;
  struct Header {
    unsigned int scales;
  };
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.scales = read_as<unsigned int>(headers(group, block) + lane * 4);
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    const float scale = half_bits(header.scales >> (block % 2 * 16));
    return {{scale, scale}, 0.0f};
  }
};

template <>
struct Packed<q4_1> : PackedNibbles<64, 2 * kUnitStep + 8 * kPackedRows, 0> {
  static constexpr bool kHasMin = true;
  static constexpr bool kTwoLevels = false;
  struct Header {
    Words2 pairs;
  };
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.pairs = load_vector<2>(reinterpret_cast<const int*>(headers(group, block) + lane * 8));
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    const unsigned int pair =
        static_cast<unsigned int>(block % 2 == 0 ? header.pairs.element[0] : header.pairs.element[1]);
    const float scale = half_bits(pair & 0xffffu);
    return {{scale, scale}, -half_bits(pair >> 16)};
  }
};

template <>
struct Packed<q4_k> : PackedNibbles<256, 9 * kUnitStep, 0> {
  static constexpr bool kHasMin = true;
  static constexpr bool kTwoLevels = true;
  struct Header {
    Words4 words;  // two halves, then twelve bytes with eight scales and eight minima of six bits
  };
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.words = load_vector<4>(reinterpret_cast<const int*>(headers(group, block) + lane * 16));
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return absolute(steps(header, block), units(header));
  }
  static __device__ __forceinline__ BlockScales steps(const Header& header, unsigned int block) {
    const unsigned int first = static_cast<unsigned int>(header.words.element[1]);
    const unsigned int second = static_cast<unsigned int>(header.words.element[2]);
    const unsigned int third = static_cast<unsigned int>(header.words.element[3]);
    const bool upper = block % 8 >= 4;
    // Four of a kind in a word, so that blocks share the work.
    const unsigned int scales = upper ? (third & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u) : first & 0x3f3f3f3fu;
    const unsigned int minima = upper ? (third >> 4 & 0x0f0f0f0fu) | (second >> 2 & 0x30303030u) : second & 0x3f3f3f3fu;
    const unsigned int shift = block % 4 * 8;
    const float scale = static_cast<float>(scales >> shift & 0xffu);
    return {{scale, scale}, static_cast<float>(minima >> shift & 0xffu)};
  }
  static __device__ __forceinline__ BlockUnits units(const Header& header) {
    const unsigned int both = static_cast<unsigned int>(header.words.element[0]);
    return {half_bits(both & 0xffffu), half_bits(both >> 16)};
  }
};

template <>
struct Packed<int4_g128> : PackedNibbles<128, 4 * kUnitStep + 4 * kPackedRows, 0> {
  static constexpr bool kHasMin = true;
  static constexpr bool kTwoLevels = false;
  struct Header {
    unsigned int word;  // a half, then the zero point
  };
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.word = read_as<unsigned int>(headers(group, block) + lane * 4);
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int /*block*/) {
    const float scale = half_bits(header.word & 0xffffu);
    return {{scale, scale}, scale * static_cast<float>(header.word >> 16)};
  }
};

// __byte_perm for selectors below 8, which the intrinsic would first clear their fourth bit of.
__device__ __forceinline__ unsigned int permute_bytes(unsigned int low, unsigned int high, unsigned int selectors) {
#ifdef __CUDA_ARCH__
  unsigned int out;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(selectors));
  return out;
#else
  return __byte_perm(low, high, selectors);
#endif
}

// Sixteen bytes, the first in the lowest bits.
template <unsigned int W0, unsigned int W1, unsigned int W2, unsigned int W3>
struct ByteTable {
  // Returns the bytes that four indices name. One permutation covers eight bytes, so there are two: `inside` has the
  // lower three bits of each index, and `halves` the numbers 0 to 3, plus 4 where an index has its fourth bit.
  static __device__ __forceinline__ unsigned int look_up(unsigned int inside, unsigned int halves) {
    return permute_bytes(permute_bytes(W0, W1, inside), permute_bytes(W2, W3, inside), halves);
  }
};

// Indices of four bits into a table of integers.
template <int COLUMNS, int CHUNK_BYTES, typename TABLE>
struct PackedIndices : PackedNibbles<COLUMNS, CHUNK_BYTES, 0> {
  using Values = typename PackedNibbles<COLUMNS, CHUNK_BYTES, 0>::Values;
  static constexpr bool kHasMin = false;
  static constexpr bool kUpperInPlace = false;
  static __device__ __forceinline__ void unpack(int (&words)[8], const Values& values) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned int indices = static_cast<unsigned int>(values.unit.element[i]);
      const unsigned int inside = indices & 0x77777777u;
      const unsigned int halves = (indices >> 1 & 0x44444444u) | 0x32103210u;
      const unsigned int first = TABLE::look_up(inside, halves);
      const unsigned int second = TABLE::look_up(inside >> 16, halves >> 16);
      words[i] = static_cast<int>(permute_bytes(first, second, 0x6420u));
      words[4 + i] = static_cast<int>(permute_bytes(first, second, 0x7531u));
    }
  }
};

// -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
using NormalTable = ByteTable<0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u>;

template <>
struct Packed<iq4_nl> : PackedIndices<64, 2 * kUnitStep + 4 * kPackedRows, NormalTable> {
  static constexpr bool kTwoLevels = false;
  using Header = Packed<q4_0>::Header;
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    Packed<q4_0>::load_header(header, group, lane, block);
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return Packed<q4_0>::scales(header, block);
  }
};

template <>
struct Packed<iq4_xs> : PackedIndices<256, 8 * kUnitStep + 8 * kPackedRows, NormalTable> {
  static constexpr bool kTwoLevels = true;
  struct Header {
    Words2 words;  // a half; the upper two bits of eight scales; their lower four bits
  };
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.words = load_vector<2>(reinterpret_cast<const int*>(headers(group, block) + lane * 8));
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return absolute(steps(header, block), units(header));
  }
  static __device__ __forceinline__ BlockScales steps(const Header& header, unsigned int block) {
    const unsigned int low = static_cast<unsigned int>(header.words.element[1]) >> (block % 8 * 4) & 0x0fu;
    const unsigned int high = static_cast<unsigned int>(header.words.element[0]) >> (16 + block % 8 * 2) & 0x03u;
    const float scale = static_cast<float>(static_cast<int>(low | high << 4) - 32);
    return {{scale, scale}, 0.0f};
  }
  static __device__ __forceinline__ BlockUnits units(const Header& header) {
    return {half_bits(static_cast<unsigned int>(header.words.element[0]) & 0xffffu), 0.0f};
  }
};

// 0, 1, 2, 3, 4, 6, 8, 12 and the same with a sign: twice the numbers of OCP's E2M1.
using FloatTable = ByteTable<0x03020100u, 0x0C080604u, 0xFDFEFF00u, 0xF4F8FAFCu>;

template <>
struct Packed<mxfp4> : PackedIndices<64, 2 * kUnitStep + 2 * kPackedRows, FloatTable> {
  static constexpr bool kTwoLevels = false;
  struct Header {
    unsigned int exponents;  // of two blocks
  };
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.exponents = read_as<unsigned short>(headers(group, block) + lane * 2);
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    const unsigned int exponent = header.exponents >> (block % 2 * 8) & 0xffu;
    // Half of 2^(exponent - 127): subnormal for exponents below 2.
    const float scale = __uint_as_float(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
    return {{scale, scale}, 0.0f};
  }
};

template <>
struct Packed<q6_k> {
  static constexpr int kColumns = 256;
  static constexpr int kChunkBytes = 13 * kUnitStep + 2 * kPackedRows;
  static constexpr int kTailBytes = 0;
  static constexpr int kScales = 2;
  static constexpr bool kHasMin = false;
  static constexpr bool kUpperInPlace = false;
  static constexpr bool kTwoLevels = true;
  static constexpr int kHeaderBlocks = 8;
  struct Values {
    Words4 low;   // as four-bit values
    Words2 high;  // byte i has the upper two bits of values i, 8 + i, 16 + i and 24 + i
  };
  struct Header {
    Words4 scales;
    float scale;
  };
  static __device__ __forceinline__ void load(Values& values, const unsigned char* group, int lane,
                                              unsigned int block) {
    const unsigned char* chunk = group + block / 8 * kChunkBytes;
    const unsigned int inside = block % 8;
    values.low = load_vector<4>(reinterpret_cast<const int*>(chunk + inside * kUnitStep + lane * 16));
    values.high =
        load_vector<2>(reinterpret_cast<const int*>(chunk + (8 + inside / 2) * kUnitStep + lane * 16 + inside % 2 * 8));
  }
  static __device__ __forceinline__ void unpack(int (&words)[8], const Values& values) {
    unpack_nibbles<0>(words, values.low);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const unsigned int high = static_cast<unsigned int>(values.high.element[i % 2]) >> (i / 2 * 2) & 0x03030303u;
      // 0x60 + q stays within its byte; with the upper bit turned it is q - 32.
      words[i] = static_cast<int>(((static_cast<unsigned int>(words[i]) | high << 4) + 0x60606060u) ^ 0x80808080u);
    }
  }
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    const unsigned char* chunk = group + block / 8 * kChunkBytes;
    header.scales = load_vector<4>(reinterpret_cast<const int*>(chunk + 12 * kUnitStep + lane * 16));
    header.scale = half_bits(read_as<unsigned short>(chunk + 13 * kUnitStep + lane * 2));
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return absolute(steps(header, block), units(header));
  }
  static __device__ __forceinline__ BlockUnits units(const Header& header) { return {header.scale, 0.0f}; }
  static __device__ __forceinline__ BlockScales steps(const Header& header, unsigned int block) {
    const int word = word_of_block(header.scales, block) >> (block % 2 * 16);
    const float first = static_cast<float>(static_cast<signed char>(word));
    const float second = static_cast<float>(static_cast<signed char>(word >> 8));
    return {{first, second}, 0.0f};
  }
};

// Two bits of each value. A block of 32 has eight bytes; byte i has those of values i, 8 + i, 16 + i and 24 + i.
template <int CHUNK_BYTES>
struct PackedTwos {
  static constexpr int kColumns = 256;
  static constexpr int kChunkBytes = CHUNK_BYTES;
  static constexpr int kTailBytes = 0;
  static constexpr int kScales = 2;
  static constexpr int kHeaderBlocks = 8;
  static constexpr bool kUpperInPlace = false;
  static constexpr bool kTwoLevels = true;
  // Where the units of the chunk with that block begin.
  static __device__ __forceinline__ const unsigned char* units_of(const unsigned char* group, int lane,
                                                                  unsigned int block) {
    return group + block / 8 * kChunkBytes + lane * 16;
  }
  static __device__ __forceinline__ Words2 load_twos(const unsigned char* group, int lane, unsigned int block) {
    const unsigned char* unit = units_of(group, lane, block) + block % 8 / 2 * kUnitStep;
    return load_vector<2>(reinterpret_cast<const int*>(unit + block % 2 * 8));
  }
  static __device__ __forceinline__ unsigned int word_of(const Words2& twos, int i) {
    return static_cast<unsigned int>(twos.element[i % 2]) >> (i / 2 * 2) & 0x03030303u;
  }
};

template <>
struct Packed<q2_k> : PackedTwos<5 * kUnitStep + 4 * kPackedRows> {
  static constexpr bool kHasMin = true;
  struct Values {
    Words2 twos;
  };
  struct Header {
    Words4 scales;       // a byte for 16 values: four bits of a scale, four of a minimum
    unsigned int units;  // two halves
  };
  static __device__ __forceinline__ void load(Values& values, const unsigned char* group, int lane,
                                              unsigned int block) {
    values.twos = load_twos(group, lane, block);
  }
  static __device__ __forceinline__ void unpack(int (&words)[8], const Values& values) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      words[i] = static_cast<int>(word_of(values.twos, i));
    }
  }
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    const unsigned char* chunk = group + block / 8 * kChunkBytes;
    header.scales = load_vector<4>(reinterpret_cast<const int*>(chunk + 4 * kUnitStep + lane * 16));
    header.units = read_as<unsigned int>(chunk + 5 * kUnitStep + lane * 4);
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return absolute(steps(header, block), units(header));
  }
  static __device__ __forceinline__ BlockUnits units(const Header& header) {
    return {half_bits(header.units & 0xffffu), half_bits(header.units >> 16)};
  }
  static __device__ __forceinline__ BlockScales steps(const Header& header, unsigned int block) {
    const unsigned int word = static_cast<unsigned int>(word_of_block(header.scales, block)) >> (block % 2 * 16);
    return {{static_cast<float>(word & 0x0fu), static_cast<float>(word >> 8 & 0x0fu)},
            static_cast<float>(word >> 4 & 0x0fu),
            static_cast<float>(word >> 12 & 0x0fu)};
  }
};

template <>
struct Packed<q3_k> : PackedTwos<7 * kUnitStep> {
  static constexpr bool kHasMin = false;
  struct Values {
    Words2 twos;
    unsigned int high;  // upper bits, as in PackedFives
  };
  struct Header {
    Words4 words;  // sixteen scales of six bits in twelve bytes, then a half
  };
  static __device__ __forceinline__ void load(Values& values, const unsigned char* group, int lane,
                                              unsigned int block) {
    values.twos = load_twos(group, lane, block);
    const unsigned char* unit = units_of(group, lane, block) + (4 + block % 8 / 4) * kUnitStep;
    values.high = read_as<unsigned int>(unit + block % 4 * 4);
  }
  static __device__ __forceinline__ void unpack(int (&words)[8], const Values& values) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const unsigned int high = (i < 2 ? values.high << (2 - i % 2) : values.high >> (i + 6) % 8) & 0x04040404u;
      // 0x7c + q stays within its byte; flipping its upper bit gives q - 4.
      words[i] = static_cast<int>(((word_of(values.twos, i) | high) + 0x7c7c7c7cu) ^ 0x80808080u);
    }
  }
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.words = load_vector<4>(reinterpret_cast<const int*>(units_of(group, lane, block) + 6 * kUnitStep));
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return absolute(steps(header, block), units(header));
  }
  static __device__ __forceinline__ BlockUnits units(const Header& header) {
    return {half_bits(static_cast<unsigned int>(header.words.element[3]) & 0xffffu), 0.0f};
  }
  static __device__ __forceinline__ BlockScales steps(const Header& header, unsigned int block) {
    // Makes four scales at once, so that blocks share the work. Uses comparisons, as word_of_block does.
    const unsigned int inside = block % 8;
    const unsigned int low =
        static_cast<unsigned int>(inside % 4 < 2 ? header.words.element[0] : header.words.element[1]);
    const unsigned int high = static_cast<unsigned int>(header.words.element[2]);
    const unsigned int four = (low >> (inside / 4 * 4) & 0x0f0f0f0fu) | (high >> (inside / 2 * 2) & 0x03030303u) << 4;
    const unsigned int both = four >> (inside % 2 * 16);
    return {{static_cast<float>(static_cast<int>(both & 0xffu) - 32),
             static_cast<float>(static_cast<int>(both >> 8 & 0xffu) - 32)},
            0.0f};
  }
};

// Values of five bits. The low four are nibbles; a word for each block of a row holds the upper bits: byte i those of
// values i, 4 + i, 8 + i, … 28 + i. These words begin UPPER bytes into a chunk. OFFSET is subtracted from each value.
template <int COLUMNS, int CHUNK_BYTES, int UPPER, int OFFSET>
struct PackedFives {
  static constexpr int kColumns = COLUMNS;
  static constexpr int kChunkBytes = CHUNK_BYTES;
  static constexpr int kTailBytes = 0;
  static constexpr int kScales = 1;
  static constexpr int kHeaderBlocks = COLUMNS / 32;
  static constexpr bool kUpperInPlace = false;
  struct Values {
    Words4 low;
    unsigned int high;
  };
  static __device__ __forceinline__ void load(Values& values, const unsigned char* group, int lane,
                                              unsigned int block) {
    const unsigned char* chunk = chunk_of(group, block);
    const unsigned int inside = block % kHeaderBlocks;
    values.low = load_vector<4>(reinterpret_cast<const int*>(chunk + inside * kUnitStep + lane * 16));
    values.high = read_as<unsigned int>(chunk + UPPER + inside * (4 * kPackedRows) + lane * 4);
  }
  static __device__ __forceinline__ void unpack(int (&words)[8], const Values& values) {
    unpack_nibbles<0>(words, values.low);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const unsigned int high = (i < 4 ? values.high << (4 - i % 4) : values.high >> (i % 4)) & 0x10101010u;
      const unsigned int value = static_cast<unsigned int>(words[i]) | high;
      // 0x70 + q stays within its byte; with the upper bit turned it is q - 16.
      words[i] = static_cast<int>(OFFSET == 16 ? (value + 0x70707070u) ^ 0x80808080u : value);
    }
  }
  static __device__ __forceinline__ const unsigned char* chunk_of(const unsigned char* group, unsigned int block) {
    return group + block / kHeaderBlocks * kChunkBytes;
  }
};

template <>
struct Packed<q5_0> : PackedFives<64, 2 * kUnitStep + 12 * kPackedRows, 2 * kUnitStep, 16> {
  static constexpr bool kHasMin = false;
  static constexpr bool kTwoLevels = false;
  struct Header {
    unsigned int scales;
  };
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    header.scales = read_as<unsigned int>(chunk_of(group, block) + 2 * kUnitStep + 8 * kPackedRows + lane * 4);
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    const float scale = half_bits(header.scales >> (block % 2 * 16));
    return {{scale, scale}, 0.0f};
  }
};

template <>
struct Packed<q5_1> : PackedFives<64, 2 * kUnitStep + 16 * kPackedRows, 2 * kUnitStep, 0> {
  static constexpr bool kHasMin = true;
  static constexpr bool kTwoLevels = false;
  using Header = Packed<q4_1>::Header;
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    const unsigned char* headers = chunk_of(group, block) + 2 * kUnitStep + 8 * kPackedRows;
    header.pairs = load_vector<2>(reinterpret_cast<const int*>(headers + lane * 8));
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return Packed<q4_1>::scales(header, block);
  }
};

// Has the headers of q4_k.
template <>
struct Packed<q5_k> : PackedFives<256, 9 * kUnitStep + 32 * kPackedRows, 9 * kUnitStep, 0> {
  static constexpr bool kHasMin = true;
  static constexpr bool kTwoLevels = true;
  using Header = Packed<q4_k>::Header;
  static __device__ __forceinline__ void load_header(Header& header, const unsigned char* group, int lane,
                                                     unsigned int block) {
    const unsigned char* headers = chunk_of(group, block) + 8 * kUnitStep;
    header.words = load_vector<4>(reinterpret_cast<const int*>(headers + lane * 16));
  }
  static __device__ __forceinline__ BlockScales scales(const Header& header, unsigned int block) {
    return Packed<q4_k>::scales(header, block);
  }
  static __device__ __forceinline__ BlockScales steps(const Header& header, unsigned int block) {
    return Packed<q4_k>::steps(header, block);
  }
  static __device__ __forceinline__ BlockUnits units(const Header& header) { return Packed<q4_k>::units(header); }
};

// The same for every format: steps are the scales, and units 1, where there are no two levels.
template <typename FORM>
__device__ __forceinline__ BlockScales steps_of(const typename FORM::Header& header, unsigned int block) {
  if constexpr (FORM::kTwoLevels) {
    return FORM::steps(header, block);
  } else {
    return FORM::scales(header, block);
  }
}
template <typename FORM>
__device__ __forceinline__ void unpack_in_place(int (&words)[8], const typename FORM::Values& values) {
  if constexpr (FORM::kUpperInPlace) {
    FORM::unpack_in_place(words, values);
  } else {
    FORM::unpack(words, values);
  }
}
template <typename FORM>
__device__ __forceinline__ BlockUnits units_of(const typename FORM::Header& header) {
  if constexpr (FORM::kTwoLevels) {
    return FORM::units(header);
  } else {
    return {1.0f, 1.0f};
  }
}

// Bytes of a group of rows with so many columns, of which there are whole chunks.
template <typename FORMAT>
__device__ __forceinline__ long long packed_group_bytes(int columns) {
  using Form = Packed<FORMAT>;
  return static_cast<long long>((columns + Form::kColumns - 1) / Form::kColumns) * Form::kChunkBytes + Form::kTailBytes;
}

// Bytes of the first `rows` rows, in whole groups.
template <typename FORMAT>
__device__ __forceinline__ long long packed_bytes_of_rows(int rows, int columns) {
  return (rows + kPackedRows - 1) / kPackedRows * packed_group_bytes<FORMAT>(columns);
}

// The scale of a row that has one for all its values; 1 for all others. `group_bytes` as above.
template <typename FORMAT>
__device__ __forceinline__ float row_scale(const unsigned char* group, long long group_bytes, int lane) {
  if constexpr (Packed<FORMAT>::kScales == 0) {
    return read_as<float>(group + group_bytes - Packed<FORMAT>::kTailBytes + lane * 4);
  } else {
    return 1.0f;
  }
}

// A single value, with its row's scale.
template <typename FORMAT>
__device__ __forceinline__ float packed_value(const unsigned char* group, long long group_bytes, int lane, int column) {
  using Form = Packed<FORMAT>;
  typename Form::Values values;
  typename Form::Header header;
  Form::load(values, group, lane, column / 32);
  Form::load_header(header, group, lane, column / 32);
  const BlockScales scales = Form::scales(header, column / 32);
  int words[8];
  Form::unpack(words, values);
  int word = 0;
#pragma unroll
  for (int w = 0; w < 8; ++w) {
    word = column % 32 / 4 == w ? words[w] : word;  // an index known only at run time would need local memory
  }
  const float q = static_cast<float>(static_cast<signed char>(word >> (column % 4 * 8)));
  const bool upper = Form::kScales == 2 && column % 32 >= 16;
  const float scale = upper ? scales.scale[1] : scales.scale[0];
  return (scale * q - (upper ? scales.upper_min : scales.min)) * row_scale<FORMAT>(group, group_bytes, lane);
}

// Whether a type is a packed format: Packed has it.
template <typename T, int COLUMNS = Packed<T>::kColumns>
__device__ constexpr bool has_packed(int) {
  return true;
}
template <typename T>
__device__ constexpr bool has_packed(...) {
  return false;
}
template <typename T>
__device__ constexpr bool is_packed() {
  return has_packed<T>(0);
}

#ifdef PASCALINE_REFERENCE

// The sum of value i of a block times `other(i)` in float64; without a row's scale.
template <typename FORMAT, typename Other>
__device__ double block_product(const unsigned char* group, int lane, unsigned int block, Other other) {
  using Form = Packed<FORMAT>;
  typename Form::Values values;
  typename Form::Header header;
  Form::load(values, group, lane, block);
  Form::load_header(header, group, lane, block);
  const BlockScales scales = Form::scales(header, block);
  int words[8];
  Form::unpack(words, values);
  double sum = 0.0;
  for (int i = 0; i < 32; ++i) {
    const int q = static_cast<signed char>(words[i / 4] >> (i % 4 * 8));
    const bool upper = Form::kScales == 2 && i >= 16;
    const double value = static_cast<double>(scales.scale[upper ? 1 : 0]) * q - (upper ? scales.upper_min : scales.min);
    sum += value * static_cast<double>(other(i));
  }
  return sum;
}

#endif
