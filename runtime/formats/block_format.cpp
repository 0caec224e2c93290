#include "runtime/formats/block_format.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "runtime/formats/blocks.hpp"
#include "runtime/formats/int4_groups.hpp"

// Compiled without contraction of products and sums (the standard's mode of C++), as ggml's reference rounds each.
namespace pascaline {
namespace {

using namespace blocks;

void widen_block(const Block<ElementType::q8_0>& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kShort; ++i) {
    values[i] = scale * static_cast<float>(block.quants[i]);
  }
}

void widen_block(const Block<ElementType::q4_0>& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kShort / 2; ++i) {
    values[i] = scale * static_cast<float>(static_cast<int>(block.quants[i] & 0x0FU) - 8);
    values[kShort / 2 + i] = scale * static_cast<float>(static_cast<int>(block.quants[i] >> 4U) - 8);
  }
}

void widen_block(const Block<ElementType::q4_1>& block, float* values) {
  const float scale = block.scale.value();
  const float min = block.min.value();
  for (std::size_t i = 0; i < kShort / 2; ++i) {
    values[i] = scale * static_cast<float>(block.quants[i] & 0x0FU) + min;
    values[kShort / 2 + i] = scale * static_cast<float>(block.quants[i] >> 4U) + min;
  }
}

void widen_block(const Block<ElementType::q5_0>& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kShort; ++i) {
    const unsigned low = (static_cast<unsigned>(block.quants[i % 16]) >> (i / 16 * 4)) & 0x0FU;
    const unsigned high = (static_cast<unsigned>(block.high[i / 8]) >> (i % 8)) & 1U;
    values[i] = scale * static_cast<float>(static_cast<int>(low | high << 4U) - 16);
  }
}

void widen_block(const Block<ElementType::q4_k>& block, float* values) {
  const float scale = block.scale.value();
  const float min_scale = block.min_scale.value();
  const Parts parts = unpack_parts(block.parts);
  for (std::size_t part = 0; part < kParts; ++part) {
    const float factor = scale * static_cast<float>(parts.scales[part]);
    const float min = min_scale * static_cast<float>(parts.mins[part]);
    const std::uint8_t* quants = block.quants.data() + part / 2 * 32;
    const unsigned shift = part % 2 == 0 ? 0U : 4U;
    for (std::size_t i = 0; i < 32; ++i) {
      values[part * 32 + i] = factor * static_cast<float>((quants[i] >> shift) & 0x0FU) - min;
    }
  }
}

void widen_block(const Block<ElementType::q6_k>& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kLong; ++i) {
    const SixBits bits = six_bits_of(i);
    const unsigned low = (static_cast<unsigned>(block.low[bits.low_byte]) >> bits.low_shift) & 0x0FU;
    const unsigned high = (static_cast<unsigned>(block.high[bits.high_byte]) >> bits.high_shift) & 0x03U;
    const float factor = scale * static_cast<float>(block.scales[i / 16]);
    values[i] = factor * static_cast<float>(static_cast<int>(low | high << 4U) - 32);
  }
}

void widen_block(const Block<ElementType::int4_g128>& block, float* values) {
  Block<ElementType::int4_g128> group = block;
  std::uint16_t scale = 0;
  std::memcpy(&scale, group.scale.bytes.data(), sizeof scale);
  dequantize_int4({group.quants, std::span(&scale, 1), std::span(&group.zero, 1)}, {values, kInt4Group});
}

}  // namespace

void blocks::throw_no_blocks(ElementType format) {
  throw Error(fmt::format("{} has no blocks with scales", name_of(format)));
}

void blocks::require_whole_blocks(ElementType format, std::size_t bytes, std::size_t values) {
  const FormatTraits::Block& block = traits_of(format).block;
  if (block.bytes == 0 || bytes % block.bytes != 0 || values != bytes / block.bytes * block.values) {
    throw Error(fmt::format("{} bytes of {} are not blocks of {} values", bytes, name_of(format), values));
  }
}

void dequantize(ElementType format, std::span<const std::byte> blocks, std::span<float> values) {
  require_whole_blocks(format, blocks.size(), values.size());
  const std::size_t block_values = traits_of(format).block.values;
  with_blocks(format, [&]<ElementType known> {
    for (std::size_t at = 0; at * sizeof(Block<known>) < blocks.size(); ++at) {
      Block<known> block;
      std::memcpy(&block, blocks.data() + at * sizeof block, sizeof block);
      widen_block(block, values.data() + at * block_values);
    }
  });
}

}  // namespace pascaline
