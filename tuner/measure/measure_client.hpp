#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tuner/ipc/frames.hpp"
#include "tuner/ipc/worker_process.hpp"
#include "tuner/measure/measure_jobs.hpp"
#include "tuner/measure/worker_deadline.hpp"

namespace pascaline {

/// What a measurement worker spent its time on, in milliseconds.
struct WorkerTimes {
  double opening_ms = 0;    ///< opening the device and warming it up
  double preparing_ms = 0;  ///< buffers, first inputs and references of problems
  double trials_ms = 0;
  double finals_ms = 0;
  [[nodiscard]] double total_ms() const noexcept { return opening_ms + preparing_ms + trials_ms + finals_ms; }
};

/// One device, owned by a child process that can be killed: it measures what it is given, in order. A kernel that hangs
/// or takes the process or the device along costs its own trial; the process is replaced and goes on with the rest.
class MeasureClient {
 public:
  using Clock = std::chrono::steady_clock;

  explicit MeasureClient(MeasureClientOptions options);

  /// Starts the worker before there is anything to do, so that the card is steady when there is.
  void warm_up();
  /// Sets the problem of all jobs after it; there must be no job left. Answered by ProblemPrepared or ProblemRefused.
  void set_problem(MeasureProblem problem);
  void submit(TrialJob job);
  void submit(FinalsJob job);
  /// Takes back every trial that the worker has not begun; returns them.
  [[nodiscard]] std::vector<TrialJob> take_back();
  /// Ends the worker and everything it was given but trials, which can all be taken back then.
  void interrupt();
  /// Whether there is a worker that is still opening its device and making it steady.
  [[nodiscard]] bool starting() const noexcept { return static_cast<bool>(worker_) && !ready_; }
  /// Whether the problem's inputs and references are being made.
  [[nodiscard]] bool preparing() const noexcept { return preparing_; }

  /// Reads what the worker says and looks at deadlines, without waiting; appends to `events`. Throws Error if no
  /// process can be started.
  void pump(std::vector<MeasureEvent>& events);
  /// Descriptor to poll for reading, -1 if there is none.
  [[nodiscard]] int descriptor() const noexcept { return worker_ ? worker_.output() : -1; }
  /// Descriptor to poll for writing, -1 if there is nothing to write.
  [[nodiscard]] int write_descriptor() const noexcept { return worker_ && !outgoing_.empty() ? worker_.input() : -1; }
  [[nodiscard]] Clock::time_point deadline() const noexcept { return deadline_.at(); }

  [[nodiscard]] std::size_t trials_left() const noexcept { return trials_.size(); }
  [[nodiscard]] bool busy() const noexcept { return !trials_.empty() || finals_ || preparing_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] int worker_process() const noexcept { return worker_.process(); }
  /// What the worker spent its time on.
  [[nodiscard]] const WorkerTimes& times() const noexcept { return times_; }
  /// Of it, waiting for the card to be steady: preheating, settling, cooling.
  [[nodiscard]] double waited_ms() const noexcept { return waited_ms_; }
  [[nodiscard]] int restarts() const noexcept { return restarts_; }

 private:
  static constexpr int kMaxFailures = 3;  ///< worker processes in a row that may come to nothing

  void start();
  void send(const nlohmann::json& message);
  void send_problem();
  void send_trial(const TrialJob& job);
  void send_finals();
  [[nodiscard]] std::optional<double> end_s(double leave_s, std::optional<double> allowed_s = std::nullopt) const;

  // What the worker says: measure_client_answers.cpp.
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
