#include "tuner/sweep/code_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/device/device_rates.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/static_model/code_estimate.hpp"

namespace pascaline {
namespace {

// Those whose machine code `sm61::read_kernel` reads.
bool is_read(std::string_view compute_capability) {
  return compute_capability.starts_with("5.") || (compute_capability.starts_with("6.") && compute_capability <= "6.2");
}

}  // namespace

double CodeRange::middle_us() const noexcept { return std::sqrt(least_us * most_us); }

CodeEstimator code_estimator(const DeviceInfo& device, const MeasuredRates& measured, const BoundSpace& space) {
  const std::string capability = device_row(device).compute_capability;
  if (device.kind != DeviceKind::cuda || !is_read(capability)) {
    return {};
  }
  std::optional<DeviceRates> rates = typical_rates(capability, device.limits);
  if (!rates) {
    return {};
  }
  use_measured(*rates, measured);
  return [rates = *rates, sm = sm61::sm_rates(measured), &space](const Config& config,
                                                                 const Binary& binary) -> std::optional<CodeRange> {
    const auto estimate = estimate_from_code(binary, space, config, rates, sm);
    return estimate ? std::optional(CodeRange{estimate->least.time_us, estimate->most.time_us}) : std::nullopt;
  };
}

void CodeJudge::take(const Config& config, const Binary& binary) {
  if (const auto range = estimator_(config, binary)) {
    estimates_.insert_or_assign(config.text(), *range);
  }
}

void CodeJudge::set_fastest(const Config& config, double median_us) {
  const auto known = estimates_.find(config.text());
  fastest_ = known == estimates_.end() ? std::nullopt : std::optional(known->second);
  fastest_us_ = median_us;
}

double CodeJudge::middle_us(const Config& config) const {
  const auto known = estimates_.find(config.text());
  return known == estimates_.end() ? 0 : known->second.middle_us();
}

std::optional<CodeJudge::Verdict> CodeJudge::cannot_win(const Config& config) const {
  const auto known = estimates_.find(config.text());
  if (known == estimates_.end() || !fastest_) {
    return std::nullopt;
  }
  const double least = known->second.least_us / fastest_->least_us;
  const double most = known->second.most_us / fastest_->most_us;
  if (!(std::min(least, most) > kCannotWin)) {
    return std::nullopt;
  }
  return Verdict{fmt::format("not measured: by an estimate from its machine code it takes {:.2g} times as long as the "
                             "fastest measured so far",
                             known->second.middle_us() / fastest_->middle_us()),
                 fastest_us_ * known->second.middle_us() / fastest_->middle_us()};
}

}  // namespace pascaline
