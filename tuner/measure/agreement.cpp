#include "tuner/measure/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pascaline {

void Agreement::add(std::int64_t trial, TrialStatus status, const std::string& agrees_with) {
  count(results_.insert_or_assign(trial, Result{status, agrees_with}).first->second);
}

void Agreement::add_same(std::int64_t trial) {
  if (const auto known = results_.find(trial); known != results_.end()) {
    count(known->second);
  }
}

void Agreement::count(const Result& result) {
  all_ += has_time(result.status) || result.status == TrialStatus::wrong_result ? 1 : 0;
  if (!result.agrees_with.empty()) {
    ++apart_[result.agrees_with];
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
      reference.kernel ? " kernel '" + reference.kernel->function + "'" : ", the default configuration");
}

}  // namespace pascaline
