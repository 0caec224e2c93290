#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tuner/ipc/frames.hpp"
#include "tuner/ipc/worker_process.hpp"
#include "tuner/measure/lab.hpp"
#include "tuner/measure/measure_jobs.hpp"
#include "tuner/measure/worker_deadline.hpp"

namespace pascaline {

/// One device, owned by a child process that can be killed: it measures what it is given, in order. A kernel that hangs
/// or takes the process or the device along costs its own trial; the process is replaced and goes on with the rest.
class MeasureClient final : public Lab {
 public:
  using Clock = std::chrono::steady_clock;

  explicit MeasureClient(MeasureClientOptions options);

  /// Starts the worker.
  void warm_up() override;
  void set_problem(MeasureProblem problem) override;
  void submit(TrialJob job) override;
  void submit(FinalsJob job) override;
  [[nodiscard]] std::vector<TrialJob> take_back() override;
  /// Ends the worker.
  void interrupt() override;

  /// Reads what the worker says and looks at deadlines. Throws Error if no process can be started.
  void pump(std::vector<MeasureEvent>& events) override;
  [[nodiscard]] std::vector<pollfd> wakeups() const override;
  /// When the worker will have been silent for too long.
  [[nodiscard]] Clock::time_point wakes_at() const noexcept override { return deadline_.at(); }

  [[nodiscard]] bool starting() const noexcept override { return static_cast<bool>(worker_) && !ready_; }
  [[nodiscard]] bool preparing() const noexcept override { return preparing_; }
  [[nodiscard]] std::size_t trials_left() const noexcept override { return trials_.size(); }
  [[nodiscard]] bool busy() const noexcept override { return !trials_.empty() || finals_ || preparing_; }
  [[nodiscard]] bool ended() const noexcept override { return ended_; }
  [[nodiscard]] bool restarting() const noexcept override { return worker_.process() <= 0 && restarts_ > 0; }
  [[nodiscard]] const WorkerTimes& times() const noexcept override { return times_; }
  [[nodiscard]] double waited_ms() const noexcept override { return waited_ms_; }
  [[nodiscard]] int worker_process() const noexcept { return worker_.process(); }
  [[nodiscard]] int restarts() const noexcept { return restarts_; }

 private:
  static constexpr int kMaxFailures = 3;  ///< worker processes in a row that may come to nothing

  void start();
  void send(const nlohmann::json& message);
  void send_problem();
  void send_trial(const TrialJob& job);
  void send_finals();
  [[nodiscard]] std::optional<double> end_s(double leave_s, std::optional<double> allowed_s = std::nullopt) const;

  // For what the worker says.
  void handle(const nlohmann::json& message, std::vector<MeasureEvent>& events);
  void read_worker(std::vector<MeasureEvent>& events);
  void enter_phase(const nlohmann::json& message);
  void hear_telemetry(const nlohmann::json& message, std::vector<MeasureEvent>& events);
  void finish_trial(const nlohmann::json& message, std::vector<MeasureEvent>& events);
  void cut_trial(const nlohmann::json& message, std::vector<MeasureEvent>& events);
  void finish_finals(const nlohmann::json& message, std::vector<MeasureEvent>& events);
  void expect_trial(const nlohmann::json& message) const;
  void note_answer(const nlohmann::json& message);

  // When the worker is gone, or has to go.
  void refuse(std::string reason, std::vector<MeasureEvent>& events);
  void replace_if_idle();
  void lose_worker(bool overdue, std::vector<MeasureEvent>& events);
  [[nodiscard]] bool blame(TrialStatus status, const std::string& reason, std::vector<MeasureEvent>& events);
  void end(MeasuringEnded ended, std::vector<MeasureEvent>& events);

  MeasureClientOptions options_;
  WorkerProcess worker_;
  FrameReader reader_;
  std::string outgoing_;                                   ///< not yet in the worker's pipe
  Clock::time_point start_at_ = Clock::time_point::min();  ///< no worker is started before
  std::optional<MeasureProblem> problem_;
  bool ready_ = false;  ///< the worker's device is open and steady
  bool preparing_ = false;
  std::deque<TrialJob> trials_;
  std::optional<FinalsJob> finals_;
  std::optional<std::uint64_t> running_;  ///< job the worker has begun
  std::size_t finalist_ = 0;              ///< whose turn it is in the finals
  std::string phase_;
  WorkerDeadline deadline_;
  std::string last_words_;  ///< why the worker said it ends
  int failures_ = 0;        ///< worker processes in a row that failed
  int preparations_ = 0;    ///< of the problem, in vain
  int restarts_ = 0;
  WorkerTimes times_;
  double waited_ms_ = 0;
  bool replace_worker_ = false;  ///< once it has nothing to do: it was sent trials that were taken back
  bool ended_ = false;
};

}  // namespace pascaline
