#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/measure/lab.hpp"
#include "tuner/simulation/simulated_bench.hpp"
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
  [[nodiscard]] SweepClock::TimePoint wakes_at() const noexcept override { return work_.ends_at; }
  [[nodiscard]] bool starting() const noexcept override { return work_.what == Work::opening; }
  [[nodiscard]] bool preparing() const noexcept override { return preparation_.open; }
  [[nodiscard]] std::size_t trials_left() const noexcept override { return trials_.size(); }
  [[nodiscard]] bool busy() const noexcept override { return !trials_.empty() || finals_ || preparation_.open; }
  [[nodiscard]] bool ended() const noexcept override { return ended_; }
  [[nodiscard]] bool restarting() const noexcept override { return !worker_.started && worker_.restarts > 0; }
  [[nodiscard]] const WorkerTimes& times() const noexcept override { return times_; }
  [[nodiscard]] double waited_ms() const noexcept override { return waited_ms_; }

  /// The worker ends now, and takes what is on the device along; another one is started.
  void lose_worker(std::string how = "the measuring process ended: signal 9") { worker_.loss = std::move(how); }
  /// The worker stands still from now on, and is replaced when it was silent for too long.
  void stop_worker();
  /// From now on the device is gone: the worker ends, and so does every other one that is started.
  void lose_device(std::string how = "the device was lost");

 private:
  enum class Work : std::uint8_t { none, waiting, opening, preparing, trial, finals };
  /// The worker's present work. Its result is computed when the work begins.
  struct WorkInHand {
    Work what = Work::none;
    SweepClock::TimePoint begun_at{};
    SweepClock::TimePoint ends_at = SweepClock::TimePoint::max();
    std::optional<Trial> trial{};          ///< nothing if the time ends before the trial does
    std::optional<FinalsResult> finals{};  ///< nothing if no finalist runs
    bool gives_up = false;                 ///< the card is unfit at the end of the trial or finals
    std::string overdue{};                 ///< why the worker is replaced when the work ends; empty if it is not
  };
  struct Worker {
    bool wanted = false;
    bool started = false;
    SweepClock::TimePoint start_at{};  ///< earliest start of the next worker
    std::string loss{};                ///< how the worker just ended; empty if it did not
    std::string device_fault{};        ///< how each new worker ends; empty while the device works
    int failures = 0;                  ///< workers in a row that failed
    int restarts = 0;
  };
  struct Preparation {
    std::optional<MeasureProblem> problem{};
    std::deque<Problem> queue{};  ///< for the worker, in this order
    bool open = false;            ///< the problem is not prepared yet
    int in_vain = 0;              ///< workers lost while preparing the problem
  };

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
  [[nodiscard]] double allowed_s(const std::string& phase) const;
  [[nodiscard]] double left_s(SweepClock::TimePoint at) const;

  MeasureClientOptions options_;
  const SimulatedWorld& world_;
  const SweepClock& clock_;
  SimulatedBench bench_;
  SimulatedCard& card_;  ///< of the bench
  Preparation preparation_{};
  std::deque<TrialJob> trials_{};
  std::optional<FinalsJob> finals_{};
  WorkInHand work_{};
  Worker worker_{};
  WorkerTimes times_{};
  double waited_ms_ = 0;
  bool ended_ = false;
};

}  // namespace pascaline
