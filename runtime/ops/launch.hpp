#pragma once

#include <cstdint>
#include <span>

#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::ops {

/// A dimension of a problem, under its name in the kernel's search space.
struct NamedDimension {
  const char* name;
  std::int64_t value;
};

/// The type bound to a type variable of the kernel's search space.
struct NamedType {
  const char* name;
  ElementType type;
};

/// Launches the best variant of `kernel` known for the problem, which is prepared if this is its first call; after that
/// it takes no lock and allocates nothing. The first call must come before the launch is recorded. Dimensions and types
/// in the search space's order, all of them; `buffers` as for `Dispatcher::launch`. Throws Error if the search space
/// has other names, and what `Dispatcher::prepare` and `launch` throw.
void launch(Dispatcher& dispatcher, KernelName kernel, std::span<const NamedDimension> dimensions,
            std::span<const NamedType> types, std::span<void* const> buffers);

}  // namespace pascaline::ops
