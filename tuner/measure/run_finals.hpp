#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tuner/finals/finals.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline {

/// Measures what `Finals` want of these finalists, as long as it is over in time (DeviceMonitor::set_end_s).
/// `running` is called whenever another finalist is on the device, with its index among those given; it may be empty.
/// Finalists that fail now are left out and the finals begin again; nothing if none is left or the device is lost.
[[nodiscard]] std::optional<FinalsResult> run_finals(TrialRunner& runner,
                                                     const std::vector<std::pair<Config, Binary>>& finalists,
                                                     const FinalsOptions& options,
                                                     const std::function<void(std::size_t finalist)>& running = {});

}  // namespace pascaline
