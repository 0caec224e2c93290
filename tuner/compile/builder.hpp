#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/trial.hpp"
#include "core/util/sweep_clock.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {

/// A finished compilation.
struct Compiled {
  std::uint64_t id = 0;
  TrialStatus status = TrialStatus::ok;  ///< ok, compile_failed, timed_out or crashed
  CompileResult result;
};

/// Compiles configurations ahead of their measurement.
class Builder {
 public:
  Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  virtual ~Builder() = default;

  /// Queues a compilation; `request.source` must live until it is finished.
  virtual void submit(std::uint64_t id, CompileRequest request) = 0;
  /// A finished compilation, in any order; nothing if none is. It does not wait.
  [[nodiscard]] virtual std::optional<Compiled> take() = 0;
  /// Submitted and not yet taken.
  [[nodiscard]] virtual std::size_t pending() const noexcept = 0;
  [[nodiscard]] virtual std::size_t workers() const noexcept = 0;
  /// Workers that are compiling.
  [[nodiscard]] virtual std::size_t busy() const noexcept = 0;
  /// Descriptors that are ready when `take` has something to give.
  [[nodiscard]] virtual std::vector<pollfd> wakeups() const = 0;
  /// Latest time to call `take`, even if no descriptor is ready.
  [[nodiscard]] virtual SweepClock::TimePoint wakes_at() const { return SweepClock::TimePoint::max(); }
};

}  // namespace pascaline
