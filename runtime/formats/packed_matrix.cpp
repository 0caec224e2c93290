#include "runtime/formats/packed_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "runtime/formats/blocks.hpp"
#include "runtime/formats/float16x.hpp"
#include "runtime/formats/int8_rows.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kUnit = 16;                  // bytes of a row that lie together
constexpr std::size_t kGroupRows = 32;             // rows of a packed group
constexpr std::size_t kStep = kUnit * kGroupRows;  // from one unit of a row to the next

FormatTraits::Block file_block_of(ElementType format) {
  if (!is_packed_format(format)) {
    throw Error(fmt::format("{} is no packed format", name_of(format)));
  }
  return traits_of(format).block;
}

std::size_t blocks_of(ElementType format, std::size_t columns) {
  const std::size_t values = file_block_of(format).values;
  return (columns + values - 1) / values;
}

// 32 bytes of four-bit values, of which the low halves are one part of 32 values and the high halves another, as two
// units of 16 bytes, in which byte i has values i and 16 + i of a part.
void split_parts(const std::byte* both, std::byte* low, std::byte* high) {
  constexpr std::byte kLow{0x0F};
  constexpr std::byte kHigh{0xF0};
  for (std::size_t i = 0; i < kUnit; ++i) {
    low[i] = (both[i] & kLow) | (both[kUnit + i] & kLow) << 4U;
    high[i] = (both[i] & kHigh) >> 4U | (both[kUnit + i] & kHigh);
  }
}

void join_parts(const std::byte* low, const std::byte* high, std::byte* both) {
  constexpr std::byte kLow{0x0F};
  constexpr std::byte kHigh{0xF0};
  for (std::size_t i = 0; i < kUnit; ++i) {
    both[i] = (low[i] & kLow) | (high[i] & kLow) << 4U;
    both[kUnit + i] = (low[i] & kHigh) >> 4U | (high[i] & kHigh);
  }
}

// One bit of each of 32 values: in a row that of value i is bit i, in a group bit 8 (i mod 4) + i / 4.
std::uint32_t pack_bits(std::uint32_t bits) {
  std::uint32_t packed = 0;
  for (unsigned i = 0; i < 32; ++i) {
    packed |= (bits >> i & 1U) << (i % 4 * 8 + i / 4);
  }
  return packed;
}

std::uint32_t unpack_bits(std::uint32_t packed) {
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 32; ++i) {
    bits |= (packed >> (i % 4 * 8 + i / 4) & 1U) << i;
  }
  return bits;
}

void convert_word(const std::byte* from, std::byte* to, std::uint32_t (*convert)(std::uint32_t)) {
  std::uint32_t word = 0;
  std::memcpy(&word, from, sizeof word);
  word = convert(word);
  std::memcpy(to, &word, sizeof word);
}

// What packing and unpacking do with bytes that stay as they are, and with pairs of parts.
struct Packing {
  std::byte* group;
  const std::byte* row;

  void move(std::size_t in_group, std::size_t in_row, std::size_t bytes) const {
    std::memcpy(group + in_group, row + in_row, bytes);
  }
  void zeros(std::size_t in_group, std::size_t bytes) const { std::memset(group + in_group, 0, bytes); }
  void parts(std::size_t low, std::size_t high, std::size_t in_row) const {
    split_parts(row + in_row, group + low, group + high);
  }
  void single_bits(std::size_t in_group, std::size_t in_row) const {
    convert_word(row + in_row, group + in_group, pack_bits);
  }
  // Upper bits of eight parts of 32 values: in the row, bit p of byte i is that of value i of part p.
  void bits_of_parts(const std::array<std::size_t, 8>& in_group, std::size_t in_row) const {
    for (std::size_t part = 0; part < in_group.size(); ++part) {
      std::uint32_t bits = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        bits |= (std::to_integer<std::uint32_t>(row[in_row + i]) >> part & 1U) << i;
      }
      bits = pack_bits(bits);
      std::memcpy(group + in_group[part], &bits, sizeof bits);
    }
  }
  // Upper two bits of 128 values: in the row, value l of part r is in byte l; in the group a part has 8 bytes.
  void upper_bits(const std::array<std::size_t, 4>& in_group, std::size_t in_row) const {
    for (std::size_t part = 0; part < 4; ++part) {
      for (std::size_t i = 0; i < 8; ++i) {
        std::byte packed{0};
        for (std::size_t lane = 0; lane < 4; ++lane) {
          packed |= (row[in_row + 8 * lane + i] >> (2 * part) & std::byte{3}) << (2 * lane);
        }
        group[in_group[part] + i] = packed;
      }
    }
  }
};

