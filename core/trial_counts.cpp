#include "core/trial_counts.hpp"

#include <fmt/format.h>

namespace pascaline {

void TrialCounts::add(TrialStage stage, TrialStatus status, bool is_duplicate, std::int64_t count) {
  const TrialKind kind{stage, status, is_duplicate};
  for_each_count(*this,
                 [&](const TrialCount& each, std::int64_t& number) { number += each.includes(kind) ? count : 0; });
}

TrialCounts& TrialCounts::operator+=(const TrialCounts& others) {
  for_each_count(*this, [&](const TrialCount& count, std::int64_t& number) { number += others.*count.value; });
  return *this;
}

std::string counts_text(const TrialCounts& counts) {
  std::string text;
  for_each_count(counts, [&](const TrialCount& count, std::int64_t number) {
    if (number != 0 || count.value == &TrialCounts::trials || count.value == &TrialCounts::ok) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, number == 1 ? count.one : count.many);
    }
  });
  return text;
}

std::string counted_as(const Trial& trial) {
  const TrialKind kind{trial.stage, trial.status, trial.shared_trial != 0};
  std::string names;
  for (const TrialCount& count : kTrialCounts) {
    if (count.includes(kind)) {
      names += (names.empty() ? "" : " ") + std::string(count.name);
    }
  }
  return names;
}

}  // namespace pascaline
