#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/space/space.hpp"
#include "core/trial.hpp"
#include "core/util/deadline.hpp"
#include "tuner/ipc/frames.hpp"
#include "tuner/ipc/worker_process.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/monitor/governor.hpp"
#include "tuner/sweep/finals.hpp"

namespace pascaline {

/// How a device is measured on.
struct LaneOptions {
  std::string device = "emulator";
  std::string target;             ///< empty: the device's own architecture
  std::filesystem::path program;  ///< the pascaline executable
  std::filesystem::path sensors;  ///< a trace that stands for the card's sensors; empty: the card's own
  MeasureOptions measure;
  GovernorOptions governor;
  double kernel_timeout_s = 60;  ///< of a launch while nothing is known of how long they take
  double patience = 1;           ///< factor on the time that everything but launches may take
  Deadline deadline{};           ///< the worker stops measuring and waiting by itself then
};

/// The problem a lane measures configurations of.
struct LaneProblem {
  const Space* space = nullptr;
  Problem problem;
  std::optional<Binary> reference;
  std::uint64_t seed = 1;
};

/// A configuration to measure.
struct TrialJob {
  std::uint64_t id = 0;
  Binary binary;
  Trial blank;         ///< what is known before it runs
  double best_us = 0;  ///< best time so far, 0 if none
  double leave_s = 0;  ///< of the time that is left, what is needed behind it
};

/// Configurations to compare.
struct FinalsJob {
  std::uint64_t id = 0;
  std::vector<std::pair<Trial, Binary>> finalists;  ///< each with what is known before it runs
  FinalsOptions options;
  double best_us = 0;
  std::optional<double> allowed_s{};  ///< for all of it, less than what is left
};

// What a lane tells.
struct TrialDone {
  std::uint64_t id = 0;
  Trial trial;
};
struct TrialCut {  ///< the time was up before there was a result
  TrialJob job;
};
struct FinalsDone {
  std::uint64_t id = 0;
  std::optional<FinalsResult> result;  ///< nothing if no finalist ran to the end
};
struct FinalistFailed {  ///< the finals go on without it
  Trial trial;
};
struct ProblemPrepared {};
struct ProblemRefused {
  std::string reason;
};
struct LaneTelemetry {
  std::int64_t unix_ms = 0;
  Sensors sensors;
  GovernorState state = GovernorState::measuring;
  std::string reason;
  std::optional<double> canary_us;
};
struct LaneRestarted {  ///< the worker process was replaced; every job but the one to blame is done again
  std::string reason;   ///< empty if a trial's or finalist's reason says it
};
struct LaneEnded {  ///< nothing more can be measured on the device
  std::string reason;
  bool gave_up = false;  ///< by the governor's decision
};
using LaneEvent = std::variant<TrialDone, TrialCut, FinalsDone, FinalistFailed, ProblemPrepared, ProblemRefused,
                               LaneTelemetry, LaneRestarted, LaneEnded>;

/// One device, owned by a child process that can be killed: it measures what it is given, in order. A kernel that hangs
/// or takes the process or the device along costs its own trial; the process is replaced and goes on with the rest.
class MeasureClient {
 public:
  using Clock = std::chrono::steady_clock;

  explicit MeasureClient(LaneOptions options);

  /// Starts the worker before there is anything to do, so that the card is steady when there is.
  void warm_up();
  /// Sets the problem of all jobs after it; there must be no job left. Answered by ProblemPrepared or ProblemRefused.
  void set_problem(LaneProblem problem);
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
  void pump(std::vector<LaneEvent>& events);
  /// Descriptor to poll for reading, -1 if there is none.
  [[nodiscard]] int descriptor() const noexcept { return worker_ ? worker_.output() : -1; }
  /// Descriptor to poll for writing, -1 if there is nothing to write.
  [[nodiscard]] int write_descriptor() const noexcept { return worker_ && !outgoing_.empty() ? worker_.input() : -1; }
  [[nodiscard]] Clock::time_point deadline() const noexcept { return deadline_; }

  [[nodiscard]] std::size_t trials_left() const noexcept { return trials_.size(); }
  [[nodiscard]] bool busy() const noexcept { return !trials_.empty() || finals_ || preparing_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] int worker_process() const noexcept { return worker_.process(); }
  /// Time the worker spent on problems, trials and finals, in milliseconds.
  [[nodiscard]] double busy_ms() const noexcept { return busy_ms_; }
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
  void handle(const nlohmann::json& message, std::vector<LaneEvent>& events);
  void read_worker(std::vector<LaneEvent>& events);
  void enter_phase(const nlohmann::json& message);
  void hear_telemetry(const nlohmann::json& message, std::vector<LaneEvent>& events);
  void finish_trial(const nlohmann::json& message, std::vector<LaneEvent>& events);
  void cut_trial(const nlohmann::json& message, std::vector<LaneEvent>& events);
  void finish_finals(const nlohmann::json& message, std::vector<LaneEvent>& events);
  void expect_trial(const nlohmann::json& message) const;
  void note_answer(const nlohmann::json& message);
  [[nodiscard]] nlohmann::json end_s(double leave_s, std::optional<double> allowed_s = std::nullopt) const;
  void forgive_absence();
  void refuse(std::string reason, std::vector<LaneEvent>& events);
  void replace_if_idle();
  void lose_worker(bool overdue, std::vector<LaneEvent>& events);
  [[nodiscard]] bool blame(TrialStatus status, const std::string& reason, std::vector<LaneEvent>& events);
  void allow(double seconds);
  [[nodiscard]] double launch_limit_s(double best_us) const;
  void end(std::string reason, bool gave_up, std::vector<LaneEvent>& events);

  LaneOptions options_;
  WorkerProcess worker_;
  FrameReader reader_;
  std::string outgoing_;                                   ///< not yet in the worker's pipe
  Clock::time_point start_at_ = Clock::time_point::min();  ///< no worker is started before
  std::optional<LaneProblem> problem_;
  bool ready_ = false;  ///< the worker's device is open and steady
  bool preparing_ = false;
  std::deque<TrialJob> trials_;
  std::optional<FinalsJob> finals_;
  std::optional<std::uint64_t> running_;  ///< job the worker has begun
  std::size_t finalist_ = 0;              ///< whose turn it is in the finals
  std::string phase_;
  double allowed_s_ = 0;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point paused_until_ = Clock::time_point::max();  ///< the longest the governor may keep it waiting
  std::string last_words_;                                     ///< why the worker said it ends
  int failures_ = 0;                                           ///< worker processes in a row that came to nothing
  int preparations_ = 0;                                       ///< of the problem, in vain
  int restarts_ = 0;
  double busy_ms_ = 0;
  double waited_ms_ = 0;
  bool replace_worker_ = false;  ///< once it has nothing to do: it was sent trials that were taken back
  Clock::time_point pumped_ = Clock::now();
  bool ended_ = false;
};

}  // namespace pascaline
