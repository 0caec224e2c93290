#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
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
#include "tuner/services/services.hpp"
#include "tuner/sweep/agenda.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/compiler_axis.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_task.hpp"
#include "tuner/sweep/transfer_priors.hpp"

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
  /// The task a free device should turn to, taken for it; nothing if there is none.
  /// `left_s`: until the sweep ends.
  /// Where all searches are at their end, one to be deepened (SweepTask::deepening), if anything may be gained by that.
  [[nodiscard]] SweepTask* next_task(std::optional<double> left_s);
  /// Of `left_s` until the sweep ends: what is kept for first looks at sites of a model, and how many those are.
  struct KeptForSites {
    double seconds = 0;  ///< of a device
    int sites = 0;
    double each_s = 0;  ///< of one of them; where there are none, of a site that is compared again at the end
  };
  [[nodiscard]] KeptForSites kept_for_sites(double left_s) const;
  /// Whether a task stays when its search is over, as time that is left may go to it.
  [[nodiscard]] bool keeps(const SweepTask& task) const;
  /// A result was decided.
  void note_winner(SweepTask& task, const Config& winner);
  /// Asks for the finalists' binaries that are not at hand.
  void gather_finalists(SweepTask& task);
  /// True if a task that no device has waits for its first look (SweepTask::fresh).
  [[nodiscard]] bool any_fresh_waits() const;
  /// Whether every task is over.
  [[nodiscard]] bool all_over() const;
  /// Seconds that the next trials of a task are expected to keep a device, with preparation and finals.
  [[nodiscard]] double expected_s(const SweepTask& task) const;
  /// True if another task that waits is expected to save more in the time than more trials of this one, which a device
  /// has.
  [[nodiscard]] bool prefers_another(const SweepTask& present, std::optional<double> left_s) const;

  [[nodiscard]] const DeviceInfo& info() const noexcept { return info_; }
  [[nodiscard]] const CompileTarget& target() const noexcept { return target_; }
  [[nodiscard]] const std::vector<SweepKernel>& kernels() const noexcept { return kernels_; }
  [[nodiscard]] const CompilerAxis& compilers() const noexcept { return compilers_; }
  /// A line for each compiler that was asked for and is not used, with the reason.
  [[nodiscard]] const std::vector<std::string>& compilers_left_out() const noexcept { return left_out_; }
  /// What makes and runs the code, by compiler.
  [[nodiscard]] std::vector<ToolkitRow> toolkits() const;
  /// Has every search heed it (ProblemSearch::heed).
  void heed(const StopCheck& check);
  /// Whether a search is looking for a valid configuration that is far away: `fill_pool` looks on.
  [[nodiscard]] bool looking() const noexcept { return looking_; }
  [[nodiscard]] const Builder& builder() const noexcept { return *builder_; }
  /// Rows of the device and of the first compiler's toolkit.
  [[nodiscard]] const ContextIds& context() const noexcept { return context_; }
  /// Shapes in between are among them, the reserved ones, too.
  [[nodiscard]] const std::vector<std::unique_ptr<SweepTask>>& tasks() const noexcept { return tasks_; }
  /// Tasks without shapes in between.
  [[nodiscard]] std::size_t problems() const;
  /// What searches of other problems than those in between took over from other devices and element types, in the order
  /// of the tasks.
  [[nodiscard]] std::vector<TakenOver> taken_over() const;
  /// The same for the log: a line for each of these devices, one for other types before the run, one for those in it.
  [[nodiscard]] std::vector<std::string> taken_over_lines() const;
  [[nodiscard]] double compile_ms() const noexcept { return compile_ms_; }

 private:
  enum class Purpose : std::uint8_t { search, reference, finals };
  struct Job {
    SweepTask* task = nullptr;
    Purpose purpose = Purpose::search;
    Config config;
    int tries = 0;
  };

  /// A task that waits for a device.
  struct Waiting {
    SweepTask* task = nullptr;
    bool first = false;  ///< before anything is deepened
    double rate = 0;     ///< SearchAction::rate; of a kernel's problem
  };

  using Tasks = std::vector<std::unique_ptr<SweepTask>>;
  [[nodiscard]] Tasks make_tasks(const std::vector<SweepProblem>& problems,
                                 const std::function<void()>& check_time) const;
  void store_rows(Store& store, const Tasks& tasks, const std::function<void()>& check_time);
  void recall(SweepRecorder& recorder, SweepTask& task, const std::string& run) const;
  void recall_elsewhere(SweepRecorder& recorder, SweepTask& task) const;
  void take_over_trials(SweepRecorder& recorder, SweepTask& task) const;
  void take_over_winners(SweepTask& task) const;
  [[nodiscard]] bool takes_over(const SweepTask& task) const;
  void recall_other_types(SweepTask& task) const;
  void begin_with_types_of_run(SweepTask& task) const;
  [[nodiscard]] std::vector<RelatedProblem> of_other_types(const SweepTask& task) const;
  [[nodiscard]] CompileRequest request(const SweepTask& task, const Config& config) const;
  [[nodiscard]] std::vector<RelatedProblem> measured_before(const SweepTask& task, bool other_types) const;
  [[nodiscard]] const SweepKernel& kernel_of(const Problem& problem) const;
  [[nodiscard]] std::optional<Config> propose(SweepTask& task);
  void compile(Job job, bool urgent);
  void submit(Job job, CompileRequest request, bool urgent);
  [[nodiscard]] Compiled site_code(std::uint64_t id, const SweepTask& task, const Config& config) const;
  [[nodiscard]] std::optional<Compiled> next_compiled();
  void compile_reference(SweepTask& task);
  void fill_from(SweepTask& task, std::size_t most_open);
  [[nodiscard]] bool try_again(const Job& job, TrialStatus status);
  void take_reference(SweepTask& task, const Config& config, Compiled compiled);
  void fill_with_first(SweepTask& task);
  void fill_with_first(const std::vector<Waiting>& waiting);
  [[nodiscard]] std::vector<Outlook> outlooks() const;
  [[nodiscard]] std::vector<double> estimated_defaults_us() const;
  [[nodiscard]] int kernel_rank(const SweepTask& task, std::optional<double> left_s) const;
  [[nodiscard]] std::vector<Waiting> in_order(std::optional<double> left_s = std::nullopt) const;

  // Sites of a model, with a limit of time: device_plan_sites.cpp.
  void find_launched();
  void fill_for_sites();
  [[nodiscard]] int site_rank(const SweepTask& site, std::optional<double> left_s) const;
  [[nodiscard]] static std::size_t unready(const SweepTask& site);
  [[nodiscard]] static std::string winners_launched(const SweepTask& site);
  [[nodiscard]] bool kernels_untried() const;
  [[nodiscard]] double last_sites_s() const;

  // Time that is left: device_plan_deepening.cpp.
  struct Near {
    double octaves = 0;
    SweepTask* task = nullptr;
  };
  struct Choice {
    Deepening what = Deepening::none;
    SweepTask* task = nullptr;
    double rate = 0;    ///< microseconds of the model that a second is expected to save
    double share = 0;   ///< of the problem's time, expected
    double weight = 0;  ///< of a shape in between
  };
  [[nodiscard]] bool deepens_here() const;
  [[nodiscard]] bool ended(const SweepTask& task) const;
  [[nodiscard]] std::vector<Near> tuned_around(const SweepTask& task) const;
  [[nodiscard]] std::optional<Choice> choice_between(SweepTask& task, double trial_s, double left_s) const;
  [[nodiscard]] std::optional<Choice> choice_of_finals(SweepTask& task) const;
  [[nodiscard]] std::optional<Choice> choice_of_neighbours(SweepTask& task, double trial_s) const;
  [[nodiscard]] std::vector<Choice> choices(double left_s) const;
  [[nodiscard]] std::vector<Config> winners_near(const SweepTask& task) const;
  [[nodiscard]] bool begin_deepening(const Choice& choice);
  [[nodiscard]] SweepTask* deepen(double left_s);
  void finish_ended();
  void recall_finals(SweepRecorder& recorder, SweepTask& task, const std::string& run) const;
  [[nodiscard]] std::vector<Prior> known_before_search(const SweepTask& task, const SearchDomain& domain) const;
  [[nodiscard]] std::optional<DeviceRates> device_rates() const;

  const SweepOptions& options_;
  DeviceInfo info_;
  CompileTarget target_;
  std::vector<std::string> left_out_{};
  CompilerAxis compilers_;
  CompilerAxis first_compiler_;       ///< of them, of sites
  std::deque<Space> searched_;        ///< the spaces with the compiler among their parameters
  std::vector<SweepKernel> kernels_;  ///< each stays where it is: tasks and requests refer to it
  std::unique_ptr<Builder> builder_;
  ContextIds context_{};
  MeasuredRates measured_rates_;        // of the device, by `pascaline probe`
  std::vector<std::int64_t> toolkits_;  ///< rows, by compiler
  std::vector<std::unique_ptr<SweepTask>> tasks_;
  std::map<std::uint64_t, Job> jobs_;
  std::deque<Compiled> site_codes_;  ///< that nobody has taken yet
  double first_left_s_ = 0;          ///< of the time, when it was first told
  std::uint64_t next_id_ = 1;
  double compile_ms_ = 0;
  int compiled_ = 0;
  StopCheck check_;                 ///< of searches for a configuration
  bool looking_ = false;            ///< at the last `fill_pool`
  bool nothing_to_deepen_ = false;  ///< at the last look
};

}  // namespace pascaline
