#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pascaline {

/// Value indices of some parameters together: the combinations of them that may occur.
struct TupleList {
  std::vector<std::size_t> axes;       ///< which parameters, ascending
  std::vector<std::uint16_t> indices;  ///< tuple by tuple
  [[nodiscard]] std::size_t size() const noexcept { return axes.empty() ? 0 : indices.size() / axes.size(); }
  [[nodiscard]] std::span<const std::uint16_t> at(std::size_t tuple) const {
    return std::span(indices).subspan(tuple * axes.size(), axes.size());
  }
};

}  // namespace pascaline
