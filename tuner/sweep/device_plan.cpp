#include "tuner/sweep/device_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline {
namespace {

constexpr int kMaxRetries = 3;
constexpr std::size_t kMaxWithoutLearning = 512;  // whose code is kept
// Of what was not measured yet.
constexpr double kBuildSeconds = 0.5;
constexpr double kTrialOverheadSeconds = 0.03;
constexpr double kSamplesExpected = 30;
constexpr double kPreparationSeconds = 0.2;
constexpr double kPreparationSecondsPerByte = 2e-9;
constexpr double kEmulatedLaunchUs = 100;
constexpr double kEmulatedFlopsPerUs = 100;
constexpr double kEmulatedBytesPerUs = 100;
// Defaults, of other kernels and of none, next to one of the same kernel.
constexpr double kWeightOfOtherKernel = 0.1;
constexpr double kWeightOfGuess = 0.2;
constexpr int kLittleLeft = 2;  // rank of what a search expects little of: what comes before it needs no deepening

CompilePoolOptions pool_options(const SweepOptions& options, const CompileTarget& target, const CompilerAxis& compilers,
                                std::size_t jobs) {
  CompilePoolOptions out;
  out.workers = jobs;
  out.program = options.program;
  out.cache_folder = options.cache;
  out.architecture = target.architecture;
  out.nvrtc = target.kind == BinaryKind::host_object ? "" : compilers.compilers().front().path;
  out.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options.compile_timeout_s));
  out.memory_bytes = options.compile_memory_bytes;
  return out;
}

// Compilers that were here when a run was begun and have gone since do not end it.
std::vector<CompilerInfo> sweep_compilers(const SweepOptions& options, const CompileTarget& target,
                                          const DeviceInfo& info, std::vector<std::string>& left_out) {
  CompilerChoice choice =
      find_compilers(target, info.driver_version, options.nvrtc,
                     options.resume_run.empty() ? MissingCompiler::fault : MissingCompiler::left_out);
  left_out = std::move(choice.left_out);
  if (choice.found.size() == 1 && asks_for_compilers(options.nvrtc)) {
    left_out.push_back(fmt::format("there is one compiler to use here: {}", choice.found.front().text()));
  }
  return std::move(choice.found);
}

std::vector<SweepKernel> load_kernels(const std::vector<Space>& spaces, const SweepOptions& options,
                                      const CompilerAxis& compilers, const CompilerAxis& first_compiler,
                                      std::deque<Space>& searched) {
  std::vector<SweepKernel> kernels;
  for (const Space& space : spaces) {
    SweepKernel kernel;
    kernel.own_space = &space;
    if (is_site(space.kernel)) {  // each of its kernels is built by the compiler of its winner
      kernel.space = &space;
      kernel.compilers = &first_compiler;
      kernel.source = site_source(space.kernel, options.kernels);
      kernel.is_site = true;
      kernels.push_back(std::move(kernel));
      continue;
    }
    kernel.space = compilers.several() ? &searched.emplace_back(compilers.searched(space)) : &space;
    kernel.compilers = &compilers;
    kernel.source = KernelSource::load(kernel_file(options.kernels, space.kernel, ".cu"), space);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

DevicePlan::DevicePlan(const std::vector<Space>& spaces, const SweepOptions& options, const SweepServices& services,
                       const DeviceInfo& info, std::size_t jobs)
    : options_(options),
      info_(info),
      target_(compile_target(info, options.target)),
      compilers_(sweep_compilers(options, target_, info, left_out_)),
      first_compiler_({compilers_.compilers().front()}),
      kernels_(load_kernels(spaces, options, compilers_, first_compiler_, searched_)),
      builder_(services.builder(pool_options(options, target_, compilers_, jobs))) {}

std::vector<ToolkitRow> DevicePlan::toolkits() const {
  std::vector<ToolkitRow> rows;
  for (const CompilerInfo& compiler : compilers_.compilers()) {
    rows.push_back(toolkit_row(compiler, target_, info_));
  }
  return rows;
}

const SweepKernel& DevicePlan::kernel_of(const Problem& problem) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(),
                                  [&](const SweepKernel& kernel) { return kernel.space->kernel == problem.kernel; });
  if (found == kernels_.end()) {
    throw Error(
        fmt::format("{}: there is no search space of kernel '{}' in this sweep; this is a fault of the "
                    "program, please report it",
                    problem.text(), problem.kernel));
  }
  return *found;
}

