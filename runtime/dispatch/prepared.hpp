#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/problem.hpp"
#include "core/space/space.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/arguments.hpp"
#include "runtime/dispatch/plan.hpp"
#include "runtime/thermal/thermal_state.hpp"

namespace pascaline {

/// A kernel's place in a dispatcher.
struct KernelHandle {
  std::uint32_t index = 0;
  friend bool operator==(KernelHandle, KernelHandle) = default;
};

/// What a prepared problem is looked up by: dimensions and types in the space's order.
struct ProblemKey {
  KernelHandle kernel;
  std::vector<std::int64_t> dimensions;
  std::vector<ElementType> types;
};

/// A problem ready to launch, by its winner by time. Belongs to its dispatcher and never changes, but for the count.
struct Prepared {
  ProblemKey key;
  Plan plan;
  std::vector<Geometry> geometries;  ///< of each launch
  const std::vector<Kernel>* kernels =
      nullptr;  ///< of each launch; shared by the problems that compile to the same code
  LaunchArguments arguments;
  mutable std::uint64_t launches = 0;  ///< so far, recorded ones once; of the thread that launches
  /// What is launched in each thermal state: itself, or one of `others`.
  std::array<const Prepared*, kThermalStates> by_state{};
  std::vector<std::unique_ptr<Prepared>> others;  ///< the same problem by winners by other objectives

  /// Whether a launch in any state works in memory that others work in, too.
  [[nodiscard]] bool shares_memory() const noexcept {
    for (const Prepared* variant : by_state) {
      if (variant->arguments.shares_memory()) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] const Prepared& in(ThermalState state) const { return *by_state[static_cast<std::size_t>(state)]; }
};

}  // namespace pascaline
