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
#include "runtime/formats/int4_groups.hpp"
#include "runtime/formats/int8_rows.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kUnit = 16;                  // bytes of a row that lie together
constexpr std::size_t kGroupRows = 32;             // rows of a packed group
constexpr std::size_t kStep = kUnit * kGroupRows;  // from one unit of a row to the next

// A group of int4_g128 in a file.
struct FileInt4Group {
  std::array<std::uint8_t, kInt4Group / 2> quants;
  std::uint16_t scale;
  std::uint8_t zero;
  std::uint8_t unused;
};
static_assert(sizeof(FileInt4Group) == 68);

std::optional<BlockFormat> block_format_of(ElementType format) {
  switch (format) {
    case ElementType::q8_0:
      return BlockFormat::q8_0;
    case ElementType::q4_0:
      return BlockFormat::q4_0;
    case ElementType::q4_1:
      return BlockFormat::q4_1;
    case ElementType::q4_k:
      return BlockFormat::q4_k;
    case ElementType::q6_k:
      return BlockFormat::q6_k;
    default:
      return std::nullopt;
  }
}

// Values and bytes of a block in a file; of int8_row, one value.
struct FileBlock {
  std::size_t values;
  std::size_t bytes;
};

FileBlock file_block_of(ElementType format) {
  if (const auto blocks = block_format_of(format)) {
    const BlockFormatInfo& info = info_of(*blocks);
    return {static_cast<std::size_t>(info.values), info.block_bytes};
  }
  if (format == ElementType::int4_g128) {
    return {kInt4Group, sizeof(FileInt4Group)};
  }
  if (format == ElementType::int8_row) {
    return {1, 1};
  }
  throw Error(fmt::format("{} is no packed format", name_of(format)));
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

// What packing and unpacking do with bytes that stay as they are, and with pairs of parts.
struct Packing {
  std::byte* group;
  const std::byte* row;

  void move(std::size_t in_group, std::size_t in_row, std::size_t bytes) const {
    std::memcpy(group + in_group, row + in_row, bytes);
  }
  void parts(std::size_t low, std::size_t high, std::size_t in_row) const {
    split_parts(row + in_row, group + low, group + high);
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
  void parts(std::size_t low, std::size_t high, std::size_t in_row) const {
    join_parts(group + low, group + high, row + in_row);
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

// Tells `mover` where the bytes of block `b` of a row lie in the row and in its group.
template <typename Mover>
void move_q6_k(const Mover& mover, std::size_t b, std::size_t index, std::size_t chunk) {
  constexpr std::size_t kHigh = 8 * kStep;
  constexpr std::size_t kScales = 12 * kStep;
  constexpr std::size_t kScale = 13 * kStep;
  const std::size_t from = b * sizeof(blocks::BlockQ6K);
  const std::size_t unit = chunk + index * kUnit;
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const std::size_t low = unit + (4 * half + pair) * kStep;
      mover.parts(low, low + 2 * kStep, from + 64 * half + 32 * pair);
    }
    const std::size_t high = unit + kHigh + 2 * half * kStep;
    mover.upper_bits({high, high + 8, high + kStep, high + kStep + 8}, from + 128 + 32 * half);
  }
  mover.move(unit + kScales, from + 192, 16);
  mover.move(chunk + kScale + 2 * index, from + 208, 2);
}

template <typename Mover>
void move_block(const Mover& mover, ElementType format, std::size_t b, std::size_t index) {
  const MatrixLayout layout = layout_of(format);
  const FileBlock block = file_block_of(format);
  const std::size_t in_chunk = static_cast<std::size_t>(layout.chunk_columns) / block.values;
  const std::size_t chunk = b / in_chunk * static_cast<std::size_t>(layout.chunk_bytes);
  const std::size_t place = b % in_chunk;
  const std::size_t unit = chunk + index * kUnit;
  const std::size_t from = b * block.bytes;
  switch (format) {
    case ElementType::q8_0:
      mover.move(unit + 2 * place * kStep, from + 2, kUnit);
      mover.move(unit + (2 * place + 1) * kStep, from + 2 + kUnit, kUnit);
      mover.move(chunk + 4 * kStep + index * 4 + 2 * place, from, 2);
      break;
    case ElementType::q4_0:
      mover.move(unit + place * kStep, from + 2, kUnit);
      mover.move(chunk + 2 * kStep + index * 4 + 2 * place, from, 2);
      break;
    case ElementType::q4_1:
      mover.move(unit + place * kStep, from + 4, kUnit);
      mover.move(chunk + 2 * kStep + index * 8 + 4 * place, from, 4);
      break;
    case ElementType::q4_k:
      for (std::size_t pair = 0; pair < 4; ++pair) {
        mover.parts(unit + 2 * pair * kStep, unit + (2 * pair + 1) * kStep, from + 16 + 32 * pair);
      }
      mover.move(unit + 8 * kStep, from, 16);
      break;
    case ElementType::q6_k:
      move_q6_k(mover, b, index, chunk);
      break;
    case ElementType::int4_g128:
      mover.parts(unit, unit + 2 * kStep, from);
      mover.parts(unit + kStep, unit + 3 * kStep, from + 32);
      mover.move(chunk + 4 * kStep + index * 4, from + 64, 4);
      break;
    default:
      break;
  }
}

template <typename Mover>
void move_row(const Mover& mover, ElementType format, std::size_t columns, std::size_t index) {
  if (format != ElementType::int8_row) {
    for (std::size_t b = 0; b < blocks_of(format, columns); ++b) {
      move_block(mover, format, b, index);
    }
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

std::optional<UnfitBlock> quantize_int4_row(std::span<const float> values, std::span<std::byte> row) {
  for (std::size_t group = 0; group < values.size() / kInt4Group; ++group) {
    FileInt4Group to{};
    if (auto unfit = quantize_int4(values.subspan(group * kInt4Group, kInt4Group),
                                   {to.quants, std::span(&to.scale, 1), std::span(&to.zero, 1)})) {
      unfit->value += group * kInt4Group;
      return unfit;
    }
    std::memcpy(row.data() + group * sizeof to, &to, sizeof to);
  }
  return std::nullopt;
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

void dequantize_whole(ElementType format, std::span<const std::byte> row, std::span<float> values) {
  if (const auto blocks = block_format_of(format)) {
    dequantize(*blocks, row, values);
    return;
  }
  for (std::size_t group = 0; group < values.size() / kInt4Group; ++group) {
    FileInt4Group from;
    std::memcpy(&from, row.data() + group * sizeof from, sizeof from);
    dequantize_int4({from.quants, std::span(&from.scale, 1), std::span(&from.zero, 1)},
                    values.subspan(group * kInt4Group, kInt4Group));
  }
}

// Random bytes, then scales that are numbers of the right size.
class RowDraw {
 public:
  RowDraw(ElementType format, double high, std::uint64_t seed) : format_(format), high_(high), seed_(seed) {}

  void operator()(std::span<std::byte> row, std::uint64_t index) const {
    std::uint64_t state = seed_ + index * 0x2545F4914F6CDD1DULL;
    for (std::size_t at = 0; at < row.size(); at += sizeof state) {
      const std::uint64_t word = splitmix(state += 0x9E3779B97F4A7C15ULL);
      std::memcpy(row.data() + at, &word, std::min(sizeof word, row.size() - at));
    }
    if (format_ == ElementType::int8_row) {
      const auto scale = static_cast<float>(high_ / 127 * share(state));
      std::memcpy(row.data() + row.size() - sizeof scale, &scale, sizeof scale);
      return;
    }
    const std::size_t bytes = file_block_of(format_).bytes;
    for (std::size_t at = 0; at < row.size(); at += bytes) {
      state = splitmix(state);
      draw_scales(row.data() + at, state);
    }
  }

 private:
  // From a half to one.
  static double share(std::uint64_t state) { return 0.5 + static_cast<double>(splitmix(state) >> 11U) * 0x1p-54; }
  static void set_half(std::byte* to, double value) {
    const std::uint16_t bits = half_from_float(static_cast<float>(value));
    std::memcpy(to, &bits, sizeof bits);
  }
  void draw_scales(std::byte* block, std::uint64_t state) const {
    const double one = share(state);
    const double other = share(state + 1);
    switch (format_) {
      case ElementType::q8_0:
        set_half(block, high_ / 127 * one);
        break;
      case ElementType::q4_0:
        set_half(block, high_ / 8 * one);
        break;
      case ElementType::q4_1:
        set_half(block, high_ / 7.5 * one);
        set_half(block + 2, -high_ * other);
        break;
      case ElementType::q4_k:
        set_half(block, high_ / (7.5 * 63) * one);
        set_half(block + 2, high_ / 63 * other);
        break;
      case ElementType::q6_k:
        set_half(block + 208, high_ / (128 * 32) * one);
        break;
      default:
        set_half(block + 64, high_ / 8 * one);
        block[66] &= std::byte{0x0F};
        block[67] = std::byte{0};
        break;
    }
  }

  ElementType format_;
  double high_;
  std::uint64_t seed_;
};

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

// Values as other types have them, in a format that the seed chooses: of any width, with a largest number up to three
// powers of two above the largest value.
std::vector<std::byte> draw_float16x(std::size_t count, Fill fill, double low, double high, std::uint64_t seed) {
  const auto head = static_cast<std::size_t>(layout_of(ElementType::float16x).head_bytes);
  const double largest = std::max({std::fabs(low), std::fabs(high), 0x1p-100});
  const std::uint64_t choice = splitmix(seed);
  Float16x format{static_cast<int>(4 + choice % 5), 0};
  format.bias = (1 << format.exponent_bits) - 2 - std::ilogb(largest) - static_cast<int>(choice / 5 % 3);
  format.bias = std::clamp(format.bias, format.least_bias(), format.most_bias());
  std::vector<std::byte> matrix(head + count * sizeof(std::uint16_t));
  put_float16x_header(format, matrix);
  const std::vector<std::byte> drawn = draw_elements(ElementType::float32, count, fill, low, high, seed);
  worker_pool().run(count, kElementsAtOnce, [&](std::size_t begin, std::size_t end) {
    std::vector<float> values(end - begin);
    std::memcpy(values.data(), drawn.data() + begin * sizeof(float), values.size() * sizeof(float));
    to_float16x(format, values, std::span(matrix).subspan(head + begin * sizeof(std::uint16_t)));
  });
  return matrix;
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
  const auto blocks = block_format_of(format);
  return blocks ? quantize(*blocks, values, row) : quantize_int4_row(values, row);
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
    dequantize_whole(format, row, values);
    return;
  }
  std::vector<float> filled(whole);
  dequantize_whole(format, row, filled);
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

std::vector<std::byte> draw_matrix(ElementType type, std::int64_t rows, std::int64_t columns, Fill fill, double low,
                                   double high, std::uint64_t seed) {
  if (!is_matrix_format(type) && fill == Fill::row_ramp) {
    const std::vector<std::byte> row = draw_elements(type, static_cast<std::size_t>(columns), fill, low, high, seed);
    std::vector<std::byte> bytes;
    bytes.reserve(row.size() * static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) {
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
    return bytes;
  }
  if (!is_matrix_format(type)) {
    return draw_elements(type, static_cast<std::size_t>(rows * columns), fill, low, high, seed);
  }
  if (type == ElementType::float16x) {
    return draw_float16x(static_cast<std::size_t>(rows * columns), fill, low, high, seed);
  }
  const MatrixLayout layout = layout_of(type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.bytes(rows, columns)));
  if (fill == Fill::none || fill == Fill::zero) {
    return bytes;
  }
  const auto group_bytes = static_cast<std::size_t>(layout.group_bytes(columns));
  const RowDraw draw(type, std::max(std::fabs(low), std::fabs(high)), seed);
  worker_pool().run(bytes.size() / group_bytes, 1, [&](std::size_t begin, std::size_t end) {
    std::vector<std::byte> row(file_row_bytes(type, columns));
    for (std::size_t group = begin; group < end; ++group) {
      const std::span<std::byte> to = std::span(bytes).subspan(group * group_bytes, group_bytes);
      for (std::size_t i = 0; i < kGroupRows && group * kGroupRows + i < static_cast<std::size_t>(rows); ++i) {
        draw(row, group * kGroupRows + i);
        pack_row(type, row, columns, static_cast<std::int64_t>(i), to);
      }
    }
  });
  return bytes;
}

}  // namespace pascaline
