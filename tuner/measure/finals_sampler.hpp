#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tuner/finals/finals.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {

/// Measures rounds of finals, as long as there is time (DeviceMonitor::set_end_s).
class FinalsSampler {
 public:
  /// `running` is called whenever another contender is on the device; it may be empty. The monitor and the options must
  /// outlive it.
  FinalsSampler(DeviceMonitor& monitor, const FinalsOptions& options, bool cold_cache,
                std::function<void(std::size_t contender)> running)
      : monitor_(monitor), options_(options), cold_cache_(cold_cache), running_(std::move(running)) {}

  /// Adds the next contender.
  void add(TimedWork work) { work_.push_back(std::move(work)); }
  /// `contenders` have their times where the round wants windows. Throws what TimedWork throws.
  [[nodiscard]] RoundSamples measure(const Round& round, const std::vector<Trial>& contenders);

 private:
  void put_on(std::size_t contender) const;
  void time_launches(const Round& round, RoundSamples& samples);
  void note_canary(std::vector<double>& canaries_us);
  [[nodiscard]] RoundSamples::End end_of_broken_round() const;
  // Why the value is missing; empty if it is not.
  [[nodiscard]] std::string energy_window(std::size_t contender, double time_us, Turn& turn);
  [[nodiscard]] std::string sustained_window(std::size_t contender, double time_us, bool first, Turn& turn);
  [[nodiscard]] std::string why_no_power();

  DeviceMonitor& monitor_;
  const FinalsOptions& options_;
  bool cold_cache_;
  std::function<void(std::size_t)> running_;
  std::vector<TimedWork> work_;
  bool begun_ = false;
};

}  // namespace pascaline