DevicePlan::Tasks DevicePlan::make_tasks(const std::vector<SweepProblem>& problems,
                                         const std::function<void()>& check_time) const {
  Tasks tasks;
  for (const SweepProblem& problem : problems) {
    check_time();
    auto& task =
        tasks.emplace_back(std::make_unique<SweepTask>(kernel_of(problem.problem), problem, target_.limits, options_));
    task->index = tasks.size() - 1;
  }
  return tasks;
}

// Fills the contexts of kernels and tasks; again if it is called again, as where another process kept the database
// locked.
void DevicePlan::store_rows(Store& store, const Tasks& tasks, const std::function<void()>& check_time) {
  context_.device = store.device_id(device_row(info_));
  toolkits_.clear();
  for (const ToolkitRow& row : toolkits()) {
    toolkits_.push_back(store.toolkit_id(row));
  }
  context_.toolkit = toolkits_.front();
  for (SweepKernel& kernel : kernels_) {
    const Space& space = *kernel.own_space;
    kernel.context = context_;
    kernel.context.kernel = store.kernel_id({space.kernel, kernel.source.hash});
    kernel.context.space = store.space_id(space.kernel, space.hash, space.json);
  }
  for (const auto& task : tasks) {
    check_time();
    const ProblemSearch& search = task->search;
    ContextIds context = task->kernel.context;
    context.problem = store.problem_id(search.wanted().problem, search.bound().flops(), search.bound().bytes());
    task->contexts.clear();
    for (const std::int64_t toolkit : toolkits_) {
      context.toolkit = toolkit;
      task->contexts.push_back(context);
      if (task->kernel.is_site) {
        break;
      }
    }
  }
}

// The database is read first and the task changed after, so that reading can be repeated.
void DevicePlan::recall(SweepRecorder& recorder, SweepTask& task, const std::string& run) const {
  std::vector<Store::Known> known;
  std::vector<Config> left_configs;
  bool decided = false;
  bool by_objective = false;
  for (std::size_t i = 0; i < task.contexts.size(); ++i) {
    const ContextIds& context = task.contexts[i];
    for (const LeftAttempt& attempt : recorder.persist([&](Store& store) { return store.left_attempts(context); })) {
      left_configs.push_back(task.kernel.compilers->with(attempt.config, i));
    }
    for (Store::Known& entry : recorder.persist([&](Store& store) { return store.known_trials(context, run); })) {
      entry.config = task.kernel.compilers->with(entry.config, i);
      known.push_back(std::move(entry));
    }
    const auto decided_by = [&](Objective objective) {
      return !run.empty() &&
             recorder.persist([&](Store& store) { return store.decided_in_run(context, run, objective); });
    };
    decided = decided || decided_by(Objective::time);
    by_objective = by_objective || decided_by(options_.finals.objective.objective);
  }
  task.search.recall(known, left_configs);
  if (CodeEstimator estimator = code_estimator(info_, measured_rates_, task.search.bound())) {
    task.search.judge_by_code(std::move(estimator));
  }
  const std::optional<DeviceRates> rates = device_rates();
  if (rates && needs_power(options_.finals.objective.objective)) {
    task.search.choose_thrifty(energy_estimator(task.search.bound(), *rates));
  }
  task.search.ask_before_search(
      [this, &task](const SearchDomain& domain) { return known_before_search(task, domain); });
  task.looked_at = task.search.done() > 0;
  task.decided = decided;
  task.reserved = task.reserved && !task.looked_at && !decided;
  if (decided && deepens_here()) {
    recall_finals(recorder, task, run);
  }
  // A run without a time limit comes back to a problem that it has decided never.
  if (task.decided && by_objective && !has_time_limit(options_)) {
    task.state.finish();
  }
}

