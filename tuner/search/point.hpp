#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace pascaline {

/// A configuration as a search sees it: the index of each parameter's value.
using Point = std::vector<std::uint16_t>;

struct PointHash {
  [[nodiscard]] std::size_t operator()(const Point& point) const noexcept {
    std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (const std::uint16_t index : point) {
      hash = (hash ^ index) * 0xff51afd7ed558ccdULL;
      hash ^= hash >> 32U;
    }
    return hash;
  }
};

using PointSet = std::unordered_set<Point, PointHash>;

}  // namespace pascaline
