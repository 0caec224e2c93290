#include "tuner/sweep/device_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/finals/objective.hpp"
#include "tuner/sweep/code_judge.hpp"
#include "tuner/sweep/recall_finals.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxWithoutLearning = 512;  // whose code is kept
constexpr std::chrono::milliseconds kLongestProposing(10);
constexpr double kAlternativeWins = 0.25;  // guessed probability

CompilePoolOptions pool_options(const SweepOptions& options, const CompileTarget& target, const CompilerAxis& compilers,
                                std::size_t jobs) {
  CompilePoolOptions out;
  out.workers = jobs;
  out.program = options.files.program;
  out.cache_folder = options.files.cache;
  out.architecture = target.architecture;
  out.nvrtc = target.kind == BinaryKind::host_object ? "" : compilers.compilers().front().path;
  out.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options.compile.timeout_s));
  out.memory_bytes = options.compile.memory_bytes;
  return out;
}

// Compilers that were here when a run was begun and have gone since do not end it.
std::vector<CompilerInfo> sweep_compilers(const SweepOptions& options, const CompileTarget& target,
                                          const DeviceInfo& info, std::vector<std::string>& left_out) {
  CompilerChoice choice =
      find_compilers(target, info.driver_version, options.compile.nvrtc,
                     options.record.resume_run.empty() ? MissingCompiler::fault : MissingCompiler::left_out);
  left_out = std::move(choice.left_out);
  if (choice.found.size() == 1 && asks_for_compilers(options.compile.nvrtc)) {
    left_out.push_back(fmt::format("there is one compiler to use here: {}", choice.found.front().text()));
  }
  return std::move(choice.found);
}

}  // namespace

DevicePlan::DevicePlan(const std::vector<Space>& spaces, const SweepOptions& options, const SweepServices& services,
                       const DeviceInfo& info, std::size_t jobs)
    : options_(options),
      info_(info),
      target_(compile_target(info, options.compile.target)),
      compilers_(sweep_compilers(options, target_, info, left_out_)),
      first_compiler_({compilers_.compilers().front()}),
      tunables_(load_tunables(spaces, options, compilers_, first_compiler_, searched_)),
      builds_(services.builder(pool_options(options, target_, compilers_, jobs)), target_),
      transfer_(options, info_, tasks_),
      agenda_(options, tasks_, builds_),
      proposing_{*services.clock} {}

std::vector<ToolkitRow> DevicePlan::toolkits() const {
  std::vector<ToolkitRow> rows;
  for (const CompilerInfo& compiler : compilers_.compilers()) {
    rows.push_back(toolkit_row(compiler, target_, info_));
  }
  return rows;
}

const Tunable& DevicePlan::tunable_of(const Problem& problem) const {
  const auto found =
      std::ranges::find(tunables_, problem.kernel, [](const auto& tunable) { return tunable->own_space->kernel; });
  if (found == tunables_.end()) {
    throw Error(
        fmt::format("{}: there is no search space of kernel '{}' in this sweep; this is a fault of the "
                    "program, please report it",
                    problem.text(), problem.kernel));
  }
  return **found;
}

DevicePlan::Tasks DevicePlan::make_tasks(const std::vector<SweepProblem>& problems,
                                         const std::function<void()>& check_time) const {
  Tasks tasks;
  for (const SweepProblem& problem : problems) {
    check_time();
    auto& task =
        tasks.emplace_back(std::make_unique<SweepTask>(tunable_of(problem.problem), problem, target_.limits, options_));
    task->index = tasks.size() - 1;
  }
  return tasks;
}

// Fills the contexts of kernels and tasks; again if it is called again, as where another process kept the database
// locked.
void DevicePlan::store_rows(Store& store, const Tasks& tasks, std::vector<std::int64_t>& toolkit_ids,
                            const std::function<void()>& check_time) {
  context_.device = store.device_id(device_row(info_));
  toolkit_ids.clear();
  for (const ToolkitRow& row : toolkits()) {
    toolkit_ids.push_back(store.toolkit_id(row));
  }
  context_.toolkit = toolkit_ids.front();
  for (const auto& tunable : tunables_) {
    const Space& space = *tunable->own_space;
    tunable->context = context_;
    tunable->context.kernel = store.kernel_id({space.kernel, tunable->source.hash});
    tunable->context.space = store.space_id(space.kernel, space.hash, space.json);
  }
  for (const auto& task : tasks) {
    check_time();
    const ProblemSearch& search = task->search;
    ContextIds context = task->tunable.context;
    context.problem = store.problem_id(search.wanted().problem, search.bound().flops(), search.bound().bytes());
    task->rows.contexts.clear();
    for (std::size_t compiler = 0; compiler < task->tunable.compilers->count(); ++compiler) {
      context.toolkit = toolkit_ids[compiler];
      task->rows.contexts.push_back(context);
    }
  }
}

