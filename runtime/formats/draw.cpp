#include "runtime/formats/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "kernel_templates/inputs/draw.cuh"
#include "runtime/formats/blocks.hpp"
#include "runtime/formats/float16x.hpp"
#include "runtime/formats/packed_matrix.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kElementsOfSlice = 1 << 16;
constexpr std::size_t kChunksOfSlice = 1 << 11;

template <drawing::Type number, ElementType type>
constexpr bool kIsNumberOf = static_cast<int>(number) == static_cast<int>(type);
static_assert(kIsNumberOf<drawing::kFloat32, ElementType::float32> &&
              kIsNumberOf<drawing::kFloat16, ElementType::float16> &&
              kIsNumberOf<drawing::kBfloat16, ElementType::bfloat16> &&
              kIsNumberOf<drawing::kFloat64, ElementType::float64> &&
              kIsNumberOf<drawing::kInt32, ElementType::int32> && kIsNumberOf<drawing::kInt64, ElementType::int64> &&
              kIsNumberOf<drawing::kUint32, ElementType::uint32> && kIsNumberOf<drawing::kInt8, ElementType::int8> &&
              kIsNumberOf<drawing::kUint8, ElementType::uint8> && kIsNumberOf<drawing::kInt16, ElementType::int16> &&
              kIsNumberOf<drawing::kUint16, ElementType::uint16> &&
              kIsNumberOf<drawing::kUint64, ElementType::uint64> && kIsNumberOf<drawing::kBool, ElementType::boolean> &&
              kIsNumberOf<drawing::kFloat16x, ElementType::float16x>);
static_assert(drawing::kHeadBytes == kElementTypes[drawing::kFloat16x].layout.head_bytes);
static_assert(drawing::kRowsOfGroup == layouts::kRows);

struct NarrowOnProcessor {
  static std::uint16_t float16_bits(float value) noexcept { return half_from_float(value); }
  static std::uint16_t bfloat16_bits(float value) noexcept { return bfloat_from_float(value); }
};

drawing::Values values_of(const DrawnMatrix& of) {
  using enum Fill;
  drawing::Values values{};
  values.kind = of.fill == uniform                       ? drawing::kUniform
                : of.fill == normal                      ? drawing::kNormal
                : of.fill == ramp || of.fill == row_ramp ? drawing::kRamp
                : of.fill == constant                    ? drawing::kRamp
                : of.fill == sorted                      ? drawing::kSorted
                : of.fill == permutation                 ? drawing::kPermutation
                                                         : drawing::kZeros;
  values.low = of.low;
  values.span = of.fill == normal ? of.high : of.fill == constant ? 0 : of.high - of.low;
  values.seed = of.seed;
  values.row = static_cast<std::uint64_t>(of.fill == row_ramp ? of.columns : of.rows * of.columns);
  return values;
}

// Chosen by the seed: any width, with a largest number up to three powers of two above the largest value.
Float16x drawn_format(const DrawnMatrix& of) {
  const double largest = std::max({std::fabs(of.low), std::fabs(of.high), 0x1p-100});
  const std::uint64_t choice = splitmix(of.seed);
  Float16x format{static_cast<int>(4 + choice % 5), 0};
  format.bias = (1 << format.exponent_bits) - 2 - std::ilogb(largest) - static_cast<int>(choice / 5 % 3);
  format.bias = std::clamp(format.bias, format.least_bias(), format.most_bias());
  return format;
}

