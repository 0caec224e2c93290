#pragma once

#include <limits>
#include <optional>
#include <string>

#include "core/trial.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {

/// The result that measuring a configuration would have.
struct SimulatedResult {
  TrialStatus status = TrialStatus::ok;  ///< `crashed` takes the worker along
  std::string reason{};
  double time_us = 0;     ///< of a launch, the median; if `status` is ok
  double spread = 0.005;  ///< standard deviation of a launch's time, relative to it
  /// Seconds that timing takes, all samples alike; nothing: as sampling ends.
  std::optional<double> measure_s{};
};

/// The world of a simulated sweep: how long everything takes, and the results. Functions that are not overridden take
/// as long as on a quick machine.
class SimulatedWorld {
 public:
  /// An infinite duration.
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  SimulatedWorld() = default;
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;
  virtual ~SimulatedWorld() = default;

  /// Seconds that a compile worker takes; what takes longer than its deadline has timed out.
  [[nodiscard]] virtual double compile_s(const CompileRequest& /*request*/) const { return 0.3; }
  /// Why it does not compile; empty if it does.
  [[nodiscard]] virtual std::string compile_failure(const CompileRequest& /*request*/) const { return {}; }
  /// True if such a failure is the compiler's own: it crashed.
  [[nodiscard]] virtual bool compiler_crashes(const CompileRequest& /*request*/) const { return false; }
  /// Seconds until a device is open and steady.
  [[nodiscard]] virtual double open_s() const { return 1; }
  /// Seconds for the inputs and the reference of a problem.
  [[nodiscard]] virtual double prepare_s(const Problem& /*problem*/) const { return 0.2; }
  /// Why a problem cannot be measured; empty if it can.
  [[nodiscard]] virtual std::string refusal(const Problem& /*problem*/) const { return {}; }
  /// Seconds for loading and verifying a configuration, before it is timed.
  [[nodiscard]] virtual double verify_s(const Problem& /*problem*/, const Config& /*config*/) const { return 0.02; }
  [[nodiscard]] virtual SimulatedResult measure(const Problem& problem, const Config& config) const = 0;
  /// Watts while it runs back to back; nothing: the card does not report its power.
  [[nodiscard]] virtual std::optional<double> power_w(const Problem& /*problem*/, const Config& /*config*/) const {
    return std::nullopt;
  }
  /// How many times as long a launch takes in the thermal steady state.
  [[nodiscard]] virtual double sustained_factor(const Problem& /*problem*/, const Config& /*config*/) const {
    return 1;
  }
  /// Seconds of finals for each finalist, besides its launches.
  [[nodiscard]] virtual double finalist_s(const Problem& /*problem*/) const { return 0; }
};

/// A number from the standard normal distribution, fixed by the text.
[[nodiscard]] double normal_of(const std::string& text);

}  // namespace pascaline
