#include "tuner/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/version.hpp"
#include "db/store.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/gpu/compile.hpp"
#include "tuner/compile_pool.hpp"
#include "tuner/searcher.hpp"
#include "tuner/survey.hpp"
#include "tuner/trial_runner.hpp"

namespace pascaline {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{200};

/// What all problems of a sweep share.
struct Workshop {
  const Space& space;
  const SweepOptions& options;
  const SweepEvents& events;
  const std::atomic<bool>& stop;
  Store& store;
  Device& device;
  TargetPlan plan;
  KernelSource source;
  std::string nvrtc;  // path of the chosen library, empty on the host
  CompilePool& pool;
  std::int64_t session = 0;
  ContextIds context{};
  std::uint64_t next_id = 1;
};

/// Tunes one problem.
class ProblemSweep {
 public:
  ProblemSweep(Workshop& shop, const SweepProblem& wanted, Clock::time_point deadline)
      : shop_(shop), wanted_(wanted), deadline_(deadline), bound_(shop.space, wanted.problem, shop.plan.limits) {
    context_ = shop.context;
    context_.problem = shop.store.problem_id(wanted.problem, bound_.flops(), bound_.bytes());
  }

  void run(SweepSummary& summary, std::size_t index, std::size_t count) {
    searcher_ = make_searcher(shop_.options.searcher, bound_, shop_.options.seed);
    recall(summary);
    if (finished_before(summary)) {
      ++summary.problems_done;
      return;
    }
    if (shop_.events.problem) {
      shop_.events.problem(index, count, wanted_, known_.size());
    }
    runner_.emplace(shop_.device, bound_, reference(), shop_.options.measure, shop_.options.seed);
    measure_default(summary);
    while (step(summary)) {
    }
    if (runner_->device_lost()) {
      summary.device_lost = true;
      return;
    }
    if (!shop_.stop) {
      decide();
    }
    summary.interrupted = summary.interrupted || shop_.stop;
    summary.problems_done += shop_.stop ? 0 : 1;
  }

 private:
  // Results measured under the same key count as if this sweep had made them.
  void recall(SweepSummary& summary) {
    for (const Store::Known& known : shop_.store.known_trials(context_)) {
      if (!belongs(known.config)) {
        continue;
      }
      known_.insert(known.config.text());
      searcher_->observe(known.config, {known.status, known.median_us});
      if (known.status == TrialStatus::ok) {
        keep(known.config, known.median_us);
      }
    }
    summary.reused += static_cast<int>(known_.size());
  }

  // Takes up a session another process of this sweep began: its trials count, and a problem with finals is done.
  bool finished_before(SweepSummary& summary) {
    if (shop_.options.continue_session == 0) {
      return false;
    }
    TrialFilter filter;
    filter.problem = wanted_.problem.text();
    filter.session_id = shop_.session;
    bool finals = false;
    shop_.store.for_each_trial(filter, [&](const StoredTrial& stored) {
      finals = finals || stored.trial.stage == TrialStage::finals;
      if (stored.trial.stage == TrialStage::search) {
        ++done_;
        ++summary.trials;
        --summary.reused;
        summary.ok += stored.trial.status == TrialStatus::ok ? 1 : 0;
      }
    });
    return finals;
  }

  // A space may have lost values since; what was measured with them is of no use to this sweep.
  [[nodiscard]] bool belongs(const Config& config) const {
    try {
      return !bound_.why_invalid(config);
    } catch (const Error&) {
      return false;
    }
  }

  void keep(const Config& config, double median_us) {
    ranking_.emplace(median_us, config);
    best_us_ = ranking_.begin()->first;
    if (config == shop_.space.default_config()) {
      default_us_ = median_us;
    }
  }

  CompileRequest request(const Config& config) const {
    return compile_request(bound_, config, shop_.source, shop_.plan.kind, shop_.plan.architecture);
  }

  // The naive kernel, where results are compared with one: on GPUs, and where there is no host reference.
  std::optional<Binary> reference() {
    const Reference& wanted = shop_.space.reference;
    if (!wanted.kernel || (shop_.device.info().kind == DeviceKind::host && !wanted.host.empty())) {
      return std::nullopt;
    }
    CompileRequest naive = request(shop_.space.default_config());
    naive.function = wanted.kernel->function;
    naive.defines.emplace_back("PASCALINE_REFERENCE=1");
    const Compiled compiled = compile_now(naive);
    if (compiled.status != TrialStatus::ok) {
      throw Error(fmt::format("{}: the reference kernel '{}' cannot be used: {}", shop_.source.file.string(),
                              naive.function, compiled.result.reason));
    }
    return compiled.result.binary;
  }

