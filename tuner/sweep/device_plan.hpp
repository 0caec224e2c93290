#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/device.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/problem_search.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline {

/// A problem of the plan on one kind of device.
struct SweepTask {
  SweepTask(const Space& space, const SweepProblem& wanted, const DeviceLimits& limits, const SweepOptions& options)
      : search(space, wanted, limits, options) {}

  enum class Reference : std::uint8_t { none, wanted, compiling, ready, unusable };

  ProblemSearch search;
  ContextIds context{};
  std::size_t index = 0;   ///< place in the plan
  bool owned = false;      ///< a lane works on it
  bool over = false;       ///< nothing more is to be done on it
  bool decided = false;    ///< it has a winner of this run
  std::string decided_on;  ///< the finalists that were compared
  Reference reference = Reference::none;
  Binary reference_binary;
  std::string no_reference;  ///< why it is unusable
  double spent_s = 0;        ///< of a device
  bool looked_at = false;    ///< in this run: a configuration ran, or nothing that could run was found in its turn
  double put_off_s = 0;      ///< that it kept a device without a trial, when it last had to make room for others
  std::map<std::string, std::optional<Binary>> finalists;  ///< being compiled again for finals
  bool gathering = false;                                  ///< waiting for those
};

/// Devices of one model, which share a plan: what is compiled for them, and what is left to do.
class DevicePlan {
 public:
  /// A settled or ready configuration tells the caller to look; `settled` must be stored by the caller.
  struct Outcome {
    SweepTask* task = nullptr;
    ProblemSearch::ResolvedTrial settled;
  };

  DevicePlan(const Space& space, const SweepOptions& options, const DeviceInfo& info, std::size_t jobs);

  /// Stores the rows that every trial hangs on, all or none; makes the tasks and lets them recall what is known.
  /// `go_on` is called before each of many short steps: what it throws ends the planning and passes.
  void plan(SweepRecorder& recorder, const std::vector<SweepProblem>& problems, const std::string& run,
            const std::function<void()>& go_on);

  /// Keeps the compile workers busy, first with what lanes wait for, then with what comes next. With `closing` nothing
  /// new is begun.
  void fill_pool(bool closing);
  /// Takes what the compilers finished.
  [[nodiscard]] std::vector<Outcome> take_compiled();
  /// The task a free lane should turn to; nothing if there is none. Owned by the caller then.
  /// `left_s`: until the sweep ends.
  [[nodiscard]] SweepTask* next_task(std::optional<double> left_s);
  /// Whether it waits for its first look of this run.
  [[nodiscard]] static bool untried(const SweepTask& task) { return !task.over && !task.looked_at; }
  /// Asks for the finalists' binaries that are not at hand; `gathering` ends when all are there.
  void gather_finalists(SweepTask& task);
  /// Whether every task is over.
  [[nodiscard]] bool all_over() const;
  [[nodiscard]] std::vector<SearchProgress> progress() const;

  [[nodiscard]] const DeviceInfo& info() const noexcept { return info_; }
  [[nodiscard]] const TargetPlan& target() const noexcept { return target_; }
  [[nodiscard]] const std::string& source_hash() const noexcept { return source_.hash; }
  [[nodiscard]] const Toolchain& toolchain() const noexcept { return toolchain_; }
  [[nodiscard]] CompilePool& pool() noexcept { return pool_; }
  [[nodiscard]] const ContextIds& context() const noexcept { return context_; }
  [[nodiscard]] const std::vector<std::unique_ptr<SweepTask>>& tasks() const noexcept { return tasks_; }
  [[nodiscard]] double compile_ms() const noexcept { return compile_ms_; }

 private:
  enum class Purpose : std::uint8_t { search, reference, finals };
  struct Job {
    SweepTask* task = nullptr;
    Purpose purpose = Purpose::search;
    Config config;
    int tries = 0;
  };

  using Tasks = std::vector<std::unique_ptr<SweepTask>>;
  [[nodiscard]] Tasks make_tasks(const std::vector<SweepProblem>& problems, const std::function<void()>& go_on) const;
  [[nodiscard]] ContextIds store_rows(Store& store, const Tasks& tasks, const std::function<void()>& go_on) const;
  void recall(SweepRecorder& recorder, SweepTask& task, const std::string& run) const;
  [[nodiscard]] CompileRequest request(const SweepTask& task, const Config& config) const;
  [[nodiscard]] CompileRequest reference_request(const SweepTask& task) const;
  void submit(Job job, CompileRequest request, bool urgent);
  void compile_reference(SweepTask& task);
  void fill_from(SweepTask& task, std::size_t most_open);
  [[nodiscard]] bool try_again(const Job& job, TrialStatus status);
  void take_reference(SweepTask& task, Compiled compiled);
  void fill_with_default(SweepTask& task);
  void fill_with_defaults(const std::vector<SweepTask*>& waiting);
  [[nodiscard]] std::vector<SweepTask*> in_order(std::optional<double> left_s = std::nullopt) const;
  [[nodiscard]] std::vector<Prior> known_before_search(const SweepTask& task, const SearchDomain& domain) const;

  const Space& space_;
  const SweepOptions& options_;
  DeviceInfo info_;
  TargetPlan target_;
  Toolchain toolchain_;
  KernelSource source_;
  CompilePool pool_;
  ContextIds context_{};
  std::vector<std::unique_ptr<SweepTask>> tasks_;
  std::vector<Store::Measured> measured_;  ///< before this run, of the same kernel
  std::map<std::uint64_t, Job> jobs_;
  std::uint64_t next_id_ = 1;
  double compile_ms_ = 0;
};

}  // namespace pascaline
