#include "tuner/measure/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pascaline {

void Agreement::add(TrialStatus status, const std::string& agrees_with) {
  all_ += status == TrialStatus::ok || status == TrialStatus::wrong_result ? 1 : 0;
  if (!agrees_with.empty()) {
    ++apart_[agrees_with];
  }
}

std::string Agreement::doubt(const Reference& reference) const {
  int most = 0;
  for (const auto& [config, count] : apart_) {
    most = std::max(most, count);
  }
  if (most < 2 || 2 * most <= all_) {
    return {};
  }
  return fmt::format(
      "{} of {} configurations agree with each other and not with the reference{}, which is probably wrong", most, all_,
      reference.by_default ? ", the default configuration"
      : reference.kernel   ? " kernel '" + reference.kernel->function + "'"
                           : "");
}

}  // namespace pascaline