  Compiled compile_now(const CompileRequest& request) {
    const std::uint64_t id = shop_.next_id++;
    shop_.pool.submit(id, request);
    for (;;) {
      if (auto compiled = shop_.pool.wait(std::chrono::seconds(1)); compiled && compiled->id == id) {
        return std::move(*compiled);
      }
    }
  }

  void submit(const Config& config) {
    known_.insert(config.text());
    in_flight_.emplace(shop_.next_id, config);
    shop_.pool.submit(shop_.next_id++, request(config));
  }

  // The default is measured before anything else, so that every gain has something to be compared with.
  void measure_default(SweepSummary& summary) {
    const Config standard = shop_.space.default_config();
    if (known_.insert(standard.text()).second && !bound_.why_invalid(standard) && !shop_.stop) {
      run_trial(standard, compile_now(request(standard)), summary);
    }
  }

  void run_trial(const Config& config, const Compiled& compiled, SweepSummary& summary) {
    shop_.store.begin_attempt(shop_.session, context_, config, TrialStage::search,
                              config == shop_.space.default_config());
    const Trial trial = runner_->run(config, compiled, best_us_);
    shop_.store.add_trial(shop_.session, context_, trial);
    record(trial, summary);
  }

  [[nodiscard]] bool out_of_budget() const { return done_ >= shop_.options.trials || Clock::now() >= deadline_; }

  // Compile as far ahead as the workers can use, never beyond the budget.
  void fill_pool() {
    const std::size_t ahead = 2 * shop_.pool.workers();
    while (!spent_ && in_flight_.size() < ahead && done_ + static_cast<int>(in_flight_.size()) < shop_.options.trials) {
      const std::vector<Config> proposals = searcher_->propose(1);
      spent_ = proposals.empty();
      for (const Config& config : proposals) {
        if (known_.count(config.text()) == 0) {
          submit(config);
        }
      }
    }
  }

  // One finished compilation, if any; false when the problem is done.
  bool step(SweepSummary& summary) {
    if (shop_.stop || runner_->device_lost() || out_of_budget()) {
      return false;
    }
    fill_pool();
    if (in_flight_.empty()) {
      return false;
    }
    const auto compiled = shop_.pool.wait(kPoll);
    if (!compiled) {
      return true;
    }
    const auto job = in_flight_.find(compiled->id);
    if (job == in_flight_.end()) {
      return true;  // left over from an earlier problem that ran out of time
    }
    const Config config = job->second;
    in_flight_.erase(job);
    run_trial(config, *compiled, summary);
    return true;
  }

  void record(const Trial& trial, SweepSummary& summary) {
    ++done_;
    ++summary.trials;
    const double median_us = trial.time ? trial.time->median_us : 0;
    if (trial.status == TrialStatus::ok) {
      ++summary.ok;
      keep(trial.config, median_us);
    }
    searcher_->observe(trial.config, {trial.status, median_us});
    if (shop_.events.trial) {
      shop_.events.trial(trial, done_, shop_.options.trials, best_us_, default_us_);
    }
  }

  void decide() {
    const Config standard = shop_.space.default_config();
    std::vector<Config> chosen;
    for (const auto& [median_us, config] : ranking_) {
      if (static_cast<int>(chosen.size()) < shop_.options.finalists && config != standard) {
        chosen.push_back(config);
      }
    }
    if (default_us_ > 0) {
      chosen.push_back(standard);
    }
    std::vector<std::pair<Config, Binary>> finalists;
    for (const Config& config : chosen) {
      Compiled compiled = compile_now(request(config));
      if (compiled.status == TrialStatus::ok) {
        finalists.emplace_back(config, std::move(compiled.result.binary));
      }
    }
    if (const auto result = run_finals(*runner_, finalists, shop_.options.finals)) {
      store_decision(*result);
    }
  }

  void store_decision(const FinalsResult& result) {
    std::int64_t winner_id = 0;
    for (std::size_t i = 0; i < result.trials.size(); ++i) {
      const std::int64_t id = shop_.store.add_trial(shop_.session, context_, result.trials[i]);
      winner_id = i == result.winner ? id : winner_id;
    }
    shop_.store.set_winner(context_, winner_id, result.baseline, result.confidence);
    if (shop_.events.winner) {
      shop_.events.winner(wanted_, result);
    }
  }