struct Unpacking {
  const std::byte* group;
  std::byte* row;

  void move(std::size_t in_group, std::size_t in_row, std::size_t bytes) const {
    std::memcpy(row + in_row, group + in_group, bytes);
  }
  void zeros(std::size_t /*in_group*/, std::size_t /*bytes*/) const {}
  void parts(std::size_t low, std::size_t high, std::size_t in_row) const {
    join_parts(group + low, group + high, row + in_row);
  }
  void single_bits(std::size_t in_group, std::size_t in_row) const {
    convert_word(group + in_group, row + in_row, unpack_bits);
  }
  void bits_of_parts(const std::array<std::size_t, 8>& in_group, std::size_t in_row) const {
    std::memset(row + in_row, 0, 32);
    for (std::size_t part = 0; part < in_group.size(); ++part) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, group + in_group[part], sizeof bits);
      bits = unpack_bits(bits);
      for (std::size_t i = 0; i < 32; ++i) {
        row[in_row + i] |= static_cast<std::byte>((bits >> i & 1U) << part);
      }
    }
  }
  void upper_bits(const std::array<std::size_t, 4>& in_group, std::size_t in_row) const {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      for (std::size_t i = 0; i < 8; ++i) {
        std::byte joined{0};
        for (std::size_t part = 0; part < 4; ++part) {
          joined |= (group[in_group[part] + i] >> (2 * lane) & std::byte{3}) << (2 * part);
        }
        row[in_row + 8 * lane + i] = joined;
      }
    }
  }
};

// Where a block lies in its row, and in the row's group.
struct BlockPlace {
  std::size_t row;    // byte of the row that it begins with
  std::size_t chunk;  // byte of the group that its chunk begins with
  std::size_t block;  // its number in the chunk
  std::size_t index;  // of the row in the group

  [[nodiscard]] std::size_t unit(std::size_t number) const { return chunk + number * kStep + index * kUnit; }
  // The header of so many bytes that is after so many units, and after other headers.
  [[nodiscard]] std::size_t header(std::size_t units, std::size_t bytes, std::size_t others = 0) const {
    return chunk + units * kStep + others * kGroupRows + index * bytes;
  }
};

// Tells `mover` where the bytes of a block are in its row and in the row's group.
template <ElementType format>
struct BlockMove;

template <>
struct BlockMove<ElementType::q8_0> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    mover.move(at.unit(2 * at.block), at.row + 2, kUnit);
    mover.move(at.unit(2 * at.block + 1), at.row + 2 + kUnit, kUnit);
    mover.move(at.header(4, 4) + 2 * at.block, at.row, 2);
  }
};

template <>
struct BlockMove<ElementType::q4_0> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    mover.move(at.unit(at.block), at.row + 2, kUnit);
    mover.move(at.header(2, 4) + 2 * at.block, at.row, 2);
  }
};

template <>
struct BlockMove<ElementType::iq4_nl> : BlockMove<ElementType::q4_0> {};

template <>
struct BlockMove<ElementType::iq4_xs> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    for (std::size_t part = 0; part < blocks::kParts; ++part) {
      mover.move(at.unit(part), at.row + 8 + kUnit * part, kUnit);
    }
    mover.move(at.header(8, 8), at.row, 8);
  }
};

template <>
struct BlockMove<ElementType::mxfp4> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    mover.move(at.unit(at.block), at.row + 1, kUnit);
    mover.move(at.header(2, 2) + at.block, at.row, 1);
  }
};

template <>
struct BlockMove<ElementType::q4_1> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    mover.move(at.unit(at.block), at.row + 4, kUnit);
    mover.move(at.header(2, 8) + 4 * at.block, at.row, 4);
  }
};

template <>
struct BlockMove<ElementType::q5_0> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    mover.move(at.unit(at.block), at.row + 6, kUnit);
    mover.single_bits(at.header(2, 4, 4 * at.block), at.row + 2);
    mover.move(at.header(2, 4, 8) + 2 * at.block, at.row, 2);
  }
};

template <>
struct BlockMove<ElementType::q5_1> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    mover.move(at.unit(at.block), at.row + 8, kUnit);
    mover.single_bits(at.header(2, 4, 4 * at.block), at.row + 4);
    mover.move(at.header(2, 8, 8) + 4 * at.block, at.row, 4);
  }
};

