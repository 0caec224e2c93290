#include "tuner/problem_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "tuner/survey.hpp"

namespace pascaline {
namespace {

constexpr std::chrono::milliseconds kPoll{200};

}  // namespace

ProblemSweep::ProblemSweep(Workshop& shop, const SweepProblem& wanted, Clock::time_point deadline)
    : shop_(shop),
      wanted_(wanted),
      deadline_(deadline),
      bound_(shop.space, wanted.problem, shop.plan.limits),
      standard_(shop.space.default_config()),
      context_(shop.context),
      climate_(shop.device, {.passive = true}) {
  context_.problem = shop.store.problem_id(wanted.problem, bound_.flops(), bound_.bytes());
}

void ProblemSweep::run(SweepSummary& summary, std::size_t index, std::size_t count) {
  searcher_ = make_searcher(shop_.options.searcher, bound_, shop_.options.seed);
  recall(summary);
  if (finished_before(summary)) {
    ++summary.problems_done;
    return;
  }
  if (shop_.events.problem) {
    shop_.events.problem(index, count, wanted_, known_.size());
  }
  if (!make_runner()) {
    return;
  }
  measure_default(summary);
  while (step(summary)) {
  }
  if (!shop_.stop && !runner_->device_lost()) {
    retry_default(summary);
  }
  summary.interrupted = summary.interrupted || shop_.stop;
  summary.device_lost = runner_->device_lost();
  if (shop_.stop || runner_->device_lost()) {
    return;
  }
  decide();
  ++summary.problems_done;
}

// False if the problem's buffers do not fit the device: that costs this problem, not the sweep.
bool ProblemSweep::make_runner() {
  const std::optional<Binary> naive = reference();
  std::string reason;
  try {
    runner_.emplace(climate_, bound_, naive, shop_.options.measure, shop_.options.seed);
    if (no_reference_.empty()) {
      runner_->prepare();
    }
    return true;
  } catch (const DeviceLostError&) {
    throw;
  } catch (const CudaError& error) {
    reason = error.what();
  } catch (const HostDeviceError& error) {
    reason = error.what();
  }
  if (shop_.events.note) {
    shop_.events.note(fmt::format("{} is left out: {}", wanted_.problem.text(), reason));
  }
  return false;
}

// Results measured under the same key count as if this sweep had made them.
void ProblemSweep::recall(SweepSummary& summary) {
  for (const Store::Known& known : shop_.store.known_trials(context_)) {
    if (!belongs(known.config)) {
      continue;
    }
    known_.insert(known.config.text());
    searcher_->observe(known.config, {known.status, known.median_us});
    if (known.status == TrialStatus::ok) {
      ++summary.reused_ok;
      keep(known.config, known.median_us);
    }
    default_crashed_ = default_crashed_ || (known.config == standard_ && known.status == TrialStatus::crashed);
  }
  summary.reused += static_cast<int>(known_.size());
}

// A space may have lost values since; what was measured with them is of no use to this sweep.
bool ProblemSweep::belongs(const Config& config) const {
  try {
    return !bound_.why_invalid(config);
  } catch (const Error&) {
    return false;
  }
}

void ProblemSweep::keep(const Config& config, double median_us) {
  ranking_.emplace(median_us, config);
  best_us_ = ranking_.begin()->first;
  if (config == standard_) {
    default_us_ = median_us;
  }
}

CompileRequest ProblemSweep::request(const Config& config) const {
  return compile_request(bound_, config, shop_.source, shop_.plan.kind, shop_.plan.architecture);
}

// The naive kernel, where results are compared with one: on GPUs, and where there is no host reference.
std::optional<Binary> ProblemSweep::reference() {
  const Reference& wanted = shop_.space.reference;
  if (!wanted.kernel || (shop_.device.info().kind == DeviceKind::host && !wanted.host.empty())) {
    return std::nullopt;
  }
  CompileRequest naive = request(standard_);
  naive.function = wanted.kernel->function;
  naive.defines.emplace_back("PASCALINE_REFERENCE=1");
  Compiled compiled = compile_now(naive);
  if (compiled.status != TrialStatus::ok) {
    no_reference_ = fmt::format("{}: the reference kernel '{}' cannot be used: {}", shop_.source.file.string(),
                                naive.function, compiled.result.reason);
    return std::nullopt;
  }
  return std::move(compiled.result.binary);
}

// Of a file in which nothing compiles, the trials tell more than the reference kernel's failure would.
void ProblemSweep::require_reference() const {
  if (!no_reference_.empty()) {
    throw Error(no_reference_);
  }
}

Compiled ProblemSweep::compile_now(const CompileRequest& request) {
  const std::uint64_t id = shop_.next_id++;
  shop_.pool.submit(id, request);
  for (;;) {
    if (auto compiled = shop_.pool.wait(std::chrono::seconds(1)); compiled && compiled->id == id) {
      return std::move(*compiled);
    }
  }
}

void ProblemSweep::submit(const Config& config) {
  known_.insert(config.text());
  in_flight_.emplace(shop_.next_id, config);
  shop_.pool.submit(shop_.next_id++, request(config));
}

// The default is measured before anything else, so that every gain has something to be compared with.
void ProblemSweep::measure_default(SweepSummary& summary) {
  if (!shop_.stop && !bound_.why_invalid(standard_) && known_.insert(standard_.text()).second) {
    attempt(standard_, compile_now(request(standard_)), summary);
  }
}

// Takes up a session that another process of this sweep began: its trials count, and a problem with finals is done.
bool ProblemSweep::finished_before(SweepSummary& summary) {
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
      summary.reused_ok -= stored.trial.status == TrialStatus::ok ? 1 : 0;
    }
  });
  return finals;
}

