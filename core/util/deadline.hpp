#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace pascaline {

/// The clocks a deadline looks at; tests hand in their own.
struct DeadlineClocks {
  std::function<std::chrono::steady_clock::time_point()> steady = [] { return std::chrono::steady_clock::now(); };
  std::function<std::chrono::system_clock::time_point()> wall = [] { return std::chrono::system_clock::now(); };
};

/// When to stop: never, after a span, at a time of the wall clock, or at whichever comes first.
///
/// A time of the wall clock also ends after the span that it is away at construction, by the steady clock: so a wall
/// clock that is set back does not make the wait longer, and time that the steady clock misses, as while a machine
/// sleeps, does not make it overshoot.
class Deadline {
 public:
  /// Never.
  Deadline() = default;
  /// After `span_s` seconds of the steady clock and at `at`, whichever comes first; never, if neither is given.
  Deadline(std::optional<double> span_s, std::optional<std::chrono::system_clock::time_point> at,
           DeadlineClocks clocks = {});

  static Deadline after(double span_s, DeadlineClocks clocks = {}) { return {span_s, std::nullopt, std::move(clocks)}; }
  static Deadline at(std::chrono::system_clock::time_point time, DeadlineClocks clocks = {}) {
    return {std::nullopt, time, std::move(clocks)};
  }

  [[nodiscard]] bool over() const;
  /// Seconds left, 0 once it is over; none if it never is.
  [[nodiscard]] std::optional<double> left_s() const;

 private:
  DeadlineClocks clocks_;
  std::optional<double> span_s_;
  std::chrono::steady_clock::time_point start_{};
  std::optional<std::chrono::system_clock::time_point> at_;
};

}  // namespace pascaline
