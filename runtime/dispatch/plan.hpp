#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/config.hpp"
#include "core/problem.hpp"
#include "core/trial.hpp"
#include "db/store.hpp"

namespace pascaline {

/// Where the configuration of a plan comes from.
enum class Provenance : std::uint8_t {
  exact,           ///< the winner of this very problem on this kind of device
  nearest,         ///< the winner of the tuned problem nearest to it
  default_config,  ///< the space's default
  fallback,        ///< the valid configuration closest to a default that cannot be used
};

/// "exact", "nearest", "default", "fallback".
[[nodiscard]] std::string_view name_of(Provenance provenance) noexcept;

/// How a problem will be run, and why so.
struct Plan {
  Problem problem;
  Config config;
  Provenance provenance = Provenance::default_config;
  std::string reason;                   ///< one line, also about what could not be used
  std::optional<Problem> tuned_for;     ///< exact, nearest: the problem the configuration won
  double distance = 0;                  ///< nearest: root of the sum of squared log2 ratios of the dimensions
  std::optional<TimeSummary> expected;  ///< exact: the time measured
  ToolkitRow toolkit{};                 ///< that makes its code
  double confidence = 0;                ///< exact, nearest: that the winner is not slower than the default there
};

/// A problem that was prepared without a winner of its own: what the tuner should be given next.
struct Miss {
  Problem problem;
  Provenance provenance = Provenance::default_config;
  std::string reason;
};

}  // namespace pascaline
