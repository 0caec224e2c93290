#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"
#include "db/store.hpp"

namespace pascaline {

/// Which measurements a model's order is compared with.
struct RankCheckOptions {
  std::string kernel;           ///< empty: every kernel that `load_space` knows
  std::string problem;          ///< Problem::text(); empty: all
  std::size_t min_trials = 10;  ///< of a problem; fewer say nothing about an order
  /// The space of a kernel; nothing if there is none.
  std::function<std::optional<Space>(const std::string& kernel)> load_space;
  /// Called with the rates of the device that measured, to replace some of them; may be empty.
  std::function<void(DeviceRates&)> adjust;
};

/// How a model orders the configurations of one problem that were measured on one device. Correlations are Spearman's
/// with the measured times; shares are those of the fastest 1 % (one at least) in the model's best 10 %.
struct RankCheck {
  DeviceRow device;
  std::string target;
  std::string kernel;
  std::string problem;
  std::size_t trials = 0;
  std::size_t skipped = 0;          ///< measured, but not of the space as it is now
  double correlation = 0;           ///< nothing compiled
  double compiled_correlation = 0;  ///< with registers, spills and instructions of the stored trials
  double found = 0;
  double compiled_found = 0;
};

/// Compares with all `ok` trials of the search stage, of CUDA devices, in the order of devices, kernels and problems.
/// Of several trials of a configuration the last counts. Throws Error for an expression without value.
[[nodiscard]] std::vector<RankCheck> check_ranking(const Store& store, const RankCheckOptions& options);

}  // namespace pascaline
