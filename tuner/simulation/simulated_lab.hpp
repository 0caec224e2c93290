#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tuner/measure/lab.hpp"
#include "tuner/measure/race.hpp"
#include "tuner/simulation/simulated_card.hpp"
#include "tuner/simulation/simulated_world.hpp"

namespace pascaline {

/// The worker of one device of a simulated world, which is lost and replaced as real ones are (MeasureClient).
class SimulatedLab final : public Lab {
 public:
  /// The world and the clock must outlive it.
  SimulatedLab(MeasureClientOptions options, const SimulatedWorld& world, const SweepClock& clock);

  void warm_up() override;
  void set_problem(MeasureProblem problem) override;
  void submit(TrialJob job) override;
  void submit(FinalsJob job) override;
  [[nodiscard]] std::vector<TrialJob> take_back() override;
  void interrupt() override;
  void pump(std::vector<MeasureEvent>& events) override;
  [[nodiscard]] std::vector<pollfd> wakeups() const override { return {}; }
  [[nodiscard]] SweepClock::TimePoint wakes_at() const noexcept override { return ends_at_; }
  [[nodiscard]] bool starting() const noexcept override { return work_ == Work::opening; }
  [[nodiscard]] bool preparing() const noexcept override { return preparing_; }
  [[nodiscard]] std::size_t trials_left() const noexcept override { return trials_.size(); }
  [[nodiscard]] bool busy() const noexcept override { return !trials_.empty() || finals_ || preparing_; }
  [[nodiscard]] bool ended() const noexcept override { return ended_; }
  [[nodiscard]] bool restarting() const noexcept override { return !started_ && restarts_ > 0; }
  [[nodiscard]] const WorkerTimes& times() const noexcept override { return times_; }
  [[nodiscard]] double waited_ms() const noexcept override { return waited_ms_; }

  /// The worker ends now, and takes what is on the device along; another one is started.
  void lose_worker(std::string how = "the measuring process ended: signal 9") { loss_ = std::move(how); }
  /// The worker stands still from now on, and is replaced when it was silent for too long.
  void stop_worker();
  /// From now on the device is gone: the worker ends, and so does every other one that is started.
  void lose_device(std::string how = "the device was lost");

 private:
  enum class Work : std::uint8_t { none, waiting, opening, preparing, trial, finals };

  void begin_next(SweepClock::TimePoint at);
  void begin(Work work, SweepClock::TimePoint at, double seconds);
  void open(SweepClock::TimePoint at);
  void begin_trial(SweepClock::TimePoint at);
  void begin_finals(SweepClock::TimePoint at);
  void finish(std::vector<MeasureEvent>& events);
  void finish_opening(double spent_ms, std::vector<MeasureEvent>& events);
  void finish_preparing(double spent_ms, std::vector<MeasureEvent>& events);
  void finish_trial(double spent_ms, std::vector<MeasureEvent>& events);
  void lose(const std::string& how, TrialStatus status, std::vector<MeasureEvent>& events);
  [[nodiscard]] bool blame(Work lost, TrialStatus status, const std::string& how, std::vector<MeasureEvent>& events);
  void refuse(std::string reason, std::vector<MeasureEvent>& events);
  void end(MeasuringEnded ended, std::vector<MeasureEvent>& events);
  void report_readings(std::vector<MeasureEvent>& events);
  void measure_trial(Trial& trial, const TrialJob& job);
  void take_recorded(Trial& trial, const SimulatedResult& result);
  void time_trial(Trial& trial, const TrialJob& job, const SimulatedResult& result);
  [[nodiscard]] TimedWork work_of(const Trial& trial, const SimulatedResult& result);
  [[nodiscard]] double allowed_s(const std::string& phase) const;
  [[nodiscard]] double draw_us(const SimulatedResult& result);
  [[nodiscard]] double left_s(SweepClock::TimePoint at) const;

  MeasureClientOptions options_;
  const SimulatedWorld& world_;
  const SweepClock& clock_;
  SimulatedCard card_;
  std::mt19937_64 generator_{1};
  NoiseScale noise_{};
  std::optional<MeasureProblem> problem_{};
  std::deque<Problem> to_prepare_{};  ///< by the worker, in this order
  std::deque<TrialJob> trials_{};
  std::optional<FinalsJob> finals_{};
  std::optional<Trial> trial_result_{};          ///< of the trial in work; nothing if the time will be up before
  std::optional<FinalsResult> finals_result_{};  ///< of the finals in work; nothing if no finalist runs
  bool gives_up_ = false;                        ///< the trial or the finals in work end with the card unfit
  int back_to_back_ = 0;                         ///< launches that were not timed
  Work work_ = Work::none;
  SweepClock::TimePoint begun_at_{};
  SweepClock::TimePoint ends_at_ = SweepClock::TimePoint::max();
  SweepClock::TimePoint start_at_{};  ///< no worker is started before
  std::string loss_{};                ///< how the worker ended just now; empty: it did not
  std::string overdue_{};       ///< that it will have been silent for too long when the work ends; empty: it will not
  std::string device_fault_{};  ///< how each new worker ends; empty: the device is there
  int failures_ = 0;            ///< workers in a row that failed
  int preparations_ = 0;        ///< of the problem, in vain
  int restarts_ = 0;
  WorkerTimes times_{};
  double waited_ms_ = 0;
  bool wanted_ = false;
  bool started_ = false;
  bool preparing_ = false;
  bool ended_ = false;
};

}  // namespace pascaline
