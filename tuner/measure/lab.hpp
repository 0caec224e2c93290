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

/// Measures on one device what it is given, in order: one problem after the other, each with its trials and finals.
class Lab {
 public:
  Lab() = default;
  virtual ~Lab() = default;

  /// Opens the device before there is anything to do, so that the card is steady when there is.
  virtual void warm_up() = 0;
  /// Sets the problem of all jobs after it; there must be no job left. Answered by ProblemPrepared or ProblemRefused.
  virtual void set_problem(MeasureProblem problem) = 0;
  virtual void submit(TrialJob job) = 0;
  virtual void submit(FinalsJob job) = 0;
  /// Takes back every trial that was not begun; returns them.
  [[nodiscard]] virtual std::vector<TrialJob> take_back() = 0;
  /// Ends at once what is measured and all that was given but trials, which can all be taken back then.
  virtual void interrupt() = 0;

  /// Appends the results of the jobs to `events`, without waiting. Throws Error if nothing can be measured for a fault
  /// of the environment.
  virtual void pump(std::vector<MeasureEvent>& events) = 0;
  /// Descriptors that are ready when `pump` has something to do.
  [[nodiscard]] virtual std::vector<pollfd> wakeups() const = 0;
  /// When `pump` is to be called even if none of them is ready.
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