// The database is read first and the task changed after, so that reading can be repeated.
void DevicePlan::recall(SweepRecorder& recorder, SweepTask& task, const std::string& run) const {
  std::vector<Store::Known> known;
  std::vector<Config> left_configs;
  bool decided = false;
  bool by_objective = false;
  for (std::size_t i = 0; i < task.rows.contexts.size(); ++i) {
    const ContextIds& context = task.rows.contexts[i];
    for (const LeftAttempt& attempt : recorder.persist([&](Store& store) { return store.left_attempts(context); })) {
      left_configs.push_back(task.tunable.compilers->with(attempt.config, i));
    }
    for (Store::Known& entry : recorder.persist([&](Store& store) { return store.known_trials(context, run); })) {
      entry.config = task.tunable.compilers->with(entry.config, i);
      known.push_back(std::move(entry));
    }
    const auto decided_by = [&](Objective objective) {
      return !run.empty() &&
             recorder.persist([&](Store& store) { return store.decided_in_run(context, run, objective); });
    };
    decided = decided || decided_by(Objective::time);
    by_objective = by_objective || decided_by(options_.finals.objective.objective);
  }
  std::ranges::sort(known, {}, &Store::Known::trial_id);
  task.search.recall(known, left_configs);
  if (CodeEstimator estimator = code_estimator(info_, transfer_.measured_rates(), task.search.bound())) {
    task.search.judge_by_code(std::move(estimator));
  }
  const std::optional<DeviceRates> rates = transfer_.device_rates();
  if (rates && objective_of(options_.finals).wants_low_energy()) {
    task.search.prefer_low_energy(energy_estimator(task.search.bound(), *rates));
  }
  task.search.ask_before_search(
      [this, &task](const SearchDomain& domain) { return transfer_.known_before_search(task, domain); });
  task.costs.done = task.search.done();
  task.look.had = std::ranges::any_of(known, [](const Store::Known& entry) {
    return entry.in_run && entry.status != TrialStatus::rejected && entry.status != TrialStatus::compile_failed;
  });
  task.result.decided = decided;
  if (task.state.reserved() && (task.look.had || decided)) {
    task.state.open();
  }
  if (decided && deepens(options_)) {
    recall_finals(recorder, task, run, toolkits(), device_row(info_));
  }
  // A run without a time limit comes back to a problem that it has decided never.
  if (task.result.decided && by_objective && !has_time_limit(options_)) {
    task.state.finish();
  }
}

void DevicePlan::plan(SweepRecorder& recorder, const std::vector<SweepProblem>& problems, const std::string& run,
                      const std::function<void()>& check_time) {
  // Before the transaction: configurations may be counted for each, and others wait as long as it lasts.
  Tasks tasks = make_tasks(problems, check_time);
  std::vector<std::int64_t> toolkit_ids;
  recorder.persist([&](Store& store) {
    check_time();  // nobody else looks at the time while the database is locked
    store.in_one_transaction([&] { store_rows(store, tasks, toolkit_ids, check_time); });
  });
  for (const auto& tunable : tunables_) {
    const std::string& name = tunable->space->kernel;
    tunable->measured = recorder.persist([&](Store& store) { return store.measured(context_.device, name); });
    tunable->measured_elsewhere =
        recorder.persist([&](Store& store) { return store.measured_elsewhere(context_.device, name); });
    if (!tunable->measured_elsewhere.empty() || !tunable->measured.empty()) {
      tunable->winners = recorder.persist([&](Store& store) { return store.winners(name, nullptr); });
    }
  }
  transfer_.begin(recorder.persist([&](Store& store) { return store.measured_rates(device_row(info_)); }),
                  std::move(toolkit_ids));
  agenda_.set_rates(transfer_.device_rates());
  for (const auto& task : tasks) {
    check_time();
    recall(recorder, *task, run);
    transfer_.recall_elsewhere(recorder, *task);
  }
  tasks_ = std::move(tasks);
  find_launched();
  for (const auto& task : tasks_) {
    check_time();
    transfer_.recall_other_types(*task);
  }
  SweepSummary& summary = recorder.summary();
  for (const auto& task : tasks_) {
    if (task->state.reserved()) {
      continue;
    }
    summary.problems.done += task->result.decided && !task->search.wanted().between ? 1 : 0;
    summary.reused += task->search.reused().all;
    summary.reused_ok += task->search.reused().usable;
  }
}

