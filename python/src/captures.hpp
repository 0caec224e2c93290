#pragma once

#include <string>

#include "runtime/ops/kernel_problem.hpp"

namespace pascaline::python {

/// Begins to count the problems that operations launch, or that their kernels would launch where the processor computes
/// them; returns what `end_capture` is given. Several may count at once.
[[nodiscard]] int begin_capture();

/// Ends it, and gives a JSON list of {kernel, dimensions, types, count}, in the order of their first calls. Throws
/// ArgumentError if there is no such capture.
[[nodiscard]] std::string end_capture(int capture);

/// Counts a call in all that count now. From any thread.
void count_call(const ops::KernelProblem& problem);

/// Whether any counts: what `count_call` is spared otherwise.
[[nodiscard]] bool captures() noexcept;

}  // namespace pascaline::python