template <>
struct BlockMove<ElementType::q5_k> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    for (std::size_t pair = 0; pair < 4; ++pair) {
      mover.parts(at.unit(2 * pair), at.unit(2 * pair + 1), at.row + 48 + 32 * pair);
    }
    mover.move(at.unit(8), at.row, 16);
    std::array<std::size_t, 8> high{};
    for (std::size_t part = 0; part < high.size(); ++part) {
      high[part] = at.header(9, 4, 4 * part);
    }
    mover.bits_of_parts(high, at.row + 16);
  }
};

template <>
struct BlockMove<ElementType::q4_k> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    for (std::size_t pair = 0; pair < 4; ++pair) {
      mover.parts(at.unit(2 * pair), at.unit(2 * pair + 1), at.row + 16 + 32 * pair);
    }
    mover.move(at.unit(8), at.row, 16);
  }
};

template <>
struct BlockMove<ElementType::q2_k> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t low = at.unit(2 * half);
      mover.upper_bits({low, low + 8, low + kStep, low + kStep + 8}, at.row + 16 + 32 * half);
    }
    mover.move(at.unit(4), at.row, 16);
    mover.move(at.header(5, 4), at.row + 80, 4);
  }
};

template <>
struct BlockMove<ElementType::q3_k> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    std::array<std::size_t, 8> high{};
    for (std::size_t part = 0; part < high.size(); ++part) {
      high[part] = at.unit(4 + part / 4) + part % 4 * 4;
    }
    mover.bits_of_parts(high, at.row);
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t low = at.unit(2 * half);
      mover.upper_bits({low, low + 8, low + kStep, low + kStep + 8}, at.row + 32 + 32 * half);
    }
    mover.move(at.unit(6), at.row + 96, 8);
    mover.move(at.unit(6) + 8, at.row + 104, 4);
    mover.move(at.unit(6) + 12, at.row + 108, 2);
    mover.zeros(at.unit(6) + 14, 2);
  }
};

template <>
struct BlockMove<ElementType::q6_k> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t pair = 0; pair < 2; ++pair) {
        mover.parts(at.unit(4 * half + pair), at.unit(4 * half + pair + 2), at.row + 64 * half + 32 * pair);
      }
      const std::size_t high = at.unit(8 + 2 * half);
      mover.upper_bits({high, high + 8, high + kStep, high + kStep + 8}, at.row + 128 + 32 * half);
    }
    mover.move(at.unit(12), at.row + 192, 16);
    mover.move(at.header(13, 2), at.row + 208, 2);
  }
};

template <>
struct BlockMove<ElementType::int4_g128> {
  template <typename Mover>
  static void run(const Mover& mover, const BlockPlace& at) {
    mover.parts(at.unit(0), at.unit(2), at.row);
    mover.parts(at.unit(1), at.unit(3), at.row + 32);
    mover.move(at.header(4, 4), at.row + 64, 4);
  }
};

template <typename Mover>
void move_row(const Mover& mover, ElementType format, std::size_t columns, std::size_t index) {
  if (format != ElementType::int8_row) {
    const MatrixLayout layout = layout_of(format);
    const FormatTraits::Block block = file_block_of(format);
    const std::size_t in_chunk = static_cast<std::size_t>(layout.chunk_columns) / block.values;
    blocks::with_blocks(format, [&]<ElementType known> {
      for (std::size_t b = 0; b < blocks_of(format, columns); ++b) {
        const std::size_t chunk = b / in_chunk * static_cast<std::size_t>(layout.chunk_bytes);
        BlockMove<known>::run(mover, {b * block.bytes, chunk, b % in_chunk, index});
      }
    });
    return;
  }
  for (std::size_t at = 0; at < columns; at += kUnit) {
    mover.move(at / kUnit * kStep + index * kUnit, at, std::min(kUnit, columns - at));
  }
  const auto tail = static_cast<std::size_t>(layout_of(format).group_bytes(static_cast<std::int64_t>(columns))) -
                    kGroupRows * sizeof(float);
  mover.move(tail + index * sizeof(float), columns, sizeof(float));
}

void require_lengths(ElementType format, std::int64_t columns, std::int64_t index, std::size_t row, std::size_t group) {
  if (columns < 1 || index < 0 || index >= static_cast<std::int64_t>(kGroupRows) ||
      row != file_row_bytes(format, columns) ||
      group != static_cast<std::size_t>(layout_of(format).group_bytes(columns))) {
    throw Error(fmt::format("{} bytes of a row and {} of a group are not those of {} columns in {}", row, group,
                            columns, name_of(format)));
  }
}

float number_in(std::span<const std::byte> row, std::size_t at) {
  float number = 0;
  std::memcpy(&number, row.data() + at, sizeof number);
  return number;
}