void DevicePlan::plan(SweepRecorder& recorder, const std::vector<SweepProblem>& problems, const std::string& run,
                      const std::function<void()>& check_time) {
  // Before the transaction: configurations may be counted for each, and others wait as long as it lasts.
  Tasks tasks = make_tasks(problems, check_time);
  recorder.persist([&](Store& store) {
    check_time();  // nobody else looks at the time while the database is locked
    store.in_one_transaction([&] { store_rows(store, tasks, check_time); });
  });
  for (SweepKernel& kernel : kernels_) {
    kernel.measured =
        recorder.persist([&](Store& store) { return store.measured(context_.device, kernel.space->kernel); });
    kernel.measured_elsewhere =
        recorder.persist([&](Store& store) { return store.measured_elsewhere(context_.device, kernel.space->kernel); });
    if (!kernel.measured_elsewhere.empty() || !kernel.measured.empty()) {
      kernel.winners = recorder.persist([&](Store& store) { return store.winners(kernel.space->kernel, nullptr); });
    }
  }
  measured_rates_ = recorder.persist([&](Store& store) { return store.measured_rates(device_row(info_)); });
  for (const auto& task : tasks) {
    check_time();
    recall(recorder, *task, run);
    recall_elsewhere(recorder, *task);
  }
  tasks_ = std::move(tasks);
  find_launched();
  for (const auto& task : tasks_) {
    check_time();
    recall_other_types(*task);
  }
  SweepSummary& summary = recorder.summary();
  for (const auto& task : tasks_) {
    if (task->reserved) {
      continue;
    }
    summary.problems_done += task->decided && !task->search.wanted().between ? 1 : 0;
    summary.reused += task->search.reused().all;
    summary.reused_ok += task->search.reused().usable;
  }
}

void DevicePlan::set_session(std::int64_t session) {
  for (const auto& task : tasks_) {
    task->session = session;
  }
}

void DevicePlan::heed(const StopCheck& check) {
  check_ = check;
  for (const auto& task : tasks_) {
    task->search.heed(check);
  }
}

// Of the run's compilers together what they measured of one problem; of others, as if the first had compiled it. Either
// of problems with the task's element types, or of those with others.
std::vector<RelatedProblem> DevicePlan::measured_before(const SweepTask& task, bool other_types) const {
  std::vector<RelatedProblem> related;
  std::map<std::int64_t, std::size_t> own;  // by problem
  for (const Store::Measured& key : task.kernel.measured) {
    if ((key.problem.types != task.search.wanted().problem.types) != other_types) {
      continue;
    }
    const auto toolkit = std::find(toolkits_.begin(), toolkits_.end(), key.toolkit);
    const bool same_version = toolkit != toolkits_.end() && key.kernel == task.kernel.context.kernel;
    const bool of_run = same_version && std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& other) {
                          return other->contexts.front().problem == key.problem_id;
                        });
    if (of_run) {  // what the run's own problems recalled is among their times
      continue;
    }
    const auto place = same_version ? own.emplace(key.problem_id, related.size()).first->second : related.size();
    if (place == related.size()) {
      related.push_back({key.problem, {}, 0});
    }
    const auto compiler = toolkit == toolkits_.end() ? 0 : static_cast<std::size_t>(toolkit - toolkits_.begin());
    for (const auto& [config, time_us] : key.times_us) {
      related[place].times_us.emplace_back(task.kernel.compilers->with(config, compiler), time_us);
    }
  }
  return related;
}

