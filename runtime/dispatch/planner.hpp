#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/space/space.hpp"
#include "core/util/interruption.hpp"
#include "core/util/stop_check.hpp"
#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/dispatch/plan.hpp"

namespace pascaline {

/// A winner that may not be used, and why.
struct RefusedWinner {
  Problem problem;
  std::string why;
};

/// A kernel with what has been tuned of it for one device and target. Immutable once made.
struct TunedKernel {
  Objective objective = Objective::time;  ///< that its winners are best at
  Space space;
  KernelSource source;
  /// Of today's source and target, in a fixed order: by problem; then those of a toolkit that is here, then of a
  /// compiler that is here with another driver, then of compilers that are not here; then the fastest.
  std::vector<Winner> winners;
  std::vector<RefusedWinner> refused;
  /// The same of winners by other objectives than time, where there are any; each has its own copy of the space.
  std::vector<TunedKernel> others{};

  /// That of `others` with this objective; null if there is none.
  [[nodiscard]] const TunedKernel* by(Objective wanted) const;
};

/// Sorts out which of `winners` (of the device in use, by any objective) may be used with today's source and the
/// toolkits that are here: at least one, all of one target and driver. A winner by another objective that is outdated
/// (`why_outdated`) may not.
[[nodiscard]] TunedKernel make_tuned_kernel(const Space& space, const KernelSource& source, std::vector<Winner> winners,
                                            const std::vector<ToolkitRow>& here);

/// The plan for `space.problem()`: the exact winner, else the nearest one that is valid for it, else `plan_untuned`.
/// Nearest: the smallest sum of squared log2 ratios of the dimensions (of values below 1, those of 1) among winners
/// of equal element types and fixed dimensions; of equally near ones the first of the smaller dimensions. A winner's
/// code is made by its own compiler where that is here, else by the first of `here`, as is what is not tuned; the
/// reason tells that, and of a faster winner whose compiler is missing.
/// `space` is bound to `kernel.space`. Throws Error if no configuration is valid.
[[nodiscard]] Plan make_plan(const TunedKernel& kernel, const std::vector<ToolkitRow>& here, const BoundSpace& space);

/// The plan by another objective in place of `by_time`, the plan of `kernel` for the same problem: its winner of the
/// problem, or of one that is no farther from it than that whose winner `by_time` uses. Nothing if there is none.
/// `limits` as those of the space that `by_time` was made for.
[[nodiscard]] std::optional<Plan> make_plan_by(Objective objective, const TunedKernel& kernel,
                                               const std::vector<ToolkitRow>& here, const Plan& by_time,
                                               const DeviceLimits& limits);

/// A line for each compiler that is not here and built the noticeably fastest winner of a problem under the driver in
/// use: of how many problems, how much faster than what is used, and how to get it. `winners`: of today's sources.
[[nodiscard]] std::vector<std::string> missing_compilers(const std::vector<Winner>& winners,
                                                         const std::vector<ToolkitRow>& here);

/// No configuration is valid for a problem on a device, as far as was looked.
class NoConfigError : public Error {
 public:
  using Error::Error;
};

/// The plan without any winner: the default, or the valid configuration closest to it, none of `failed`. `because`
/// says why no winner is used and is extended. Its toolkit is left to the caller. Throws NoConfigError if there is
/// none, and what `check` throws while it looks for one.
[[nodiscard]] Plan plan_untuned(const BoundSpace& space, std::span<const Config> failed, std::string reason,
                                StopCheck check = stop_check(interruption()));

/// The configuration of that plan: the reference is launched with it. Throws likewise.
[[nodiscard]] Config untuned_config(const BoundSpace& space, StopCheck check = stop_check(interruption()));

}  // namespace pascaline