std::optional<UnfitBlock> quantize_int8_row(std::span<const float> values, std::span<std::byte> row) {
  const auto unfit = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (unfit != values.end()) {
    return UnfitBlock{static_cast<std::size_t>(unfit - values.begin()), "is not finite"};
  }
  const float scale = int8_row_scale(values);
  quantise_to_int8(values, scale, {reinterpret_cast<std::int8_t*>(row.data()), values.size()});
  std::memcpy(row.data() + values.size(), &scale, sizeof scale);
  return std::nullopt;
}

// Notes where the bytes of one row go.
struct PieceMover {
  std::vector<PackedPiece>* found;
  std::size_t block = 0;

  void note(std::size_t in_group, std::size_t bytes) const { found->push_back({in_group, 0, bytes, block}); }
  void zeros(std::size_t in_group, std::size_t bytes) const {
    found->push_back({in_group, 0, bytes, PackedPiece::kNoPlace});
  }
  void move(std::size_t in_group, std::size_t /*in_row*/, std::size_t bytes) const { note(in_group, bytes); }
  void parts(std::size_t low, std::size_t high, std::size_t /*in_row*/) const {
    note(low, kUnit);
    note(high, kUnit);
  }
  void single_bits(std::size_t in_group, std::size_t /*in_row*/) const { note(in_group, sizeof(std::uint32_t)); }
  void bits_of_parts(const std::array<std::size_t, 8>& in_group, std::size_t /*in_row*/) const {
    for (const std::size_t at : in_group) {
      note(at, sizeof(std::uint32_t));
    }
  }
  void upper_bits(const std::array<std::size_t, 4>& in_group, std::size_t /*in_row*/) const {
    for (const std::size_t at : in_group) {
      note(at, 8);
    }
  }
};

// Notes where a block's scales go.
struct ScaleMover {
  std::size_t in_block;
  std::size_t* found;

  void move(std::size_t in_group, std::size_t in_row, std::size_t bytes) const {
    if (in_row <= in_block && in_block < in_row + bytes) {
      *found = in_group + in_block - in_row;
    }
  }
  void zeros(std::size_t /*in_group*/, std::size_t /*bytes*/) const {}
  void parts(std::size_t /*low*/, std::size_t /*high*/, std::size_t /*in_row*/) const {}
  void single_bits(std::size_t /*in_group*/, std::size_t /*in_row*/) const {}
  void bits_of_parts(const std::array<std::size_t, 8>& /*in_group*/, std::size_t /*in_row*/) const {}
  void upper_bits(const std::array<std::size_t, 4>& /*in_group*/, std::size_t /*in_row*/) const {}
};

std::vector<PackedPiece> pieces_of_row(ElementType format, std::size_t index) {
  std::vector<PackedPiece> pieces;
  const auto columns = static_cast<std::size_t>(layout_of(format).chunk_columns);
  if (format == ElementType::int8_row) {
    for (std::size_t at = 0; at < columns; at += kUnit) {
      pieces.push_back({at / kUnit * kStep + index * kUnit, 0, kUnit, at});
    }
    return pieces;
  }
  blocks::with_blocks(format, [&]<ElementType known> {
    for (std::size_t block = 0; block < columns / file_block_of(format).values; ++block) {
      BlockMove<known>::run(PieceMover{&pieces, block}, {0, 0, block, index});
    }
  });
  return pieces;
}

std::size_t scales_of(ElementType format, std::size_t block, std::size_t index) {
  std::size_t at = 0;
  blocks::with_blocks(format, [&]<ElementType known> {
    BlockMove<known>::run(ScaleMover{file_block_of(format).scales_at, &at}, {0, 0, block, index});
  });
  return at;
}

constexpr std::size_t kElementsAtOnce = 1 << 16;

std::vector<double> widen_float16x(std::span<const std::byte> matrix, std::size_t count) {
  const auto head = static_cast<std::size_t>(layout_of(ElementType::float16x).head_bytes);
  const Float16xDecoder decode(float16x_header(matrix.data()));
  std::vector<double> values(count);
  worker_pool().run(count, kElementsAtOnce, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      std::uint16_t code = 0;
      std::memcpy(&code, matrix.data() + head + i * sizeof code, sizeof code);
      values[i] = static_cast<double>(decode(code));
    }
  });
  return values;
}

}  // namespace

std::size_t file_row_bytes(ElementType format, std::int64_t columns) {
  const auto count = static_cast<std::size_t>(columns);
  if (format == ElementType::float16x) {
    return count * sizeof(std::uint16_t);
  }
  const std::size_t bytes = blocks_of(format, count) * file_block_of(format).bytes;
  return format == ElementType::int8_row ? bytes + sizeof(float) : bytes;
}

