#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/space/space.hpp"
#include "db/store.hpp"
#include "tuner/portfolio/choose_portfolio.hpp"

namespace pascaline {

/// Which measurements are asked for; empty fields do not narrow.
struct MeasuredTimesFilter {
  std::string kernel{};
  std::string device{};  ///< its name
  std::string target{};  ///< "sm_61"
};

/// A problem's trials of the search, in the order they were stored.
struct MeasuredProblem {
  Problem problem;
  std::vector<std::pair<Config, double>> trials;  ///< with the median in microseconds; `kUnknownTime` if not usable
  /// Of the first `count` trials, or of all; `kUnknownTime` if none is usable.
  [[nodiscard]] double best_us(std::size_t count = static_cast<std::size_t>(-1)) const;
};

/// What was measured of a kernel on one device with one toolkit.
struct MeasuredTimes {
  DeviceRow device;
  ToolkitRow toolkit;
  std::string kernel;
  std::vector<MeasuredProblem> problems;  ///< those with a usable trial

  /// What configurations were bound to: limits of the card, and of the architecture the code was made for.
  [[nodiscard]] DeviceLimits limits() const;
};

/// Of each kernel, of the version of its source that was measured last, those on the device and with the toolkit that
/// have most trials. Results taken over from other tuners are left out. Empty if there is nothing.
[[nodiscard]] std::vector<MeasuredTimes> measured_times(const Store& store, const MeasuredTimesFilter& filter);

/// Problems by configurations, the default first, then those to keep; each problem has a row, in its order.
struct MeasuredMatrix {
  std::vector<Config> configs;
  TimeMatrix times;
};

/// Of a configuration that is not valid for a problem, the time is that of the nearest valid one, as a search takes it.
/// Configurations that are not of the space any more are left out, as are those that are for no problem within `near`
/// times its best, but for those in `kept`. Throws Error naming the problem that the space no longer has.
[[nodiscard]] MeasuredMatrix matrix_of(const MeasuredTimes& measured, const Space& space,
                                       const std::vector<Config>& kept = {}, double near = 1.3);

/// The `count` fastest configurations of each problem, each once, without the default.
[[nodiscard]] std::vector<Config> fastest_of_each(const MeasuredTimes& measured, const Space& space, std::size_t count);

}  // namespace pascaline
