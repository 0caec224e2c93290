#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/problem.hpp"
#include "core/space/space.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/arguments.hpp"
#include "runtime/dispatch/plan.hpp"

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

/// A problem ready to launch. Belongs to its dispatcher and never changes, but for the count.
struct Prepared {
  ProblemKey key;
  Plan plan;
  Geometry geometry;
  const Kernel* kernel = nullptr;  ///< shared by the problems that compile to the same code
  LaunchArguments arguments;
  mutable std::uint64_t launches = 0;  ///< so far, recorded ones once; of the thread that launches
};

}  // namespace pascaline
