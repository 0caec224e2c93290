#pragma once

#include <span>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/kernel_problem.hpp"

namespace pascaline::ops {

/// Launches the best variant known for the problem, which is prepared if this is its first call; after that it takes no
/// lock and allocates nothing. The first call must come before the launch is recorded. `buffers` as for
/// `Dispatcher::launch`. Throws Error if the kernel's search space has other names, and what `Dispatcher::prepare` and
/// `launch` throw.
void launch(Dispatcher& dispatcher, const KernelProblem& problem, std::span<void* const> buffers);

}  // namespace pascaline::ops
