#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/error.hpp"

namespace pascaline {

/// A long computation was told to stop.
class StoppedError : public Error {
 public:
  using Error::Error;
};

/// Called by computations that may take long, every few milliseconds; it throws, as a rule StoppedError, to end them.
/// Empty: nothing ends them.
using StopCheck = std::function<void()>;

/// Throws StoppedError once `stop`, which must outlive it, is set.
[[nodiscard]] inline StopCheck stop_check(const std::atomic<bool>& stop) {
  return [&stop] {
    if (stop) {
      throw StoppedError("interrupted");
    }
  };
}

/// Counts the steps of a loop and calls a StopCheck so rarely that it costs nothing and so often that nobody waits.
class CheckedSteps {
 public:
  explicit CheckedSteps(StopCheck check = {}) : check_(std::move(check)) {}

  void step() {
    if (++taken_ % kStride == 0 && check_) {
      check_();
    }
  }

 private:
  static constexpr std::uint32_t kStride = 1U << 12U;  // of steps that take up to a microsecond each

  StopCheck check_;
  std::uint32_t taken_ = 0;
};

}  // namespace pascaline
