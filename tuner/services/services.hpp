#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/util/sweep_clock.hpp"
#include "runtime/device/device.hpp"
#include "tuner/compile/builder.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/measure/lab.hpp"

namespace pascaline {

/// Everything outside of a sweep that it works with, real or simulated.
struct SweepServices {
  std::shared_ptr<SweepClock> clock;
  std::function<std::vector<DeviceInfo>()> devices;  ///< all that there are
  std::function<std::unique_ptr<Builder>(CompilePoolOptions)> builder;
  std::function<std::unique_ptr<Lab>(MeasureClientOptions)> lab;
};

/// Processes that compile, processes that measure, and the machine's clock.
[[nodiscard]] SweepServices real_services();

}  // namespace pascaline