// From other keys in the database, from the other problems of this run, from other element types and other devices.
std::vector<Prior> DevicePlan::known_before_search(const SweepTask& task, const SearchDomain& domain) const {
  std::vector<RelatedProblem> related;
  for (const auto& other : tasks_) {
    const bool same_types = other->search.wanted().problem.types == task.search.wanted().problem.types;
    if (other.get() != &task && &other->kernel == &task.kernel && same_types) {
      related.push_back({other->search.wanted().problem, other->search.times_us(), 0});
    }
  }
  for (RelatedProblem& before : measured_before(task, false)) {
    related.push_back(std::move(before));
  }
  for (RelatedProblem& other : of_other_types(task)) {
    related.push_back(std::move(other));
  }
  related.insert(related.end(), task.elsewhere.begin(), task.elsewhere.end());
  return transfer_priors(domain, device_rates(), related, options_.seed);
}

// For a static model; nothing of other devices than GPUs.
std::optional<DeviceRates> DevicePlan::device_rates() const {
  std::optional<DeviceRates> rates;
  if (info_.kind == DeviceKind::cuda) {
    rates = typical_rates(device_row(info_).compute_capability, info_.limits);
    if (rates) {
      use_measured(*rates, measured_rates_);
    }
  }
  return rates;
}

CompileRequest DevicePlan::request(const SweepTask& task, const Config& config) const {
  CompileRequest made = compile_request(task.own_bound, compilers_.without(config), task.kernel.source, target_.kind,
                                        target_.architecture);
  made.translation = target_.translation;
  if (compilers_.several()) {
    made.compiler = compilers_.compilers()[compilers_.index_of(config)].path;
  }
  return made;
}

// What stands for the code of a site's alternative, whose kernels are compiled where they are measured.
Compiled DevicePlan::site_code(std::uint64_t id, const SweepTask& task, const Config& config) const {
  Compiled compiled;
  compiled.id = id;
  compiled.result.ok = true;
  compiled.result.binary.kind = BinaryKind::host_object;
  compiled.result.binary.target = target_.architecture;
  compiled.result.binary.function = task.kernel.space->kernel;
  compiled.result.binary.code = alternative_of(config);
  return compiled;
}

void DevicePlan::compile(Job job, bool urgent) {
  if (job.task->kernel.is_site) {
    site_codes_.push_back(site_code(next_id_, *job.task, job.config));
    jobs_.emplace(next_id_++, std::move(job));
    return;
  }
  CompileRequest made = job.purpose == Purpose::reference
                            ? reference_request_of(*job.task->kernel.own_space, request(*job.task, job.config))
                            : request(*job.task, job.config);
  submit(std::move(job), std::move(made), urgent);
}

std::optional<Compiled> DevicePlan::next_compiled() {
  if (!site_codes_.empty()) {
    Compiled compiled = std::move(site_codes_.front());
    site_codes_.pop_front();
    return compiled;
  }
  return builder_->take();
}

void DevicePlan::submit(Job job, CompileRequest request, bool urgent) {
  jobs_.emplace(next_id_, std::move(job));
  builder_->submit(next_id_++, std::move(request), urgent);
}

// A space without a valid configuration for a problem costs that problem.
std::optional<Config> DevicePlan::propose(SweepTask& task) {
  try {
    std::optional<Config> config = task.search.propose();
    looking_ = looking_ || task.search.looking();
    return config;
  } catch (const SpaceError& error) {
    task.fault = error.what();
    return std::nullopt;
  }
}

void DevicePlan::compile_reference(SweepTask& task) {
  TaskReference& reference = task.reference;
  try {
    compile({&task, Purpose::reference, plan_untuned(task.search.bound(), reference.failed, {}, check_).config}, true);
    reference.stage = TaskReference::Stage::compiling;
  } catch (const NoConfigError& error) {  // which the search finds as well
    reference.stage = TaskReference::Stage::unusable;
    if (reference.why_unusable.empty()) {
      reference.why_unusable = error.what();
    }
  }
}

