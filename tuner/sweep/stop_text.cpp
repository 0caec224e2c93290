#include "tuner/sweep/stop_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/util/duration.hpp"

namespace pascaline {
namespace {

constexpr double kLongSeconds = 5;

}  // namespace

std::string stop_text(const StopWait& wait) {
  const int devices = wait.trials + wait.finals;
  const std::string what = devices == 0       ? ""
                           : wait.trials == 0 ? " after these finals"
                           : devices == 1     ? " after this trial"
                                              : " after what is being measured";
  const std::string at_most =
      devices > 0 && wait.at_most_s > kLongSeconds ? ", at most " + duration_text(std::ceil(wait.at_most_s)) : "";
  return fmt::format("stopping{}{}; press Ctrl-C again to abort", what, at_most);
}

}  // namespace pascaline
