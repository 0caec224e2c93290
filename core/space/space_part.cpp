#include "core/space/space_part.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pascaline {

bool SpacePart::holds(std::span<const std::uint16_t> indices) const noexcept {
  if (is_whole()) {
    return true;
  }
  // FNV-1a, and the finish of MurmurHash3, as its low bits follow the last index too closely.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint16_t index_of_value : indices) {
    hash = (hash ^ index_of_value) * 0x100000001b3ULL;
  }
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  hash ^= hash >> 33U;
  return hash % static_cast<std::uint64_t>(count) == static_cast<std::uint64_t>(index - 1);
}

int SpacePart::share_of(int trials) const noexcept {
  return std::max(1, trials / count + (index <= trials % count ? 1 : 0));
}

std::string SpacePart::text() const { return fmt::format("{}/{}", index, count); }

}  // namespace pascaline
