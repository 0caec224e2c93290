#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/dispatch/planner.hpp"

namespace pascaline {

/// Code that a dispatcher would ask for: it is that of this configuration for this problem.
struct PlannedCode {
  Problem problem;
  Config config;
  ToolkitRow toolkit;  ///< that makes it, one of those given
};

/// All code that the known problems of a kernel need.
struct PlannedCodes {
  std::vector<PlannedCode> codes;      ///< each with another toolkit, macros or options than those before
  std::size_t problems = 0;            ///< how many were planned
  std::vector<std::string> unplanned;  ///< why one of the problems given cannot be run, a line each
};

/// Plans the problems given as a dispatcher with these winners and toolkits would, and as it would if the planned code
/// could not be loaded; with `all_sizes` also those in between: for problems alike in types and in the dimensions that
/// do not vary, every varying dimension at all `sizes_up_to` the largest given (or to its maximum, if that is at most
/// `kSmallMaximum`), one at a time, equal ones also together.
[[nodiscard]] PlannedCodes plan_codes(const TunedKernel& kernel, const std::vector<ToolkitRow>& here,
                                      const DeviceLimits& limits, std::span<const Problem> problems, bool all_sizes);

inline constexpr std::int64_t kSmallMaximum = 64;

/// From `least` to `most`: each one up to 8192 of them; of more, all up to 1024 and then 16 in a row at 64 places an
/// octave, so that every alignment comes up beside every size.
[[nodiscard]] std::vector<std::int64_t> sizes_up_to(std::int64_t least, std::int64_t most);

/// `ops::matmul` launches `matvec` for few rows: what one of the two kernels is launched for, the other is with other
/// rows. Gives matvec the problems of matmul with as many rows as it takes, and matmul those of matvec with the most
/// rows that it has.
void share_products(std::vector<Problem>& matmul, std::vector<Problem>& matvec, const Space& matvec_space);

}  // namespace pascaline
