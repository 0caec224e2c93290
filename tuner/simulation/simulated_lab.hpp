#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "tuner/measure/lab.hpp"
#include "tuner/measure/race.hpp"
#include "tuner/simulation/simulated_world.hpp"

namespace pascaline {

/// The worker of one device of a simulated world.
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
  [[nodiscard]] bool restarting() const noexcept override { return false; }
  [[nodiscard]] const WorkerTimes& times() const noexcept override { return times_; }
  [[nodiscard]] double waited_ms() const noexcept override { return 0; }

  /// From now on the device is gone: nothing more is measured on it.
  void lose_device() { lost_ = true; }

 private:
  enum class Work : std::uint8_t { none, opening, preparing, trial, finals };

  void begin_next(SweepClock::TimePoint at);
  void begin(Work work, SweepClock::TimePoint at, double seconds);
  void begin_trial(SweepClock::TimePoint at);
  void begin_finals(SweepClock::TimePoint at);
  void finish(std::vector<MeasureEvent>& events);
  [[nodiscard]] Trial measured(const Trial& blank);
  void add_round(FinalsResult& result, double& seconds);
  [[nodiscard]] double draw_us(const SimulatedResult& result);
  [[nodiscard]] double left_s(SweepClock::TimePoint at) const;

  MeasureClientOptions options_;
  const SimulatedWorld& world_;
  const SweepClock& clock_;
  std::mt19937_64 generator_{1};
  NoiseScale noise_{};
  std::optional<MeasureProblem> problem_{};
  std::deque<TrialJob> trials_{};
  std::optional<FinalsJob> finals_{};
  std::optional<Trial> trial_result_{};          ///< of the trial in work; nothing if the time will be up before
  std::optional<FinalsResult> finals_result_{};  ///< of the finals in work
  Work work_ = Work::none;
  SweepClock::TimePoint begun_at_{};
  SweepClock::TimePoint ends_at_ = SweepClock::TimePoint::max();
  WorkerTimes times_{};
  bool wanted_ = false;
  bool open_ = false;
  bool preparing_ = false;
  bool lost_ = false;
  bool ended_ = false;
};

}  // namespace pascaline
