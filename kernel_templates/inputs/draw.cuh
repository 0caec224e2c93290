#pragma once

// The values that fill buffers before a kernel is verified and timed. Each follows from a seed and its own index alone,
// by integers and by operations that IEEE 754 rounds alike on every machine. The processor and a device compile this
// same text, so that both draw the same bytes.

#include <cmath>

#include "float16x_code.cuh"

namespace drawing {

using Word = unsigned long long;

/// Element types by the numbers of the program's; all packed formats are one.
enum Type : int {
  kFloat32,
  kFloat16,
  kBfloat16,
  kFloat64,
  kInt32,
  kInt64,
  kUint32,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kUint64,
  kBool,
  kFloat16x,
  kPacked,
};

enum Kind : int { kZeros, kUniform, kNormal, kRamp, kSorted, kPermutation };

/// Gives the elements before they are rounded to their type.
struct Values {
  Kind kind;
  double low;   // normal: the mean
  double span;  // from low to the upper end; normal: the standard deviation
  Word seed;
  Word row;  // elements of a ramp, of all for a permutation
};

/// Bytes of a row that lie together in its packed group.
struct Piece {
  int at;        // byte of the chunk, for the group's first row
  int row_step;  // from one row to the next
  int bytes;     // 16, 8, 4, 2 or 1
  int place;     // number in the chunk of the block, or column, that it begins with; beyond all: zeros
};

/// A matrix in a packed format: random bytes, then scales by which the values have the right size.
struct Packed {
  static constexpr int kMaxPieces = 24;

