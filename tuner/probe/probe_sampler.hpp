#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "core/device/probe.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// Thrown where the user wants the probe to end.
class ProbeStopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the probe was stopped"; }
};

/// Median with its interval and spread of what was measured again and again; steady where the spread is 5 % at most.
[[nodiscard]] ProbeValue probe_value(ProbeQuantity quantity, std::span<const double> samples);

/// Takes samples for as long as there is time, and watches whether the card slows down meanwhile.
class ProbeSampler {
 public:
  /// `seconds_each`: for what one call of `take` measures. `device` and `stop` must outlive it.
  ProbeSampler(Device& device, const std::atomic<bool>& stop, double seconds_each);

  /// Measures quantities that come together: `one` gives a sample of each. The first sample warms up and does not
  /// count. Five at least, 100 at most. Throws ProbeStopped, and what `one` throws.
  [[nodiscard]] std::vector<ProbeValue> take(std::span<const ProbeQuantity> quantities,
                                             const std::function<std::vector<double>()>& one);
  /// Looks at the sensors, and throws ProbeStopped if the probe is to end.
  void look();
  [[nodiscard]] bool throttled() const noexcept { return throttled_; }
  [[nodiscard]] double seconds_each() const noexcept { return seconds_each_; }

 private:
  Device& device_;
  const std::atomic<bool>& stop_;
  double seconds_each_;
  bool throttled_ = false;
};

}  // namespace pascaline
