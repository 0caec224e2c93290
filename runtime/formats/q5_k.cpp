#include "runtime/formats/q5_k.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "runtime/formats/blocks.hpp"

namespace pascaline {
namespace {

struct BlockQ5K {
  blocks::Half scale;
  blocks::Half min_scale;
  std::array<std::uint8_t, 12> parts;                  // as in q4_k
  std::array<std::uint8_t, blocks::kLong / 8> high;    // bit p of byte i: the fifth bit of value i of part p
  std::array<std::uint8_t, blocks::kLong / 2> quants;  // lower four bits, as in q4_k
};
static_assert(sizeof(BlockQ5K) == 176);

void widen_q5_k(const BlockQ5K& block, float* values) {
  const float scale = block.scale.value();
  const float min_scale = block.min_scale.value();
  const blocks::Parts parts = blocks::unpack_parts(block.parts);
  for (std::size_t part = 0; part < blocks::kParts; ++part) {
    const float factor = scale * static_cast<float>(parts.scales[part]);
    const float min = min_scale * static_cast<float>(parts.mins[part]);
    const std::uint8_t* const quants = block.quants.data() + part / 2 * 32;
    const unsigned shift = part % 2 == 0 ? 0U : 4U;
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned low = (static_cast<unsigned>(quants[i]) >> shift) & 0x0FU;
      const unsigned high = (static_cast<unsigned>(block.high[i]) >> part) & 1U;
      values[part * 32 + i] = factor * static_cast<float>(low | high << 4U) - min;
    }
  }
}

}  // namespace

std::size_t q5_k_bytes(std::size_t values) noexcept { return values / blocks::kLong * sizeof(BlockQ5K); }

void dequantize_q5_k(std::span<const std::byte> bytes, std::span<float> values) {
  if (values.size() % blocks::kLong != 0 || bytes.size() != q5_k_bytes(values.size())) {
    throw Error(fmt::format("{} bytes are not {} values in blocks of q5_k", bytes.size(), values.size()));
  }
  for (std::size_t at = 0; at * sizeof(BlockQ5K) < bytes.size(); ++at) {
    BlockQ5K block;
    std::memcpy(&block, bytes.data() + at * sizeof block, sizeof block);
    widen_q5_k(block, values.data() + at * blocks::kLong);
  }
}

}  // namespace pascaline