void DevicePlan::set_session(std::int64_t session) {
  for (const auto& task : tasks_) {
    task->rows.session = session;
  }
}

void DevicePlan::heed(const StopCheck& check) {
  check_ = check;
  for (const auto& task : tasks_) {
    task->search.heed(check);
  }
}

// Finds the problems that each task launches. A problem that only alternatives of a site launch weighs less, because
// the alternative may not win.
void DevicePlan::find_launched() {
  const bool any_phases =
      std::ranges::any_of(tasks_, [](const auto& task) { return !task->search.wanted().phases.empty(); });
  std::set<SweepTask*> alternatives;
  for (const auto& task : tasks_) {
    for (const auto& other : tasks_) {
      const SweepProblem& wanted = other->search.wanted();
      if (!wanted.between && task->tunable.launches(task->search.wanted(), wanted.problem)) {
        task->launches.tasks.push_back(other.get());
        if (any_phases && wanted.phases.empty()) {
          alternatives.insert(other.get());
        }
      }
    }
  }
  for (SweepTask* const task : alternatives) {
    task->weight *= kAlternativeWins;
  }
}

// A space without a valid configuration for a problem costs that problem.
std::optional<Config> DevicePlan::propose(SweepTask& task) {
  try {
    std::optional<Config> config = task.search.propose();
    proposing_.looking = proposing_.looking || (task.state.taken() && task.search.looking());
    return config;
  } catch (const SpaceError& error) {
    task.fault = error.what();
    return std::nullopt;
  }
}

void DevicePlan::compile_reference(SweepTask& task) {
  TaskReference& reference = task.reference;
  try {
    builds_.submit({&task, Purpose::reference, plan_untuned(task.search.bound(), reference.failed, {}, check_).config});
    reference.stage = TaskReference::Stage::compiling;
  } catch (const NoConfigError& error) {  // which the search finds as well
    reference.stage = TaskReference::Stage::unusable;
    if (reference.why_unusable.empty()) {
      reference.why_unusable = error.what();
    }
  }
}

void DevicePlan::fill_from(SweepTask& task, const std::function<bool()>& wants_more) {
  if (!task.fault.empty()) {
    return;
  }
  if (task.reference.stage == TaskReference::Stage::wanted) {
    compile_reference(task);
  }
  transfer_.begin_with_types_of_run(task);
  while (!builds_.full() && wants_more()) {
    const std::optional<Config> config = propose(task);
    if (!config) {
      return;
    }
    builds_.submit({&task, Purpose::search, *config});
    if (proposing_.clock.now() >= proposing_.until) {
      proposing_.time_over = true;
      return;
    }
  }
}

// Compiles the next turn of a task that waits. Its search may begin before other searches of this sweep could teach it
// anything: a device that waits for compilers loses more.
void DevicePlan::fill_ahead(SweepTask& task) {
  fill_from(task, [&task] {
    const ProblemSearch& search = task.search;
    return !search.little_left() && search.done() + static_cast<int>(search.open()) < task.costs.done + kTrialsOfAction;
  });
}

