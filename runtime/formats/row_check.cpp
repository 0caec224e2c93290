#include "runtime/formats/row_check.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/formats/blocks.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kNotFinite = "has a scale that is not finite";

bool is_finite_half(const std::byte* at) noexcept {
  constexpr std::uint16_t kExponent = 0x7C00;
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return (bits & kExponent) != kExponent;
}

}  // namespace

std::optional<UnfitBlock> check_row(ElementType format, std::span<const std::byte> row) {
  if (format == ElementType::int8_row) {
    float scale = 0;
    if (row.size() <= sizeof scale) {
      return UnfitBlock{0, "is too short"};
    }
    std::memcpy(&scale, row.data() + row.size() - sizeof scale, sizeof scale);
    return std::isfinite(scale) ? std::nullopt : std::optional(UnfitBlock{0, kNotFinite});
  }
  const FormatTraits::Block& block = traits_of(format).block;
  if (block.bytes == 0 || row.size() % block.bytes != 0) {
    return UnfitBlock{0, "is no whole number of blocks"};
  }
  for (std::size_t i = 0; i * block.bytes < row.size(); ++i) {
    const std::byte* const bytes = row.data() + i * block.bytes;
    for (std::size_t scale = 0; scale < block.scales(); ++scale) {
      if (!is_finite_half(bytes + block.scales_at + 2 * scale)) {
        return UnfitBlock{i * block.values, kNotFinite};
      }
    }
    if (block.exponent_reach > 0 && bytes[block.scales_at] > std::byte{blocks::kMaxExponent}) {
      return UnfitBlock{i * block.values, "has a scale beyond 2^64"};
    }
    if (format == ElementType::int4_g128 && (bytes[66] > std::byte{15} || bytes[67] != std::byte{0})) {
      return UnfitBlock{i * block.values, "has a zero point beyond 15"};
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
