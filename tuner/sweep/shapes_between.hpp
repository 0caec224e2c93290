#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// A value between two others.
struct ValueBetween {
  std::int64_t value = 0;
  std::int64_t low = 0;  ///< those it was made of
  std::int64_t high = 0;
  friend bool operator==(const ValueBetween&, const ValueBetween&) = default;
};

/// The geometric middle of two positive values, rounded to a multiple of the largest power of two that both are
/// multiples of, as far as that is no more than an eighth of it. Nothing where no whole number lies between.
[[nodiscard]] std::optional<std::int64_t> middle_of(std::int64_t low, std::int64_t high);

/// Values between those given: the middle of the widest gap (by ratio) first, then that of the widest of what is left,
/// until none is wider than from 2 to 3 or there are `most`.
[[nodiscard]] std::vector<ValueBetween> values_between(std::vector<std::int64_t> values, std::size_t most);

/// Values of one symbol or dimension that are looked for between those of a plan.
inline constexpr std::size_t kMaxBetween = 16;

/// Shapes between problems of the space's kernel, of others `problems` may be, too: problems that differ only in
/// dimensions that the space says vary from call to call, where all of these grow from one to the other. Such that are
/// reached by the dispatcher's nearest, and no problem already. With 0 calls each, and `between`.
[[nodiscard]] std::vector<SweepProblem> shapes_between(const Space& space, const std::vector<SweepProblem>& problems);

/// Adds a shape in between to the problems unless it is there, does not fit the space, or no problem is such that the
/// one's winner could serve the other.
void add_between(const Space& space, Problem problem, std::string label, std::vector<SweepProblem>& problems);

}  // namespace pascaline
