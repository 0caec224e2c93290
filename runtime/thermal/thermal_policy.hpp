#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/objective.hpp"
#include "runtime/thermal/thermal_state.hpp"
#include "runtime/thermal/thermal_watcher.hpp"

namespace pascaline {

/// Which winners are launched in which thermal state, and when a state begins and ends.
struct ThermalPolicy {
  using Objectives = std::vector<Objective>;
  /// By state: the first objective that a problem has a winner by; without any, the winner by time.
  std::array<Objectives, kThermalStates> objectives{Objectives{Objective::time},
                                                    Objectives{Objective::sustained, Objective::energy},
                                                    Objectives{Objective::sustained, Objective::energy}};
  ThermalThresholds thresholds;
  double period_s = 0.5;                       ///< between readings
  std::string file;                            ///< that it was read from; empty: the default policy
  std::array<bool, kThermalStates> in_file{};  ///< the states whose objectives the file gives

  [[nodiscard]] const Objectives& of(ThermalState state) const { return objectives[static_cast<std::size_t>(state)]; }
  /// Whether any state asks for it.
  [[nodiscard]] bool names(Objective objective) const noexcept;
  /// Whether the file has any state ask for it.
  [[nodiscard]] bool file_names(Objective objective) const noexcept;
};

/// What a dispatcher does about its device's temperature.
struct ThermalOptions {
  bool enabled = true;  ///< false: winners by time, whatever the temperature; nothing is watched
  ThermalPolicy policy{};
  ThermalSources sources{};  ///< the policy's period counts, not theirs
};

/// Reads a policy: an object with any of `states` (an object with any of `cool`, `hot`, `throttled`, each an objective
/// or a list of them, the first that has a winner first), `margin_c`, `resume_c`, `limit_c`, `processor_margin_c`,
/// `processor_resume_c`, `power_throttle`, `rise_s`, `fall_s`, `dwell_s`, `keep_s` and `period_s`; what is not there is
/// as by default. Throws SpaceError, with `file` and JSON pointer, for everything else and for values out of range.
[[nodiscard]] ThermalPolicy parse_thermal_policy(std::string_view text, const std::string& file);
/// Throws SpaceError also if it cannot be read.
[[nodiscard]] ThermalPolicy load_thermal_policy(const std::filesystem::path& file);

}  // namespace pascaline