  Word seed;
  Word rows;
  Word chunks;  // of a row
  Word places;  // of a row: blocks, or columns
  Word group_bytes;
  int chunk_bytes;
  int places_per_chunk;
  int bytes_per_place;  // of a piece, those that belong to one place; 16: all
  int pieces;
  Piece piece[kMaxPieces];
  int scales;  // of a block, float16 side by side
  int scale_at;
  int scale_row_step;
  int scale_block_step;
  double largest[2];    // of each scale
  int most_exponent;    // of a scale that is a power of two in one byte; -1: none
  int kept_bits;        // of the 16 bits after the scales, where they may not all be random; else -1
  double largest_tail;  // of the float32 scale that each row has at the end of its group, 0: none
};

/// Everything that decides what a buffer is filled with.
struct Plan {
  Type type;
  Word units;  // elements; of packed formats, the chunks of all rows, those that a last group lacks included
  Values values;
  Float16xCode code;       // of kFloat16x
  int float16x_header[2];  // likewise: exponent width and bias
  Packed packed;           // of kPacked
};

constexpr int kHeadBytes = 128;  // of a matrix of kFloat16x
constexpr int kRowsOfGroup = 32;
constexpr Word kGolden = 0x9E3779B97F4A7C15ull;

/// A number that looks random, the same for the same state (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
PASCALINE_EVERYWHERE Word splitmix(Word state) {
  state += kGolden;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ull;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBull;
  return state ^ (state >> 31);
}

// In (0, 1).
PASCALINE_EVERYWHERE double unit(Word seed, Word index) {
  return (static_cast<double>(splitmix(seed + index * kGolden) >> 11) + 0.5) * 0x1p-53;
}

// The sum of twelve uniform numbers, less its mean: of variance 1, and without a function that machines round
// differently.
PASCALINE_EVERYWHERE double bell(Word seed, Word index) {
  constexpr Word kMask = (1ull << 21) - 1;
  Word sum = 0;
  for (Word i = 0; i < 4; ++i) {
    const Word bits = splitmix(seed + (4 * index + i) * kGolden);
    sum += (bits & kMask) + (bits >> 21 & kMask) + (bits >> 42 & kMask);
  }
  return static_cast<double>(static_cast<long long>(sum) - static_cast<long long>(6 * kMask)) * 0x1p-21;
}

// Rounded after the product and after the sum, also where the compiler would fuse both.
PASCALINE_EVERYWHERE double on_line(double low, double span, double part) {
#ifdef __CUDACC_RTC__
  return __dadd_rn(low, __dmul_rn(span, part));
#else
  return low + span * part;
#endif
}

// Steps of equal mean length, each of another length; the first number and the last are the ends.
PASCALINE_EVERYWHERE double sorted_part(const Values& of, Word index) {
  if (index + 1 >= of.row) {
    return of.row < 2 ? 0.0 : 1.0;
  }
  const double moved = index == 0 ? 0.0 : static_cast<double>(index) + unit(of.seed, index);
  return moved / static_cast<double>(of.row);
}

// Where a shuffle of the numbers below `count` puts `index`: four rounds of a Feistel network over the next power of
// four, again as long as the result is not below `count` (Black and Rogaway: Ciphers with arbitrary finite domains,
// CT-RSA 2002).
PASCALINE_EVERYWHERE Word shuffled(Word seed, Word count, Word index) {
  int half = 1;
  while (half < 31 && (Word{1} << (2 * half)) < count) {
    ++half;
  }
  const Word mask = (Word{1} << half) - 1;
  do {
    for (Word round = 0; round < 4; ++round) {
      const Word right = index & mask;
      index = right << half | ((index >> half ^ splitmix(seed + (4 * right + round) * kGolden)) & mask);
    }
  } while (index >= count);
  return index;
}

PASCALINE_EVERYWHERE double value_at(const Values& of, Word index) {
  if (of.kind == kUniform) {
    return on_line(of.low, of.span, unit(of.seed, index));
  }
  if (of.kind == kNormal) {
    return on_line(of.low, of.span, bell(of.seed, index));
  }
  if (of.kind == kRamp) {
    const double step = static_cast<double>(index % of.row);
    return of.row < 2 ? of.low : of.low + of.span * step / static_cast<double>(of.row - 1);
  }
  if (of.kind == kSorted) {
    return on_line(of.low, of.span, sorted_part(of, index));
  }
  if (of.kind == kPermutation) {
    return of.low + static_cast<double>(shuffled(of.seed, of.row, index));
  }
  return 0.0;
}

// The whole number below. What an integer type does not hold loses its upper bits; beyond 64 bits, it is the last
// number that they hold. All numbers but 0 are true.
template <typename T>
PASCALINE_EVERYWHERE T whole(double value) {
  const double below = floor(value);
  const double least = below > -0x1p63 ? below : -0x1p63;
  return static_cast<T>(static_cast<long long>(least < 0x1p63 ? least : 0x1.fffffffffffffp62));
}

template <>
PASCALINE_EVERYWHERE Word whole<Word>(double value) {
  return value < 0x1p63 ? static_cast<Word>(whole<long long>(value))
                        : static_cast<Word>(value < 0x1p64 ? value : 0x1.fffffffffffffp63);
}

template <typename T, typename Convert>
PASCALINE_EVERYWHERE void put(void* to, const Values& of, Word begin, Word end, Word step, Convert convert) {
  T* const elements = static_cast<T*>(to);
  for (Word i = begin; i < end; i += step) {
    elements[i] = convert(value_at(of, i));
  }
}

template <typename T>
PASCALINE_EVERYWHERE void put_whole(void* to, const Values& of, Word begin, Word end, Word step) {
  put<T>(to, of, begin, end, step, [](double value) { return whole<T>(value); });
}

PASCALINE_EVERYWHERE void put_float16x(const Plan& plan, void* to, Word begin, Word end, Word step) {
  if (begin == 0) {
    int* const header = static_cast<int*>(to);
    for (int i = 0; i < kHeadBytes / 4; ++i) {
      header[i] = i < 2 ? plan.float16x_header[i] : 0;
    }
  }
  put<unsigned short>(static_cast<char*>(to) + kHeadBytes, plan.values, begin, end, step,
                      [&plan](double value) { return plan.code(static_cast<float>(value)); });
}

/// Elements `begin`, `begin + step` and so on, to `end`. `Narrow` rounds a float to the bits of a float16 or bfloat16.
template <typename Narrow>
PASCALINE_EVERYWHERE void put_elements(const Plan& plan, void* to, Word begin, Word end, Word step) {
  const Values& of = plan.values;
  switch (plan.type) {
    case kFloat32:
      return put<float>(to, of, begin, end, step, [](double value) { return static_cast<float>(value); });
    case kFloat16:
      return put<unsigned short>(to, of, begin, end, step,
                                 [](double value) { return Narrow::float16_bits(static_cast<float>(value)); });
    case kBfloat16:
      return put<unsigned short>(to, of, begin, end, step,
                                 [](double value) { return Narrow::bfloat16_bits(static_cast<float>(value)); });
    case kFloat64:
      return put<double>(to, of, begin, end, step, [](double value) { return value; });
    case kInt32:
      return put_whole<int>(to, of, begin, end, step);
    case kInt64:
      return put_whole<long long>(to, of, begin, end, step);
    case kUint32:
      return put_whole<unsigned int>(to, of, begin, end, step);
    case kInt8:
      return put_whole<signed char>(to, of, begin, end, step);
    case kUint8:
      return put_whole<unsigned char>(to, of, begin, end, step);
    case kInt16:
      return put_whole<short>(to, of, begin, end, step);
    case kUint16:
      return put_whole<unsigned short>(to, of, begin, end, step);
    case kUint64:
      return put_whole<Word>(to, of, begin, end, step);
    case kBool:
      return put_whole<bool>(to, of, begin, end, step);
    default:
      return put_float16x(plan, to, begin, end, step);
  }
}

// From a half to one.
PASCALINE_EVERYWHERE double share(Word state) { return 0.5 + static_cast<double>(splitmix(state) >> 11) * 0x1p-54; }

// The piece's bytes of a row, of which those from `valid` on are zeros.
PASCALINE_EVERYWHERE void put_piece(unsigned char* to, int bytes, int valid, Word state) {
  for (int at = 0; at < bytes; at += 8) {
    const int left = valid - at;
    Word word = left > 0 ? splitmix(state + static_cast<Word>(at) * kGolden) : 0;
    word &= left >= 8 || left <= 0 ? ~0ull : (1ull << (8 * left)) - 1;
    if (bytes >= 8) {
      *reinterpret_cast<Word*>(to + at) = word;
    } else if (bytes == 4) {
      *reinterpret_cast<unsigned int*>(to) = static_cast<unsigned int>(word);
    } else if (bytes == 2) {
      *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(word);
    } else {
      *to = static_cast<unsigned char>(word);
    }
  }
}

template <typename Narrow>
PASCALINE_EVERYWHERE void put_scales(const Packed& of, unsigned char* at, Word state) {
  if (of.most_exponent != -1) {
    const int exponent = of.most_exponent - static_cast<int>(splitmix(state) >> 62);
    *at = static_cast<unsigned char>(exponent < 0 ? 0 : exponent);
    return;
  }
  unsigned short* const scales = reinterpret_cast<unsigned short*>(at);
  for (int i = 0; i < of.scales; ++i) {
    scales[i] = Narrow::float16_bits(static_cast<float>(of.largest[i] * share(state + static_cast<Word>(i) * kGolden)));
  }
  if (of.kept_bits != -1) {
    scales[of.scales] = static_cast<unsigned short>(scales[of.scales] & of.kept_bits);
  }
}

// The chunk of one row; of a row that the matrix has not, and of blocks that the row has not, zeros.
template <typename Narrow>
PASCALINE_EVERYWHERE void put_chunk(const Packed& of, unsigned char* group, Word chunk, Word row) {
  const int in_group = static_cast<int>(row % kRowsOfGroup);
  const Word first_place = chunk * static_cast<Word>(of.places_per_chunk);
  const long long places = row < of.rows ? static_cast<long long>(of.places - first_place) : 0;
  const Word state = splitmix(of.seed + (row * of.chunks + chunk) * kGolden);
  unsigned char* const to = group + chunk * static_cast<Word>(of.chunk_bytes);
  for (int i = 0; i < of.pieces; ++i) {
    const Piece& piece = of.piece[i];
    const long long left = (places - piece.place) * of.bytes_per_place;
    const int valid = static_cast<int>(left < 0 ? 0 : left < piece.bytes ? left : piece.bytes);
    put_piece(to + piece.at + in_group * piece.row_step, piece.bytes, valid,
              state + static_cast<Word>(16 * i) * kGolden);
  }
  constexpr Word kScaleWords = Word{1} << 32;  // after those of all pieces
  const bool has_scales = of.scales > 0 || of.most_exponent != -1;
  for (int block = 0; has_scales && block < of.places_per_chunk && block < places; ++block) {
    put_scales<Narrow>(of, to + of.scale_at + in_group * of.scale_row_step + block * of.scale_block_step,
                       state + (kScaleWords + 2 * static_cast<Word>(block)) * kGolden);
  }
  if (of.largest_tail > 0 && chunk == 0) {
    float* const tails = reinterpret_cast<float*>(group + of.group_bytes) - kRowsOfGroup;
    tails[in_group] = row < of.rows ? static_cast<float>(of.largest_tail * share(state + kScaleWords * kGolden)) : 0.0f;
  }
}

/// Chunks `begin`, `begin + step` and so on, to `end`: those of a group's rows side by side, then those of the next
/// chunk.
template <typename Narrow>
PASCALINE_EVERYWHERE void put_packed(const Packed& of, void* to, Word begin, Word end, Word step) {
  for (Word i = begin; i < end; i += step) {
    const Word group = i / kRowsOfGroup / of.chunks;
    put_chunk<Narrow>(of, static_cast<unsigned char*>(to) + group * of.group_bytes, i / kRowsOfGroup % of.chunks,
                      group * kRowsOfGroup + i % kRowsOfGroup);
  }
}

/// Units `begin`, `begin + step` and so on, to `end`, of a plan that has any.
template <typename Narrow>
PASCALINE_EVERYWHERE void put_units(const Plan& plan, void* to, Word begin, Word end, Word step) {
  if (plan.type == kPacked) {
    put_packed<Narrow>(plan.packed, to, begin, end, step);
  } else {
    put_elements<Narrow>(plan, to, begin, end, step);
  }
}

}  // namespace drawing
