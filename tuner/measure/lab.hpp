#pragma once

#include <poll.h>

#include <cstddef>
#include <vector>

#include "core/util/sweep_clock.hpp"
#include "tuner/measure/measure_jobs.hpp"

namespace pascaline {

/// The time of a device's worker by activity, in milliseconds.
struct WorkerTimes {
  double opening_ms = 0;    ///< opening the device and warming it up
  double preparing_ms = 0;  ///< buffers, first inputs and references of problems
  double trials_ms = 0;
  double finals_ms = 0;
  [[nodiscard]] double total_ms() const noexcept { return opening_ms + preparing_ms + trials_ms + finals_ms; }
};

/// Runs jobs on one device in order: one problem after the other, each with its trials and finals.
class Lab {
 public:
  Lab() = default;
  virtual ~Lab() = default;

  /// Opens the device before the first job, so that the card is steady when the job arrives.
  virtual void warm_up() = 0;
  /// Sets the problem of all later jobs; no job may be queued. The answer is ProblemPrepared or ProblemRefused.
  virtual void set_problem(MeasureProblem problem) = 0;
  virtual void submit(TrialJob job) = 0;
  virtual void submit(FinalsJob job) = 0;
  /// Takes back every trial that was not begun; returns them.
  [[nodiscard]] virtual std::vector<TrialJob> take_back() = 0;
  /// Stops the running measurement at once and drops finals and preparation. Trials stay queued for `take_back`.
  virtual void interrupt() = 0;

  /// Appends the results of the jobs to `events`, without waiting. Throws Error if a fault of the environment
  /// prevents all measurement.
  virtual void pump(std::vector<MeasureEvent>& events) = 0;
  /// Descriptors that are ready when `pump` has something to do.
  [[nodiscard]] virtual std::vector<pollfd> wakeups() const = 0;
  /// Latest time to call `pump`, even if no descriptor is ready.
  [[nodiscard]] virtual SweepClock::TimePoint wakes_at() const noexcept = 0;

  /// True while the device is being opened and made steady.
  [[nodiscard]] virtual bool starting() const noexcept = 0;
  /// True while the problem's inputs and references are being made.
  [[nodiscard]] virtual bool preparing() const noexcept = 0;
  [[nodiscard]] virtual std::size_t trials_left() const noexcept = 0;
  [[nodiscard]] virtual bool busy() const noexcept = 0;
  /// True when nothing more can be measured; MeasuringEnded has the reason.
  [[nodiscard]] virtual bool ended() const noexcept = 0;
  /// True while a worker was lost and the next has not started.
  [[nodiscard]] virtual bool restarting() const noexcept = 0;
  [[nodiscard]] virtual const WorkerTimes& times() const noexcept = 0;
  /// Milliseconds of these that it waited for the card to be steady: preheating, settling, cooling.
  [[nodiscard]] virtual double waited_ms() const noexcept = 0;

 protected:
  Lab(const Lab&) = delete;
  Lab(Lab&&) = default;
  Lab& operator=(const Lab&) = delete;
  Lab& operator=(Lab&&) = default;
};

}  // namespace pascaline