// A compiler's crash costs a configuration of the search its trial. The reference costs the whole problem, and a
// finalist has compiled before, so both are given another chance.
bool DevicePlan::try_again(const Job& job, TrialStatus status) {
  if (job.purpose == Purpose::search || status != TrialStatus::crashed || job.tries >= kMaxRetries) {
    return false;
  }
  Job again = job;
  ++again.tries;
  compile(std::move(again), true);
  return true;
}

// Compile as far ahead as the workers can use; what is not yet measured is no longer than that. A searcher that learns
// nothing is compiled for while the card warms up, too.
void DevicePlan::fill_from(SweepTask& task, std::size_t most_open) {
  if (!task.fault.empty()) {
    return;
  }
  if (task.reference.stage == TaskReference::Stage::wanted) {
    compile_reference(task);
  }
  begin_with_types_of_run(task);
  const std::size_t most = task.search.learns() ? std::min(most_open, task.search.ahead()) : kMaxWithoutLearning;
  while (builder_->pending() < 2 * builder_->workers() && task.search.open() < most) {
    const std::optional<Config> config = propose(task);
    if (!config) {
      return;
    }
    compile({&task, Purpose::search, *config}, false);
  }
}

// With a time limit, what the next problems' looks begin with is compiled before the device turns to them, the default
// first of all. Their searches do not begin with that.
void DevicePlan::fill_with_first(const std::vector<Waiting>& waiting) {
  if (!has_time_limit(options_)) {
    return;
  }
  for (const Waiting& next : waiting) {
    if (builder_->pending() >= 2 * builder_->workers() || !next.first) {
      return;
    }
    fill_with_first(*next.task);
  }
}

void DevicePlan::fill_with_first(SweepTask& task) {
  if (task.reference.stage == TaskReference::Stage::wanted) {
    compile_reference(task);
  }
  begin_with_types_of_run(task);
  while (task.search.first_waits() && task.search.open() < static_cast<std::size_t>(kTrialsOfAction) &&
         builder_->pending() < 2 * builder_->workers()) {
    const std::optional<Config> config = propose(task);
    if (!config) {
      return;
    }
    compile({&task, Purpose::search, *config}, false);
  }
}

void DevicePlan::fill_pool(bool closing) {
  looking_ = false;
  if (closing) {
    return;
  }
  const std::size_t most_open = 2 * builder_->workers() + 4;
  for (const auto& task : tasks_) {
    if (task->state.taken()) {
      fill_from(*task, most_open);
    }
  }
  // The next problem's search begins when nothing more is proposed for the present ones, so that it can learn from
  // them.
  const bool all_proposed = std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) {
    return !task->state.taken() || task->search.spent() ||
           task->search.remaining() <= static_cast<int>(task->search.open());
  });
  const std::vector<Waiting> waiting = in_order();
  fill_with_first(waiting);
  fill_for_sites();
  for (const auto& [task, first, rate] : waiting) {
    const bool deepened_first = deepens_here() && !first && !nothing_to_deepen_;
    if (!all_proposed || builder_->pending() >= 2 * builder_->workers() || deepened_first) {
      return;
    }
    fill_from(*task, most_open);
  }
}

