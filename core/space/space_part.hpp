#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace pascaline {

/// One of several parts of a search space, which share no configuration and are the space together: for several
/// machines to search one problem. A configuration's part follows from the indices of its values alone, so that every
/// machine with the same space divides it in the same way, and each part is a sample of all of it.
struct SpacePart {
  int index = 1;  ///< from 1
  int count = 1;  ///< 1: the whole space

  [[nodiscard]] bool is_whole() const noexcept { return count == 1; }
  /// Whether a configuration lies in it, given by the index of each parameter's value, in the space's order.
  [[nodiscard]] bool holds(std::span<const std::uint16_t> indices) const noexcept;
  /// Of so many trials of the whole space those of this part, one at least; the parts' add up to `trials` where each
  /// has one.
  [[nodiscard]] int share_of(int trials) const noexcept;
  /// "1/2"
  [[nodiscard]] std::string text() const;
  friend bool operator==(const SpacePart&, const SpacePart&) = default;
};

}  // namespace pascaline