std::size_t file_block_values(ElementType format, std::size_t columns) {
  return format == ElementType::int8_row ? columns : file_block_of(format).values;
}

std::optional<UnfitBlock> quantize_row(ElementType format, std::span<const float> values, std::span<std::byte> row) {
  if (row.size() != file_row_bytes(format, static_cast<std::int64_t>(values.size()))) {
    throw Error(fmt::format("{} bytes are no row of {} values in {}", row.size(), values.size(), name_of(format)));
  }
  if (format == ElementType::int8_row) {
    return quantize_int8_row(values, row);
  }
  const std::size_t whole = blocks_of(format, values.size()) * file_block_of(format).values;
  std::vector<float> filled;
  if (whole != values.size()) {
    filled.assign(values.begin(), values.end());
    filled.resize(whole);
    values = filled;
  }
  return quantize(format, values, row);
}

void dequantize_row(ElementType format, std::span<const std::byte> row, std::span<float> values) {
  if (row.size() != file_row_bytes(format, static_cast<std::int64_t>(values.size()))) {
    throw Error(fmt::format("{} bytes are no row of {} values in {}", row.size(), values.size(), name_of(format)));
  }
  if (format == ElementType::int8_row) {
    widen_int8(reinterpret_cast<const std::int8_t*>(row.data()), number_in(row, values.size()), values.data(),
               std::ssize(values));
    return;
  }
  const std::size_t whole = blocks_of(format, values.size()) * file_block_of(format).values;
  if (whole == values.size()) {
    dequantize(format, row, values);
    return;
  }
  std::vector<float> filled(whole);
  dequantize(format, row, filled);
  std::copy_n(filled.begin(), values.size(), values.begin());
}

void pack_row(ElementType format, std::span<const std::byte> row, std::int64_t columns, std::int64_t index,
              std::span<std::byte> group) {
  require_lengths(format, columns, index, row.size(), group.size());
  move_row(Packing{group.data(), row.data()}, format, static_cast<std::size_t>(columns),
           static_cast<std::size_t>(index));
}

void unpack_row(ElementType format, std::span<const std::byte> group, std::int64_t columns, std::int64_t index,
                std::span<std::byte> row) {
  require_lengths(format, columns, index, row.size(), group.size());
  move_row(Unpacking{group.data(), row.data()}, format, static_cast<std::size_t>(columns),
           static_cast<std::size_t>(index));
}

std::vector<double> widen_matrix(ElementType type, std::span<const std::byte> bytes, std::int64_t rows,
                                 std::int64_t columns) {
  if (!is_matrix_format(type)) {
    return widen(type, bytes);
  }
  if (type == ElementType::float16x) {
    return widen_float16x(bytes, static_cast<std::size_t>(rows * columns));
  }
  const auto width = static_cast<std::size_t>(columns);
  const auto group_bytes = static_cast<std::size_t>(layout_of(type).group_bytes(columns));
  std::vector<double> values(static_cast<std::size_t>(rows) * width);
  worker_pool().run(static_cast<std::size_t>(rows), 16, [&](std::size_t begin, std::size_t end) {
    std::vector<std::byte> row(file_row_bytes(type, columns));
    std::vector<float> floats(width);
    for (std::size_t i = begin; i < end; ++i) {
      unpack_row(type, bytes.subspan(i / kGroupRows * group_bytes, group_bytes), columns,
                 static_cast<std::int64_t>(i % kGroupRows), row);
      dequantize_row(type, row, floats);
      std::copy(floats.begin(), floats.end(), values.begin() + static_cast<std::ptrdiff_t>(i * width));
    }
  });
  return values;
}

PackedPieces packed_pieces(ElementType format) {
  PackedPieces found;
  found.pieces = pieces_of_row(format, 0);
  const std::vector<PackedPiece> next = pieces_of_row(format, 1);
  for (std::size_t i = 0; i < next.size(); ++i) {
    found.pieces[i].row_step = next[i].at - found.pieces[i].at;
  }
  const FormatTraits::Block block = file_block_of(format);
  const std::size_t scale_bytes = block.exponent_reach > 0 ? 1 : block.scales() * sizeof(std::uint16_t);
  if (scale_bytes > 0) {
    const std::size_t at = scales_of(format, 0, 0);
    found.scales = {at, scales_of(format, 0, 1) - at, scale_bytes, 0};
    found.scale_block_step = scales_of(format, 1, 0) - at;
  }
  return found;
}

}  // namespace pascaline
