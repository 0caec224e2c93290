#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace pascaline::testing {

/// A clock for a watcher that stands still unless a test moves it: then half a second passes from one reading to the
/// next, however long that takes, so that every run of the test sees the same readings.
class ScriptedClock {
 public:
  /// For ThermalSources::now_s.
  [[nodiscard]] std::function<double()> function() {
    return [this] {
      const double at_s = at_s_;
      at_s_ = at_s < until_s_ ? at_s + 0.5 : at_s;
      return at_s;
    };
  }
  /// Waits until the watcher has seen the script at that second.
  void move_to(double script_s) {
    until_s_ = script_s + 1;
    while (at_s_ < script_s + 1) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

 private:
  std::atomic<double> at_s_{0};
  std::atomic<double> until_s_{0};
};

}  // namespace pascaline::testing
