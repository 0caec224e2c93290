#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/device.hpp"
#include "tuner/services/services.hpp"
#include "tuner/sweep/actions.hpp"
#include "tuner/sweep/build_queue.hpp"
#include "tuner/sweep/compiler_axis.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_task.hpp"
#include "tuner/sweep/transfer.hpp"
#include "tuner/sweep/tunable.hpp"

namespace pascaline {

/// Devices of one model, which share a plan: what is compiled for them, and what is left to do.
class DevicePlan {
 public:
  /// A trial that took no device; the caller stores it.
  struct Outcome {
    SweepTask* task = nullptr;
    ProblemSearch::ResolvedTrial resolved;
  };

  /// Reads the source of each space's kernel; spaces and options must outlive it.
  DevicePlan(const std::vector<Space>& spaces, const SweepOptions& options, const SweepServices& services,
             const DeviceInfo& info, std::size_t jobs);

  /// Stores the rows that every trial hangs on, all or none; makes the tasks and lets them recall what is known.
  /// Throws Error for a problem that fits none of the spaces. `check_time` is called before each of many short steps:
  /// what it throws ends the planning and passes.
  void plan(SweepRecorder& recorder, const std::vector<SweepProblem>& problems, const std::string& run,
            const std::function<void()>& check_time);

  /// Session that the trials of tasks belong to which no device has had yet.
  void set_session(std::int64_t session);

  /// Keeps the compile workers busy, first with what devices wait for, then with what comes next. With `closing`
  /// nothing new is begun.
  void fill_pool(bool closing);
  /// Takes what the compilers finished.
  [[nodiscard]] std::vector<Outcome> take_compiled();
  /// The task a free device should turn to, taken for it; nothing if there is none. `left_s`: until the sweep ends.
  [[nodiscard]] SweepTask* next_task(std::optional<double> left_s);
  /// Asks for the finalists' binaries that are not at hand.
  void gather_finalists(SweepTask& task);
  /// True if a task that no device has waits for its first look (SweepTask::fresh).
  [[nodiscard]] bool any_fresh_waits() const;
  /// Whether every task is over.
  [[nodiscard]] bool all_over() const;
  [[nodiscard]] const Agenda& agenda() const noexcept { return agenda_; }
  [[nodiscard]] const DeviceInfo& info() const noexcept { return info_; }
  [[nodiscard]] const CompileTarget& target() const noexcept { return target_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Tunable>>& tunables() const noexcept { return tunables_; }
  [[nodiscard]] const CompilerAxis& compilers() const noexcept { return compilers_; }
  /// A line for each compiler that was asked for and is not used, with the reason.
  [[nodiscard]] const std::vector<std::string>& compilers_left_out() const noexcept { return left_out_; }
  /// What makes and runs the code, by compiler.
  [[nodiscard]] std::vector<ToolkitRow> toolkits() const;
  /// Has every search heed it (ProblemSearch::heed).
  void heed(const StopCheck& check);
  /// Whether the last `fill_pool` ended early: its time was up, or the next valid configuration is far away.
  [[nodiscard]] bool has_more_to_propose() const noexcept { return proposing_.time_over || proposing_.looking; }
  [[nodiscard]] const BuildQueue& builds() const noexcept { return builds_; }
  /// Rows of the device and of the first compiler's toolkit.
  [[nodiscard]] const ContextIds& context() const noexcept { return context_; }
  /// Shapes in between are among them, the reserved ones, too.
  [[nodiscard]] const std::vector<std::unique_ptr<SweepTask>>& tasks() const noexcept { return tasks_; }
  /// Tasks without shapes in between.
  [[nodiscard]] std::size_t problems() const;
  [[nodiscard]] const Transfer& transfer() const noexcept { return transfer_; }

 private:
  using Purpose = BuildQueue::Purpose;
  using Tasks = std::vector<std::unique_ptr<SweepTask>>;

  [[nodiscard]] Tasks make_tasks(const std::vector<SweepProblem>& problems,
                                 const std::function<void()>& check_time) const;
  void store_rows(Store& store, const Tasks& tasks, std::vector<std::int64_t>& toolkit_ids,
                  const std::function<void()>& check_time);
  void recall(SweepRecorder& recorder, SweepTask& task, const std::string& run) const;
  void find_launched();
  [[nodiscard]] const Tunable& tunable_of(const Problem& problem) const;
  [[nodiscard]] std::optional<Config> propose(SweepTask& task);
  void compile_reference(SweepTask& task);
  void fill_from(SweepTask& task, const std::function<bool()>& wants_more);
  void fill_ahead(SweepTask& task);
  static void take_reference(SweepTask& task, const Config& config, Compiled compiled);

  const SweepOptions& options_;
  DeviceInfo info_;
  CompileTarget target_;
  std::vector<std::string> left_out_{};
  CompilerAxis compilers_;
  CompilerAxis first_compiler_;   ///< of them, of sites
  std::deque<Space> searched_{};  ///< the spaces with the compiler among their parameters
  std::vector<std::unique_ptr<Tunable>> tunables_;
  Tasks tasks_{};
  ContextIds context_{};
  BuildQueue builds_;
  Transfer transfer_;
  Agenda agenda_;
  StopCheck check_{};  ///< of searches for a configuration
  struct Proposing {
    const SweepClock& clock;
    SweepClock::TimePoint until{};  ///< end of the present `fill_pool`, which blocks everything else
    bool time_over = false;         ///< the next `fill_pool` continues
    bool looking = false;           ///< for a valid configuration, for a device
  } proposing_;
};

}  // namespace pascaline
