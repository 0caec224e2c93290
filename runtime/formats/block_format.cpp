#include "runtime/formats/block_format.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "runtime/formats/blocks.hpp"

// Compiled without contraction of products and sums (the standard's mode of C++), as ggml's reference rounds each.
namespace pascaline {
namespace {

using namespace blocks;

constexpr std::array<BlockFormatInfo, 5> kFormats{{
    {BlockFormat::q8_0, "q8_0", kShort, sizeof(BlockQ80)},
    {BlockFormat::q4_0, "q4_0", kShort, sizeof(BlockQ40)},
    {BlockFormat::q4_1, "q4_1", kShort, sizeof(BlockQ41)},
    {BlockFormat::q4_k, "q4_k", kLong, sizeof(BlockQ4K)},
    {BlockFormat::q6_k, "q6_k", kLong, sizeof(BlockQ6K)},
}};

void widen_block(const BlockQ80& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kShort; ++i) {
    values[i] = scale * static_cast<float>(block.quants[i]);
  }
}

void widen_block(const BlockQ40& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kShort / 2; ++i) {
    values[i] = scale * static_cast<float>(static_cast<int>(block.quants[i] & 0x0FU) - 8);
    values[kShort / 2 + i] = scale * static_cast<float>(static_cast<int>(block.quants[i] >> 4U) - 8);
  }
}

void widen_block(const BlockQ41& block, float* values) {
  const float scale = block.scale.value();
  const float min = block.min.value();
  for (std::size_t i = 0; i < kShort / 2; ++i) {
    values[i] = scale * static_cast<float>(block.quants[i] & 0x0FU) + min;
    values[kShort / 2 + i] = scale * static_cast<float>(block.quants[i] >> 4U) + min;
  }
}

void widen_block(const BlockQ4K& block, float* values) {
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

void widen_block(const BlockQ6K& block, float* values) {
  const float scale = block.scale.value();
  for (std::size_t i = 0; i < kLong; ++i) {
    const SixBits bits = six_bits_of(i);
    const unsigned low = (static_cast<unsigned>(block.low[bits.low_byte]) >> bits.low_shift) & 0x0FU;
    const unsigned high = (static_cast<unsigned>(block.high[bits.high_byte]) >> bits.high_shift) & 0x03U;
    const float factor = scale * static_cast<float>(block.scales[i / 16]);
    values[i] = factor * static_cast<float>(static_cast<int>(low | high << 4U) - 32);
  }
}

template <typename Block, std::size_t kValues>
void widen_all(std::span<const std::byte> blocks, std::span<float> values) {
  for (std::size_t at = 0; at * sizeof(Block) < blocks.size(); ++at) {
    Block block;
    std::memcpy(&block, blocks.data() + at * sizeof(Block), sizeof block);
    widen_block(block, values.data() + at * kValues);
  }
}

}  // namespace

std::span<const BlockFormatInfo> block_formats() noexcept { return kFormats; }

const BlockFormatInfo& info_of(BlockFormat format) noexcept { return kFormats[static_cast<std::size_t>(format)]; }

void blocks::require_whole_blocks(BlockFormat format, std::size_t bytes, std::size_t values) {
  const BlockFormatInfo& info = info_of(format);
  if (bytes % info.block_bytes != 0 || values != bytes / info.block_bytes * static_cast<std::size_t>(info.values)) {
    throw Error(fmt::format("{} bytes of {} are not blocks of {} values", bytes, info.name, values));
  }
}

void dequantize(BlockFormat format, std::span<const std::byte> blocks, std::span<float> values) {
  require_whole_blocks(format, blocks.size(), values.size());
  with_block(format, [&]<typename Block, std::size_t kValues> { widen_all<Block, kValues>(blocks, values); });
}

}  // namespace pascaline