// Tasks that wait for a device: with a limit of time those first that are expected to save most in it.
std::vector<DevicePlan::Waiting> DevicePlan::in_order(std::optional<double> left_s) const {
  std::vector<Waiting> waiting;
  for (const auto& task : tasks_) {
    if (task->state.stage() == TaskStage::waiting && !task->reserved) {
      waiting.push_back({task.get(), true});
    }
  }
  if (!has_time_limit(options_)) {
    return waiting;
  }
  const std::vector<Outlook> all = outlooks();
  const AttainedRates rates = attained_rates(all);
  std::vector<std::pair<std::pair<int, double>, Waiting>> ranked;
  for (Waiting& next : waiting) {
    const SweepTask& task = *next.task;
    std::pair<int, double> rank;
    if (task.kernel.is_site) {
      rank = {site_rank(task, left_s), static_cast<double>(unready(task))};
    } else if (task.objective_put_off) {  // what the others' first looks left it without
      rank = {0, std::numeric_limits<double>::infinity()};
    } else {
      next.rate = next_search(all[task.index], rates).rate();
      rank = {kernel_rank(task, left_s), -next.rate};
    }
    next.first = rank.first < kLittleLeft;
    ranked.emplace_back(rank, next);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::ranges::transform(ranked, waiting.begin(), [](const auto& entry) { return entry.second; });
  return waiting;
}

double DevicePlan::expected_s(const SweepTask& task) const {
  const std::vector<Outlook> all = outlooks();
  return next_search(all[task.index], attained_rates(all)).seconds;
}

bool DevicePlan::prefers_another(const SweepTask& present, std::optional<double> left_s) const {
  const std::vector<Waiting> waiting = in_order(left_s);
  if (waiting.empty() || !waiting.front().first) {
    return false;
  }
  const std::vector<Outlook> all = outlooks();
  Outlook here = all[present.index];
  here.preparation_s = 0;
  return waiting.front().task->kernel.is_site || waiting.front().rate > next_search(here, attained_rates(all)).rate();
}

// A default before it was measured is taken to need what arithmetic and memory allow, times how much longer than that
// the defaults took that were measured, of the same kernel and, with less weight, of others. In the order of the tasks.
std::vector<double> DevicePlan::estimated_defaults_us() const {
  const std::optional<DeviceRates> rates = device_rates();
  std::vector<double> estimated_us;
  std::map<const SweepKernel*, double> log_factors;  // sums over the measured defaults
  std::map<const SweepKernel*, double> measured;
  double log_factor_of_all = 0;
  double measured_of_all = 0;
  for (const auto& task : tasks_) {
    const BoundSpace& space = task->search.bound();
    const double bound_us =
        rates ? rates->launch_us +
                    std::max(space.flops() / (1e3 * rates->peak_gflops()), space.bytes() / (1e3 * rates->memory_gbps))
              : kEmulatedLaunchUs + std::max(space.flops() / kEmulatedFlopsPerUs, space.bytes() / kEmulatedBytesPerUs);
    estimated_us.push_back(bound_us);
    if (task->search.default_us() > 0 && !task->kernel.is_site) {
      const double log_factor = std::log(task->search.default_us() / bound_us);
      log_factors[&task->kernel] += log_factor;
      measured[&task->kernel] += 1;
      log_factor_of_all += log_factor;
      measured_of_all += 1;
    }
  }
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const SweepKernel* const kernel = &tasks_[i]->kernel;
    const double own = 1 - kWeightOfOtherKernel;  // beside what it counts among all
    const double log_factor = kWeightOfOtherKernel * log_factor_of_all + own * log_factors[kernel];
    const double weight = kWeightOfGuess + kWeightOfOtherKernel * measured_of_all + own * measured[kernel];
    estimated_us[i] *= std::exp(log_factor / weight);
  }
  return estimated_us;
}

std::vector<Outlook> DevicePlan::outlooks() const {
  const double build_s = compiled_ > 0 ? compile_ms_ / 1000 / compiled_ : kBuildSeconds;
  const std::vector<double> defaults_us = estimated_defaults_us();
  std::vector<Outlook> out;
  for (const auto& task : tasks_) {
    const ProblemSearch& search = task->search;
    Outlook outlook{task->weight, search.bound().flops(), search.bound().bytes()};
    outlook.trials = search.done();
    outlook.time_us = search.usable() > 0 ? search.best_us() : task->measured > 0 ? 0 : defaults_us[task->index];
    if (search.best_at_half_us() > 0 && search.done() > 1) {
      outlook.last_doubling = std::max(0.0, 1 - search.best_us() / search.best_at_half_us());
    }
    const double sampled_s = std::min(options_.measure.budget_ms / 1000, kSamplesExpected * 1e-6 * outlook.time_us);
    outlook.trial_s = task->trial_s().value_or(kTrialOverheadSeconds + sampled_s);
    outlook.build_s = build_s / static_cast<double>(builder_->workers());
    outlook.preparation_s =
        task->preparation_s.value_or(kPreparationSeconds + kPreparationSecondsPerByte * search.bound().bytes());
    if (search.ready() == 0) {  // the device would wait for the compilers
      outlook.preparation_s += build_s + outlook.build_s * static_cast<double>(builder_->pending());
    }
    out.push_back(outlook);
  }
  return out;
}

