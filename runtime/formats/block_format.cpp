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

void widen_indices(const std::uint8_t* quants, float scale, const std::array<std::int8_t, 16>& table, float* values) {
  for (std::size_t i = 0; i < kShort / 2; ++i) {
    values[i] = scale * static_cast<float>(table[quants[i] & 0x0FU]);
    values[kShort / 2 + i] = scale * static_cast<float>(table[quants[i] >> 4U]);
  }
}

void widen_block(const Block<ElementType::iq4_nl>& block, float* values) {
  widen_indices(block.quants.data(), block.scale.value(), kNormalTable, values);
}

void widen_block(const Block<ElementType::mxfp4>& block, float* values) {
  widen_indices(block.quants.data(), scale_of_exponent(block.exponent), kFloatTable, values);
}

void widen_block(const Block<ElementType::iq4_xs>& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t part = 0; part < kParts; ++part) {
    widen_indices(block.quants.data() + part * kShort / 2, scale * static_cast<float>(part_scale_of(block, part)),
                  kNormalTable, values + part * kShort);
  }
}

// Value i of a short block with five bits.
template <typename FiveBits>
int five_bits_of(const FiveBits& block, std::size_t i) {
  const unsigned low = (static_cast<unsigned>(block.quants[i % 16]) >> (i / 16 * 4)) & 0x0FU;
  const unsigned high = (static_cast<unsigned>(block.high[i / 8]) >> (i % 8)) & 1U;
  return static_cast<int>(low | high << 4U);
}

void widen_block(const Block<ElementType::q5_0>& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kShort; ++i) {
    values[i] = scale * static_cast<float>(five_bits_of(block, i) - 16);
  }
}

void widen_block(const Block<ElementType::q5_1>& block, float* values) {
  const float scale = block.scale.value();
  const float min = block.min.value();
  for (std::size_t i = 0; i < kShort; ++i) {
    values[i] = scale * static_cast<float>(five_bits_of(block, i)) + min;
  }
}

// Widens a block whose eight parts have scales and minima; `quant` gives the integer of value `i` of a part, from its
// four lower bits.
template <typename InParts, typename Quant>
void widen_parts(const InParts& block, float* values, const Quant& quant) {
  const float scale = block.scale.value();
  const float min_scale = block.min_scale.value();
  const Parts parts = unpack_parts(block.parts);
  for (std::size_t part = 0; part < kParts; ++part) {
    const float factor = scale * static_cast<float>(parts.scales[part]);
    const float min = min_scale * static_cast<float>(parts.mins[part]);
    const std::uint8_t* quants = block.quants.data() + part / 2 * 32;
    const unsigned shift = part % 2 == 0 ? 0U : 4U;
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned low = (static_cast<unsigned>(quants[i]) >> shift) & 0x0FU;
      values[part * 32 + i] = factor * static_cast<float>(quant(low, part, i)) - min;
    }
  }
}

void widen_block(const Block<ElementType::q4_k>& block, float* values) {
  widen_parts(block, values, [](unsigned low, std::size_t /*part*/, std::size_t /*i*/) { return low; });
}

void widen_block(const Block<ElementType::q5_k>& block, float* values) {
  widen_parts(block, values, [&](unsigned low, std::size_t part, std::size_t i) {
    return low | (static_cast<unsigned>(block.high[i]) >> part & 1U) << 4U;
  });
}

void widen_block(const Block<ElementType::q2_k>& block, float* values) {
  const float scale = block.scale.value();
  const float min_scale = block.min_scale.value();
  for (std::size_t i = 0; i < kLong; ++i) {
    const SixBits bits = six_bits_of(i);
    const std::uint8_t of_group = block.scales[i / 16];
    const float factor = scale * static_cast<float>(of_group & 0x0FU);
    const float min = min_scale * static_cast<float>(of_group >> 4U);
    values[i] = factor * static_cast<float>(block.quants[bits.high_byte] >> bits.high_shift & 3U) - min;
  }
}

void widen_block(const Block<ElementType::q3_k>& block, float* values) {
  const float scale = block.scale.value();
  const std::array<std::int8_t, kGroups> scales = unpack_scales(block.scales);
  for (std::size_t i = 0; i < kLong; ++i) {
    const SixBits bits = six_bits_of(i);
    const unsigned low = (static_cast<unsigned>(block.low[bits.high_byte]) >> bits.high_shift) & 0x03U;
    const unsigned high = (static_cast<unsigned>(block.high[i % 32]) >> (i / 32)) & 1U;
    values[i] = scale * static_cast<float>(scales[i / 16]) * static_cast<float>(static_cast<int>(low | high << 2U) - 4);
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