// A sweep that was killed takes its trial along as `crashed`, whatever killed it. The default gets one more chance,
// as nothing may win without being compared with it; after the search, where a second crash costs least.
void ProblemSweep::retry_default(SweepSummary& summary) {
  if (!default_crashed_) {
    return;
  }
  int crashes = 0;
  TrialFilter filter;
  filter.kernel = shop_.space.kernel;
  filter.problem = wanted_.problem.text();
  filter.status = TrialStatus::crashed;
  shop_.store.for_each_trial(filter, [&](const StoredTrial& stored) { crashes += stored.trial.is_default ? 1 : 0; });
  if (crashes == 1) {
    attempt(standard_, compile_now(request(standard_)), summary);
  }
}

// Compile as far ahead as the workers can use, never beyond the budget.
void ProblemSweep::fill_pool() {
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
bool ProblemSweep::step(SweepSummary& summary) {
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
  attempt(config, *compiled, summary);
  return true;
}

void ProblemSweep::attempt(const Config& config, const Compiled& compiled, SweepSummary& summary) {
  if (compiled.status == TrialStatus::ok) {
    require_reference();
  }
  shop_.store.begin_attempt(shop_.session, context_, config, TrialStage::search, config == standard_);
  const Trial trial = runner_->run(config, compiled, best_us_);
  shop_.store.add_trial(shop_.session, context_, trial);
  ++done_;
  ++summary.trials;
  const double median_us = trial.time ? trial.time->median_us : 0;
  if (trial.status == TrialStatus::ok) {
    ++summary.ok;
    keep(trial.config, median_us);
  }
  searcher_->observe(trial.config, {trial.status, median_us});
  if (!runner_->device_lost()) {
    store_sensors();
  }
  if (shop_.events.trial) {
    shop_.events.trial(trial, done_, shop_.options.trials, best_us_, default_us_);
  }
}

void ProblemSweep::store_sensors() {
  const Sensors sensors = shop_.device.read_sensors();
  TelemetryRow row;
  row.unix_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  row.temperature_c = sensors.temperature_c;
  row.sm_clock_mhz = sensors.sm_clock_mhz;
  row.memory_clock_mhz = sensors.memory_clock_mhz;
  row.power_w = sensors.power_w;
  if (sensors.throttle_reasons) {
    row.throttle_reasons = static_cast<std::int64_t>(*sensors.throttle_reasons);
  }
  row.governor_state = "measuring";
  if (row.temperature_c || row.sm_clock_mhz || row.memory_clock_mhz || row.power_w || row.throttle_reasons) {
    shop_.store.add_telemetry(shop_.session, row);
  }
}

void ProblemSweep::decide() {
  std::vector<Config> chosen;
  for (const auto& [median_us, config] : ranking_) {
    if (static_cast<int>(chosen.size()) < shop_.options.finalists && config != standard_) {
      chosen.push_back(config);
    }
  }
  if (default_us_ > 0) {
    chosen.push_back(standard_);
  }
  std::vector<std::pair<Config, Binary>> finalists;
  for (const Config& config : chosen) {
    Compiled compiled = compile_now(request(config));
    if (compiled.status == TrialStatus::ok) {
      finalists.emplace_back(config, std::move(compiled.result.binary));
    }
  }
  if (!finalists.empty()) {
    require_reference();
  }
  if (const auto result = run_finals(*runner_, finalists, shop_.options.finals)) {
    store_decision(*result);
  }
}

void ProblemSweep::store_decision(const FinalsResult& result) {
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

}  // namespace pascaline