// Compiles ahead for the present task of each device, no further than the workers can use. With a time limit, free
// workers compile the next turns of other tasks, the most valuable first, so that the device need not wait. Without a
// limit the next search begins only when the present ones propose nothing more, so that it can learn from them. A call
// ends after kLongestProposing, because nothing is sent to a device while searchers propose.
void DevicePlan::fill_pool(bool closing) {
  proposing_.time_over = false;
  proposing_.looking = false;
  proposing_.until = proposing_.clock.now() + kLongestProposing;
  if (closing) {
    return;
  }
  const std::size_t most_ahead = 2 * builds_.builder().workers() + 4;
  const bool limited = has_time_limit(options_);
  const auto fill = [&](SweepTask& task) {
    const ProblemSearch& search = task.search;
    fill_from(task, [&search, most_ahead, limited] {
      return search.open() < (limited || search.learns() ? std::min(most_ahead, search.ahead()) : kMaxWithoutLearning);
    });
  };
  bool all_proposed = true;
  for (const auto& task : tasks_) {
    if (task->state.taken()) {
      fill(*task);
      all_proposed =
          all_proposed && (task->search.spent() || task->search.remaining() <= static_cast<int>(task->search.open()));
    }
  }
  if (builds_.full() || !(limited || all_proposed)) {
    return;
  }
  for (const Action& action : agenda_.searches()) {
    if (builds_.full() || proposing_.time_over) {
      return;
    }
    if (limited) {
      fill_ahead(*action.task);
    } else if (!action.task->search.little_left()) {
      fill(*action.task);
    }
  }
}

SweepTask* DevicePlan::next_task(std::optional<double> left_s) {
  for (const Action& action : agenda_.actions(left_s)) {
    if (agenda_.begin(action)) {
      action.task->launches.winners_then = action.task->launches.winners();
      action.task->state.take();
      return action.task;
    }
  }
  agenda_.finish_ended();
  return nullptr;
}

// Where it cannot be compiled with the default, the closest valid configuration with which it can is as good.
void DevicePlan::take_reference(SweepTask& task, const Config& config, Compiled compiled) {
  TaskReference& reference = task.reference;
  if (compiled.status == TrialStatus::ok) {
    reference.run = {std::move(compiled.result.binary), config};
    reference.stage = TaskReference::Stage::ready;
    return;
  }
  if (reference.failed.empty()) {
    const Reference& of_space = task.tunable.space->reference;
    const std::string what = of_space.kernel ? fmt::format("the reference kernel '{}'", of_space.kernel->function)
                                             : "the default configuration, which results are compared with,";
    reference.why_unusable =
        fmt::format("{}: {} cannot be used: {}", task.tunable.source.file.string(), what, compiled.result.reason);
  }
  reference.failed.push_back(config);
  reference.stage =
      reference.failed.size() < kMaxReferences ? TaskReference::Stage::wanted : TaskReference::Stage::unusable;
}

std::vector<DevicePlan::Outcome> DevicePlan::take_compiled() {
  std::vector<Outcome> outcomes;
  while (auto built = builds_.take()) {
    auto& [job, compiled] = *built;
    if (job.purpose == Purpose::reference) {
      take_reference(*job.task, job.config, std::move(compiled));
    } else if (job.purpose == Purpose::finals) {
      if (compiled.status == TrialStatus::ok) {
        job.task->finals.binaries[job.config.text()] = std::move(compiled.result.binary);
      } else {
        job.task->finals.binaries.erase(job.config.text());
      }
    } else if (auto settled = job.task->search.compiled(job.config, std::move(compiled))) {
      outcomes.push_back({job.task, std::move(*settled)});
    }
  }
  return outcomes;
}

void DevicePlan::gather_finalists(SweepTask& task) {
  task.finals.binaries.clear();
  const std::vector<Config> wanted = task.wanted_finalists(objective_of(options_.finals).by_time_alone());
  for (auto& [config, binary] : task.search.finalists()) {
    if (std::find(wanted.begin(), wanted.end(), config) == wanted.end()) {
      continue;
    }
    if (!binary) {
      builds_.submit({&task, Purpose::finals, config});
    }
    task.finals.binaries.emplace(config.text(), std::move(binary));
  }
}

std::size_t DevicePlan::problems() const {
  return static_cast<std::size_t>(
      std::count_if(tasks_.begin(), tasks_.end(), [](const auto& task) { return !task->search.wanted().between; }));
}

bool DevicePlan::any_fresh_waits() const {
  return std::ranges::any_of(tasks_, [](const auto& task) { return !task->state.taken() && task->fresh(); });
}

bool DevicePlan::all_over() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->over(); });
}

}  // namespace pascaline
