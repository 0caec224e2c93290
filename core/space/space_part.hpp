#pragma once

#include <cstddef>
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
  /// The part of `count`, from 1, that a configuration lies in.
  [[nodiscard]] static std::size_t index_of(std::span<const std::uint16_t> indices, int count) noexcept;
  /// Of so many trials of the whole space those of this part, one at least; the parts' add up to `trials` where each
  /// has one.
  [[nodiscard]] int share_of(int trials) const noexcept;
  /// The same where it is known how many configurations each part has, `count` numbers: in proportion to them, and all
  /// of a part where the whole space has no more than `trials`. The parts' add up to no more than `trials` and, if
  /// there are so many configurations, to no less.
  [[nodiscard]] int share_of(int trials, std::span<const std::uint64_t> sizes) const;
  /// "1/2"
  [[nodiscard]] std::string text() const;
  friend bool operator==(const SpacePart&, const SpacePart&) = default;
};

}  // namespace pascaline
