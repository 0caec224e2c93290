#include "runtime/formats/row_check.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace pascaline {
namespace {

constexpr std::string_view kNotFinite = "has a scale that is not finite";

// Where a block has its scales, and how many values it is for.
struct Scales {
  std::size_t values;
  std::size_t bytes;  // of the block
  std::size_t first;  // byte
  std::size_t count;
};

Scales scales_of(ElementType format) {
  switch (format) {
    case ElementType::q8_0:
      return {32, 34, 0, 1};
    case ElementType::q4_0:
      return {32, 18, 0, 1};
    case ElementType::q4_1:
      return {32, 20, 0, 2};
    case ElementType::q4_k:
      return {256, 144, 0, 2};
    case ElementType::q6_k:
      return {256, 210, 208, 1};
    default:
      return {128, 68, 64, 1};
  }
}

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
  const Scales scales = scales_of(format);
  if (row.size() % scales.bytes != 0) {
    return UnfitBlock{0, "is no whole number of blocks"};
  }
  for (std::size_t block = 0; block * scales.bytes < row.size(); ++block) {
    const std::byte* const bytes = row.data() + block * scales.bytes;
    for (std::size_t i = 0; i < scales.count; ++i) {
      if (!is_finite_half(bytes + scales.first + 2 * i)) {
        return UnfitBlock{block * scales.values, kNotFinite};
      }
    }
    if (format == ElementType::int4_g128 && (bytes[66] > std::byte{15} || bytes[67] != std::byte{0})) {
      return UnfitBlock{block * scales.values, "has a zero point beyond 15"};
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