// What was put off comes behind what was not looked at, and last of all where it would be put off once more.
int DevicePlan::kernel_rank(const SweepTask& task, std::optional<double> left_s) const {
  const bool hopeless = !task.looked_at && task.put_off_s > 0 && left_s && *left_s < 2 * task.put_off_s;
  const bool little_left = deepens_here() ? ended(task) : task.search.little_left();
  return task.fresh() ? 0 : hopeless ? 3 : little_left ? kLittleLeft : 1;
}

SweepTask* DevicePlan::next_task(std::optional<double> left_s) {
  first_left_s_ = std::max(first_left_s_, left_s.value_or(0));
  std::vector<Waiting> waiting = in_order(left_s);
  SweepTask* next = nullptr;
  if (deepens_here() && left_s && (waiting.empty() || !waiting.front().first)) {
    next = deepen(*left_s);
    if (next == nullptr) {
      finish_ended();
      waiting = in_order(left_s);
    }
  }
  next = next == nullptr && !waiting.empty() ? waiting.front().task : next;
  if (next == nullptr) {
    return nullptr;
  }
  next->came_again = next->compared;
  next->launched_then = next->kernel.is_site ? winners_launched(*next) : std::string();
  next->state.take();
  return next;
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
    const Reference& of_space = task.kernel.space->reference;
    const std::string what = of_space.kernel ? fmt::format("the reference kernel '{}'", of_space.kernel->function)
                                             : "the default configuration, which results are compared with,";
    reference.why_unusable =
        fmt::format("{}: {} cannot be used: {}", task.kernel.source.file.string(), what, compiled.result.reason);
  }
  reference.failed.push_back(config);
  reference.stage =
      reference.failed.size() < kMaxReferences ? TaskReference::Stage::wanted : TaskReference::Stage::unusable;
}

std::vector<DevicePlan::Outcome> DevicePlan::take_compiled() {
  std::vector<Outcome> outcomes;
  while (auto compiled = next_compiled()) {
    const auto found = jobs_.find(compiled->id);
    const Job job = std::move(found->second);
    jobs_.erase(found);
    compile_ms_ += compiled->result.binary.compile_ms;
    compiled_ += compiled->result.binary.compile_ms > 0 ? 1 : 0;
    if (try_again(job, compiled->status)) {
      continue;
    }
    if (job.purpose == Purpose::reference) {
      take_reference(*job.task, job.config, std::move(*compiled));
    } else if (job.purpose == Purpose::finals) {
      if (compiled->status == TrialStatus::ok) {
        job.task->finalists[job.config.text()] = std::move(compiled->result.binary);
      } else {
        job.task->finalists.erase(job.config.text());
      }
    } else if (auto settled = job.task->search.compiled(job.config, std::move(*compiled))) {
      outcomes.push_back({job.task, std::move(*settled)});
    }
  }
  return outcomes;
}

void DevicePlan::gather_finalists(SweepTask& task) {
  task.finalists.clear();
  const std::vector<Config> wanted = task.wanted_finalists(options_.finals.objective.objective == Objective::time);
  for (auto& [config, binary] : task.search.finalists()) {
    if (std::find(wanted.begin(), wanted.end(), config) == wanted.end()) {
      continue;
    }
    if (!binary) {
      compile({&task, Purpose::finals, config}, true);
    }
    task.finalists.emplace(config.text(), std::move(binary));
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
