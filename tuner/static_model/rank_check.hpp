#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/binary.hpp"
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
  /// Configurations of a problem to compile for estimates from code, spread evenly over the trials; 0: none.
  std::size_t compile = 0;
  /// Compiles configurations for the target of what was measured and hands out each binary that there is; needed with
  /// `compile`. A target that nothing compiles for is an NvrtcError.
  std::function<void(const BoundSpace& space, const ToolkitRow& measured, const std::vector<Config>& configs,
                     const std::function<void(const Config&, const Binary&)>& each)>
      compiler;
};

/// How estimates from code order a part of the trials, and how the model with the stored resources does the same ones.
struct CodeCheck {
  std::size_t trials = 0;                   ///< with an estimate from code
  double correlation = 0;                   ///< of those, with the middle of its range
  double least = 0;                         ///< with the range's lower end
  double most = 0;                          ///< with the upper end
  double compiled_correlation = 0;          ///< of the static model
  std::optional<double> measured_conflict;  ///< clocks of a bank conflict at both ends, where the device was probed
};

/// How a model orders the configurations of one problem that were measured on one device by one compiler. Correlations
/// are Spearman's with the measured times; shares are those of the fastest 1 % (one at least) in the model's best 10 %.
struct RankCheck {
  DeviceRow device;
  ToolkitRow toolkit;  ///< its driver is that of any of the trials
  std::string kernel;
  std::string problem;
  std::size_t trials = 0;
  std::size_t skipped = 0;          ///< measured, but not of the space as it is now
  double correlation = 0;           ///< nothing compiled
  double compiled_correlation = 0;  ///< with registers, spills and instructions of the stored trials
  double found = 0;
  double compiled_found = 0;
  std::optional<CodeCheck> code;  ///< if code was compiled, for an architecture whose code is read, of two or more
  std::string code_missing;       ///< why nothing could be compiled; empty if it was, or was not asked for
};

/// Compares with all `ok` trials of the search stage, of CUDA devices, in the order of devices, compilers and problems.
/// Of several trials of a configuration the last counts. Throws Error for an expression without value.
[[nodiscard]] std::vector<RankCheck> check_ranking(const Store& store, const RankCheckOptions& options);

}  // namespace pascaline