drawing::Packed packed_of(const DrawnMatrix& of) {
  const FormatTraits& traits = traits_of(of.type);
  const PackedPieces where = packed_pieces(of.type);
  const bool zeros = of.fill == Fill::none || of.fill == Fill::zero;
  const auto place_columns = static_cast<std::int64_t>(traits.block.values);
  const double largest = std::max(std::fabs(of.low), std::fabs(of.high));
  drawing::Packed packed{};
  packed.seed = of.seed;
  packed.rows = static_cast<std::uint64_t>(zeros ? 0 : of.rows);
  packed.chunks = static_cast<std::uint64_t>(traits.layout.chunks(of.columns));
  packed.places = static_cast<std::uint64_t>((of.columns + place_columns - 1) / place_columns);
  packed.group_bytes = static_cast<std::uint64_t>(traits.layout.group_bytes(of.columns));
  packed.chunk_bytes = static_cast<int>(traits.layout.chunk_bytes);
  packed.places_per_chunk = static_cast<int>(traits.layout.chunk_columns / place_columns);
  packed.bytes_per_place = place_columns == 1 ? 1 : 16;
  if (where.pieces.size() > drawing::Packed::kMaxPieces) {
    throw Error(fmt::format("a chunk of {} has {} pieces; raise drawing::Packed::kMaxPieces", traits.name,
                            where.pieces.size()));
  }
  for (const PackedPiece& piece : where.pieces) {
    packed.piece[packed.pieces++] = {static_cast<int>(piece.at), static_cast<int>(piece.row_step),
                                     static_cast<int>(piece.bytes), static_cast<int>(piece.place)};
  }
  packed.scales = static_cast<int>(traits.block.scales());
  packed.most_exponent = -1;
  if (traits.block.exponent_reach > 0) {
    packed.most_exponent =
        largest > 0 ? std::clamp(std::ilogb(largest / traits.block.exponent_reach) + 128, 0, int{blocks::kMaxExponent})
                    : 0;
  }
  packed.scale_at = static_cast<int>(where.scales.at);
  packed.scale_row_step = static_cast<int>(where.scales.row_step);
  packed.scale_block_step = static_cast<int>(where.scale_block_step);
  for (std::size_t i = 0; i < traits.block.scales(); ++i) {
    packed.largest[i] = largest / traits.block.reach[i];
  }
  packed.kept_bits = of.type == ElementType::int4_g128 ? 0x0F : -1;  // a zero point of four bits
  packed.largest_tail = of.type == ElementType::int8_row ? largest / 127 : 0;
  return packed;
}

}  // namespace

std::size_t bytes_of(const DrawnMatrix& matrix) {
  return is_matrix_format(matrix.type)
             ? static_cast<std::size_t>(layout_of(matrix.type).bytes(matrix.rows, matrix.columns))
             : bytes_of(matrix.type, static_cast<std::size_t>(matrix.rows * matrix.columns));
}

drawing::Plan plan_of(const DrawnMatrix& matrix) {
  drawing::Plan plan{};
  if (is_packed_format(matrix.type)) {
    const std::int64_t groups = (matrix.rows + layouts::kRows - 1) / layouts::kRows;
    plan.type = drawing::kPacked;
    plan.packed = packed_of(matrix);
    plan.units = static_cast<std::uint64_t>(groups * layouts::kRows) * plan.packed.chunks;
    return plan;
  }
  plan.type = static_cast<drawing::Type>(matrix.type);
  plan.units = static_cast<std::uint64_t>(matrix.rows * matrix.columns);
  plan.values = values_of(matrix);
  if (matrix.type == ElementType::float16x) {
    const Float16x format = drawn_format(matrix);
    plan.code = float16x_code(format);
    plan.float16x_header[0] = format.exponent_bits;
    plan.float16x_header[1] = format.bias;
  }
  return plan;
}

void draw_into(std::span<std::byte> to, const DrawnMatrix& matrix) {
  if (to.size() != bytes_of(matrix)) {
    throw Error(fmt::format("{} bytes do not hold {} rows of {} columns in {}", to.size(), matrix.rows, matrix.columns,
                            name_of(matrix.type)));
  }
  const drawing::Plan plan = plan_of(matrix);
  const auto units = static_cast<std::size_t>(plan.units);
  if (units == 0 && !to.empty()) {
    drawing::put_units<NarrowOnProcessor>(plan, to.data(), 0, 0, 1);  // a header
  }
  const std::size_t slice = plan.type == drawing::kPacked ? kChunksOfSlice : kElementsOfSlice;
  worker_pool().run(units, slice, [&](std::size_t begin, std::size_t end) {
    drawing::put_units<NarrowOnProcessor>(plan, to.data(), begin, end, 1);
  });
}

std::vector<std::byte> draw_matrix(const DrawnMatrix& matrix) {
  std::vector<std::byte> bytes(bytes_of(matrix));
  draw_into(bytes, matrix);
  return bytes;
}

std::vector<std::byte> draw_matrix(ElementType type, std::int64_t rows, std::int64_t columns, Fill fill, double low,
                                   double high, std::uint64_t seed) {
  return draw_matrix({type, rows, columns, fill, low, high, seed});
}

std::vector<std::byte> draw_elements(ElementType type, std::size_t count, Fill fill, double low, double high,
                                     std::uint64_t seed) {
  if (is_matrix_format(type)) {
    throw Error("only elements by themselves can be drawn one by one");
  }
  return draw_matrix(type, 1, static_cast<std::int64_t>(count), fill, low, high, seed);
}

std::uint64_t splitmix(std::uint64_t state) noexcept { return drawing::splitmix(state); }

}  // namespace pascaline
