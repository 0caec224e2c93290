#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/space/space.hpp"
#include "core/util/stop_check.hpp"

namespace pascaline {

/// The integer an expression sees for a value; 0 for text and reals.
[[nodiscard]] std::int64_t integer_of(const Value& value) noexcept;

/// Whether launch geometry and shared memory fit the space's device, for the parameters' values in `slots`.
[[nodiscard]] bool launch_within_limits(const BoundSpace& space, std::span<const std::int64_t> slots);

/// Walks the valid configurations of a bound space in lexicographic order of value indices. A constraint is tested
/// as soon as the last parameter it needs has a value, so that whole branches fall at once.
class Enumerator {
 public:
  /// `space` must outlive it. Every member may throw what `check` throws: where few configurations are valid, one of
  /// them may be minutes away.
  explicit Enumerator(const BoundSpace& space, StopCheck check = {});

  /// Calls `visit` with the value index of every parameter; stops when it returns false. Returns the number visited.
  std::uint64_t for_each(const std::function<bool(std::span<const std::uint16_t>)>& visit);

  /// Whether these indices are a valid configuration.
  [[nodiscard]] bool valid(std::span<const std::uint16_t> indices);

  /// Candidates looked at by the last `for_each`: complete and partial ones whose constraints were evaluated.
  [[nodiscard]] std::uint64_t considered() const noexcept { return considered_; }

 private:
  [[nodiscard]] bool holds_at(std::size_t depth);

  const BoundSpace* space_;
  std::vector<std::int64_t> slots_;
  std::vector<std::int64_t> asked_;  ///< slots of `valid`: apart, so that a visitor may ask while `for_each` runs
  std::vector<std::vector<const Expression*>> checks_;  ///< by the depth at which they are decided; [0]: no parameter
  std::uint64_t considered_ = 0;
  CheckedSteps steps_;
};

/// The first of the constraints that speak of parameters alone that a configuration breaks; nothing if it meets all.
[[nodiscard]] std::optional<std::size_t> broken_by_parameters(const Space& space,
                                                              std::span<const std::uint16_t> indices);

/// Whether any configuration meets the constraints that speak of parameters alone.
[[nodiscard]] bool any_valid_by_parameters(const Space& space);

}  // namespace pascaline
