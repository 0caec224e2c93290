#include "core/trial.hpp"

#include <array>
#include <utility>

namespace pascaline {
namespace {

constexpr std::array<std::string_view, kTrialStatuses> kStatusNames{
    "ok", "dropped", "rejected", "compile_failed", "launch_failed", "wrong_result", "timed_out", "crashed"};
constexpr std::array<std::string_view, 2> kStageNames{"search", "finals"};
constexpr std::array<std::string_view, 5> kMarkNames{"none", "thermal_throttle", "power_throttle", "clock_drift",
                                                     "canary_drift"};

template <typename Enum, std::size_t N>
std::optional<Enum> from_name(const std::array<std::string_view, N>& names, std::string_view name) noexcept {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(TrialStatus status) noexcept { return kStatusNames[static_cast<std::size_t>(status)]; }

std::span<const std::string_view> trial_status_names() noexcept { return kStatusNames; }

std::optional<TrialStatus> trial_status_from(std::string_view name) noexcept {
  return from_name<TrialStatus>(kStatusNames, name);
}

std::string_view name_of(TrialStage stage) noexcept { return kStageNames[static_cast<std::size_t>(stage)]; }

std::optional<TrialStage> trial_stage_from(std::string_view name) noexcept {
  return from_name<TrialStage>(kStageNames, name);
}

std::string_view name_of(SampleMark mark) noexcept { return kMarkNames[static_cast<std::size_t>(mark)]; }

std::optional<SampleMark> sample_mark_from(std::string_view name) noexcept {
  return from_name<SampleMark>(kMarkNames, name);
}

}  // namespace pascaline