  Workshop& shop_;
  const SweepProblem& wanted_;
  Clock::time_point deadline_;
  BoundSpace bound_;
  ContextIds context_;
  std::unique_ptr<Searcher> searcher_;
  std::optional<TrialRunner> runner_;
  std::set<std::string> known_;
  std::map<std::uint64_t, Config> in_flight_;
  std::multimap<double, Config> ranking_;
  double best_us_ = 0;
  double default_us_ = 0;
  int done_ = 0;
  bool spent_ = false;
};

std::string options_json(const SweepOptions& options) {
  nlohmann::json json{{"device", options.device},       {"target", options.target},
                      {"searcher", options.searcher},   {"seed", options.seed},
                      {"trials", options.trials},       {"jobs", options.jobs},
                      {"finalists", options.finalists}, {"cold_cache", options.measure.cold_cache}};
  if (options.minutes) {
    json["minutes"] = *options.minutes;
  }
  return json.dump();
}

Clock::time_point deadline_of(const SweepOptions& options, Clock::time_point end, std::size_t problems_left) {
  if (!options.minutes) {
    return Clock::time_point::max();
  }
  return Clock::now() + (end - Clock::now()) / static_cast<long>(problems_left);
}

void run_problems(Workshop& shop, const std::vector<SweepProblem>& problems, SweepSummary& summary) {
  const auto minutes = std::chrono::duration<double, std::ratio<60>>(shop.options.minutes.value_or(0));
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(minutes);
  for (std::size_t i = 0; i < problems.size() && !shop.stop && !summary.device_lost; ++i) {
    ProblemSweep(shop, problems[i], deadline_of(shop.options, end, problems.size() - i))
        .run(summary, i, problems.size());
  }
}

std::int64_t begin_session(Store& store, const Workshop& shop, const SweepOptions& options) {
  SessionRow session;
  session.started_unix_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  session.state = "running";
  session.command_line = options.command_line;
  session.searcher = options.searcher;
  session.seed = options.seed;
  session.options_json = options_json(options);
  session.device_uuid = shop.device.info().uuid;
  session.program_version = kVersion;
  return store.begin_session(session, shop.context.device, shop.context.toolkit);
}

}  // namespace

SweepSummary run_sweep(const Space& space, const std::vector<SweepProblem>& problems, const SweepOptions& options,
                       const SweepEvents& events, const std::atomic<bool>& stop) {
  Store store(options.database, OpenMode::create);
  const std::unique_ptr<Device> device = open_device(options.device);
  const TargetPlan plan = plan_target(device->info(), options.target);
  const Toolchain toolchain = Toolchain::find(plan.architecture, options.nvrtc);
  const bool on_host = device->info().kind == DeviceKind::host;
  CompilePoolOptions pool_options;
  pool_options.workers = options.jobs;
  pool_options.cache_folder = options.cache;
  pool_options.architecture = plan.architecture;
  pool_options.nvrtc = on_host ? "" : toolchain.path();
  CompilePool pool(pool_options);

  Workshop shop{space,
                options,
                events,
                stop,
                store,
                *device,
                plan,
                KernelSource::load(options.kernels / (space.kernel + ".cu")),
                pool_options.nvrtc,
                pool};
  shop.context.device = store.device_id(device_row(device->info()));
  shop.context.toolkit = store.toolkit_id(toolkit_row(toolchain, plan, device->info()));
  shop.context.kernel = store.kernel_id({space.kernel, shop.source.hash});
  shop.context.space = store.space_id(space.kernel, space.hash, space.json);
  if (const int settled = store.settle_attempts(shop.context.device); settled > 0 && events.note) {
    events.note(fmt::format("{} configuration(s) an earlier sweep died on are now marked as crashed", settled));
  }
  if (events.note) {
    events.note(fmt::format("{} ({}), {} {} for {}", device->info().name, device->info().id, toolchain.compiler(),
                            toolchain.version(), plan.architecture));
  }

  shop.session = options.continue_session > 0 ? options.continue_session : begin_session(store, shop, options);
  SweepSummary summary;
  summary.session = shop.session;
  try {
    run_problems(shop, problems, summary);
  } catch (...) {
    store.end_session(shop.session, "failed");
    throw;
  }
  if (!summary.device_lost) {
    store.end_session(shop.session, summary.interrupted ? "interrupted" : "finished");
  }
  return summary;
}

}  // namespace pascaline
