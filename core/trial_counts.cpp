#include "core/trial_counts.hpp"

#include <fmt/format.h>

#include "core/util/counted.hpp"

namespace pascaline {

void TrialCounts::add(TrialStage stage, TrialStatus status, bool is_duplicate, std::string_view reason,
                      std::int64_t times) {
  if (stage == TrialStage::finals) {
    finals += times;
    return;
  }
  const bool usable = status == TrialStatus::ok;
  trials += times;
  ok += usable ? times : 0;
  dropped += usable && !is_duplicate && reason.starts_with(kDroppedReason) ? times : 0;
  duplicates += is_duplicate ? times : 0;
}

TrialCounts& TrialCounts::operator+=(const TrialCounts& others) {
  trials += others.trials;
  ok += others.ok;
  dropped += others.dropped;
  duplicates += others.duplicates;
  finals += others.finals;
  return *this;
}

std::string text_of(const TrialCounts& counts) {
  const auto number = [](std::int64_t count, std::string_view what) {
    return counted(static_cast<std::size_t>(count), what);
  };
  std::string text =
      fmt::format("{} ({} usable{}, {})", number(counts.trials, "trial"), counts.ok,
                  counts.dropped > 0 ? fmt::format(", {} of them dropped early as slower", counts.dropped) : "",
                  number(counts.duplicates, "duplicate"));
  return counts.finals > 0 ? fmt::format("{}, {} in finals", text, number(counts.finals, "measurement")) : text;
}

}  // namespace pascaline
