#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/services/builder.hpp"
#include "tuner/services/lab.hpp"
#include "tuner/services/sweep_clock.hpp"

namespace pascaline {

/// What a sweep works with: the real thing, or a simulation of it.
struct SweepServices {
  std::shared_ptr<SweepClock> clock;
  std::function<std::vector<DeviceInfo>()> devices;  ///< all that there are
  std::function<std::unique_ptr<Builder>(CompilePoolOptions)> builder;
  std::function<std::unique_ptr<Lab>(MeasureClientOptions)> lab;
};

/// Processes that compile, processes that measure, and the machine's clock.
[[nodiscard]] SweepServices real_services();

}  // namespace pascaline
