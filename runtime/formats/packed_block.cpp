#include "runtime/formats/packed_block.hpp"

#include <cstring>

#include "core/elements.hpp"
#include "runtime/formats/blocks.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kUnitBytes = 16;
constexpr std::int64_t kUnitDistance = 32 * kUnitBytes;  // from one unit of a row to its next

float half_at(const std::byte* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return float_from_half(bits);
}

std::uint8_t byte_at(const std::byte* from) { return std::to_integer<std::uint8_t>(*from); }

void read_bytes(PackedBlock& block, const std::byte* units) {
  std::memcpy(block.values.data(), units, kUnitBytes);
  std::memcpy(block.values.data() + kUnitBytes, units + kUnitDistance, kUnitBytes);
}

void read_nibbles(PackedBlock& block, const std::byte* unit, int offset) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(kUnitBytes); ++i) {
    const int both = byte_at(unit + i);
    block.values[i] = static_cast<std::int8_t>((both & 0x0F) - offset);
    block.values[kUnitBytes + i] = static_cast<std::int8_t>((both >> 4) - offset);
  }
}

void set_scale(PackedBlock& block, float scale, float min = 0) {
  block.scales = {scale, scale};
  block.min = min;
}

void read_q4_k(PackedBlock& block, const std::byte* chunk, std::int64_t index, std::int64_t inside) {
  read_nibbles(block, chunk + inside * kUnitDistance + index * kUnitBytes, 0);
  const std::byte* header = chunk + 8 * kUnitDistance + index * kUnitBytes;
  std::array<std::uint8_t, 12> packed{};
  std::memcpy(packed.data(), header + 4, packed.size());
  const blocks::Parts parts = blocks::unpack_parts(packed);
  const auto part = static_cast<std::size_t>(inside);
  set_scale(block, half_at(header) * static_cast<float>(parts.scales[part]),
            half_at(header + 2) * static_cast<float>(parts.mins[part]));
}

void read_q6_k(PackedBlock& block, const std::byte* chunk, std::int64_t index, std::int64_t inside) {
  read_nibbles(block, chunk + inside * kUnitDistance + index * kUnitBytes, 0);
  const std::byte* high = chunk + (8 + inside / 2) * kUnitDistance + index * kUnitBytes + inside % 2 * 8;
  for (std::size_t i = 0; i < block.values.size(); ++i) {
    const int upper = byte_at(high + i % 8) >> (2 * (i / 8)) & 3;
    block.values[i] = static_cast<std::int8_t>((block.values[i] | upper << 4) - 32);
  }
  const std::byte* scales = chunk + 12 * kUnitDistance + index * kUnitBytes + inside * 2;
  const float scale = half_at(chunk + 13 * kUnitDistance + index * 2);
  block.scales = {scale * static_cast<float>(static_cast<std::int8_t>(byte_at(scales))),
                  scale * static_cast<float>(static_cast<std::int8_t>(byte_at(scales + 1)))};
  block.min = 0;
}

}  // namespace

PackedBlock read_packed_block(ElementType format, const std::byte* group, std::int64_t index, std::int64_t block) {
  const MatrixLayout layout = layout_of(format);
  const std::int64_t in_chunk = layout.chunk_columns / 32;
  const std::byte* chunk = group + block / in_chunk * layout.chunk_bytes;
  const std::int64_t inside = block % in_chunk;
  const std::byte* rows = chunk + index * kUnitBytes;
  PackedBlock result{};
  switch (format) {
    case ElementType::int8_row:
      read_bytes(result, rows + 2 * inside * kUnitDistance);
      set_scale(result, 1);
      break;
    case ElementType::q8_0:
      read_bytes(result, rows + 2 * inside * kUnitDistance);
      set_scale(result, half_at(chunk + 4 * kUnitDistance + index * 4 + 2 * inside));
      break;
    case ElementType::q4_0:
      read_nibbles(result, rows + inside * kUnitDistance, 8);
      set_scale(result, half_at(chunk + 2 * kUnitDistance + index * 4 + 2 * inside));
      break;
    case ElementType::q4_1: {
      read_nibbles(result, rows + inside * kUnitDistance, 0);
      const std::byte* pair = chunk + 2 * kUnitDistance + index * 8 + 4 * inside;
      set_scale(result, half_at(pair), -half_at(pair + 2));
      break;
    }
    case ElementType::q4_k:
      read_q4_k(result, chunk, index, inside);
      break;
    case ElementType::q6_k:
      read_q6_k(result, chunk, index, inside);
      break;
    default: {
      read_nibbles(result, rows + inside * kUnitDistance, 0);
      const std::byte* header = chunk + 4 * kUnitDistance + index * 4;
      const float scale = half_at(header);
      set_scale(result, scale, scale * static_cast<float>(byte_at(header + 2)));
      break;
    }
  }
  return result;
}

float packed_row_scale(ElementType format, const std::byte* group, std::int64_t columns, std::int64_t index) {
  if (format != ElementType::int8_row) {
    return 1;
  }
  const MatrixLayout layout = layout_of(format);
  float scale = 0;
  std::memcpy(&scale, group + layout.group_bytes(columns) - layout.tail_bytes + index * 4, sizeof scale);
  return scale;
}

}  // namespace pascaline
