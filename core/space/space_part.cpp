#include "core/space/space_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pascaline {

std::size_t SpacePart::index_of(std::span<const std::uint16_t> indices, int count) noexcept {
  // FNV-1a, and the finish of MurmurHash3, as its low bits follow the last index too closely.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint16_t index_of_value : indices) {
    hash = (hash ^ index_of_value) * 0x100000001b3ULL;
  }
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  hash ^= hash >> 33U;
  return static_cast<std::size_t>(hash % static_cast<std::uint64_t>(count)) + 1;
}

bool SpacePart::holds(std::span<const std::uint16_t> indices) const noexcept {
  return is_whole() || index_of(indices, count) == static_cast<std::size_t>(index);
}

int SpacePart::share_of(int trials) const noexcept {
  return std::max(1, trials / count + (index <= trials % count ? 1 : 0));
}

int SpacePart::share_of(int trials, std::span<const std::uint64_t> sizes) const {
  const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  const auto wanted = std::min<std::uint64_t>(all, static_cast<std::uint64_t>(trials));
  // Shares of the parts before this one and of those up to it, rounded down: what lies between is this one's, never
  // more than it has.
  const auto until = [&](int last) {
    const std::uint64_t before = std::accumulate(sizes.begin(), sizes.begin() + last, std::uint64_t{0});
    return all == 0 ? 0 : before * wanted / all;
  };
  return static_cast<int>(until(index) - until(index - 1));
}

std::string SpacePart::text() const { return fmt::format("{}/{}", index, count); }

}  // namespace pascaline
