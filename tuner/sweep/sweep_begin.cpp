#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "core/version.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/thermal/sensor_trace.hpp"
#include "tuner/finals/objective.hpp"
#include "tuner/monitor/energy.hpp"
#include "tuner/monitor/sustained.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/phase_times.hpp"
#include "tuner/sweep/plan_record.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_run.hpp"

// How a sweep begins: its devices, plans and sessions, and what is told of them.
namespace pascaline {
namespace {

constexpr std::int64_t kMaxSpentMs = 1'000'000'000'000;
constexpr std::chrono::milliseconds kLongestPlannedLate{1000};

std::string options_json(const SweepOptions& options, const std::vector<TakenOver>& taken_over) {
  nlohmann::json json{{"devices", options.devices},
                      {"target", options.target},
                      {"searcher", options.searcher},
                      {"seed", options.seed},
                      {"trials", options.trials},
                      {"jobs", options.jobs},
                      {"finalists", options.finalists},
                      {"objective", name_of(options.finals.objective.objective)},
                      {"cold_cache", options.measure.cold_cache},
                      {"folder", std::filesystem::current_path().string()}};
  if (options.budget_s) {
    json["budget_s"] = *options.budget_s;
  }
  if (options.shard) {
    json["shard"] = {
        {"fleet", options.shard->fleet}, {"index", options.shard->shard.index}, {"count", options.shard->shard.count}};
  }
  if (!taken_over.empty()) {
    json["other_devices"] = taken_over_json(taken_over);
  }
  if (!options.sensors.empty()) {
    json["sensors"] = options.sensors.string();
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The devices asked for, in that order; throws Error naming those there are.
std::vector<DeviceInfo> find_devices(const std::vector<std::string>& ids, const std::vector<DeviceInfo>& all) {
  std::vector<DeviceInfo> chosen;
  for (const std::string& name : ids) {
    const std::string id = device_id_of(name);
    const auto found = std::find_if(all.begin(), all.end(), [&](const DeviceInfo& info) { return info.id == id; });
    if (found == all.end()) {
      std::ignore = open_device(id);  // throws, saying why there is none
      throw Error(fmt::format("the device '{}' just became available; try again", id));
    }
    if (std::none_of(chosen.begin(), chosen.end(), [&](const DeviceInfo& info) { return info.id == id; })) {
      chosen.push_back(*found);
    }
  }
  return chosen;
}

Sensors sensors_at_the_start(const DeviceInfo& device, const SweepOptions& options) {
  return options.sensors.empty() ? open_device(device.id)->read_sensors()
                                 : SensorTrace::load(options.sensors).at(0).sensors;
}

bool same_model(const DeviceInfo& a, const DeviceInfo& b) {
  return same_identity(device_row(a), device_row(b)) && a.driver_version == b.driver_version &&
         a.limits.l2_bytes == b.limits.l2_bytes;
}

// Devices of one model share a plan and what is compiled for it; the compile workers are shared out evenly.
std::vector<std::unique_ptr<DevicePlan>> make_plans(const std::vector<Space>& spaces, const SweepOptions& options,
                                                    const SweepServices& services,
                                                    const std::vector<DeviceInfo>& devices) {
  std::vector<DeviceInfo> models;
  for (const DeviceInfo& info : devices) {
    if (std::none_of(models.begin(), models.end(), [&](const DeviceInfo& model) { return same_model(model, info); })) {
      models.push_back(info);
    }
  }
  std::vector<std::unique_ptr<DevicePlan>> plans;
  for (const DeviceInfo& model : models) {
    plans.push_back(std::make_unique<DevicePlan>(spaces, options, services, model,
                                                 std::max<std::size_t>(1, options.jobs / models.size())));
  }
  return plans;
}

}  // namespace

void require_sensors_of_objective(const SweepOptions& options, std::string_view way_out) {
  const FinalsObjective& objective = objective_of(options.finals);
  if (objective.by_time_alone()) {
    return;
  }
  for (const DeviceInfo& device : find_devices(options.devices, list_devices())) {
    const Sensors sensors = sensors_at_the_start(device, options);
    const DeviceReports reports{sensors.power_w, sane_power_w(sensors).has_value(), reports_heat(sensors)};
    if (const std::string refusal = objective.refusal(reports); !refusal.empty()) {
      const bool sustained = objective_of(Objective::sustained).refusal(reports).empty();
      throw Error(fmt::format("--objective {}: {} ({}) {}; `pascaline devices` shows what it reports: {}{}",
                              name_of(objective.id()), device.id, device.name, refusal, way_out,
                              sustained ? ", or use --objective sustained, for which it reports enough" : ""));
    }
  }
}

SweepRun::SweepRun(const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems,
                   const SweepOptions& options, const SweepEvents& events, const std::atomic<bool>& stop,
                   const SweepServices& services)
    : services_(services),
      options_(options),
      events_(events),
      stop_(stop),
      store_(options.database, OpenMode::create),
      recorder_(store_, summary_, events_, stop_, options.database_wait_s) {
  store_.set_busy_timeout(
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * std::min(1.0, options.database_wait_s))));
  const std::vector<DeviceInfo> devices = find_devices(options.devices, services.devices());
  plans_ = make_plans(spaces, options, services, devices);
  summary_.run = options.resume_run.empty() ? Store::new_run() : options.resume_run;
  earlier_ = earlier_sessions();
  start_clock();
  for (const auto& plan : plans_) {
    plan->plan(recorder_, problems, options.resume_run, [&] { check_planning_time(problems.size()); });
    const std::int64_t device = plan->context().device;
    if (const int settled = recorder_.persist([&](Store& store) { return store.settle_attempts(device); });
        settled > 0) {
      recorder_.note(fmt::format("{} during which the machine went down twice: now marked as crashed",
                                 counted(settled, "configuration")));
    }
  }
  // Before the sessions: whoever finds one of the run finds what to resume, too.
  std::vector<PlannedKernel> kernels;
  for (const auto& tunable : plans_.front()->tunables()) {
    kernels.push_back({tunable->own_space->kernel, tunable->source.hash, tunable->own_space->hash});
  }
  const SweepPlan stored = plan_of(std::move(kernels), problems, options);
  recorder_.persist([&](Store& store) { store.save_plan(summary_.run, stored); });
  for (const auto& plan : plans_) {
    for (const DeviceInfo& info : devices) {
      if (same_model(info, plan->info())) {
        add_device(*plan, info);
      }
    }
  }
  for (const auto& plan : plans_) {
    plan->heed([this] { check_search(); });
  }
  count_earlier_trials();
  tell_plan();
}

// From the call on: opening devices and reading the database are part of the time.
void SweepRun::start_clock() {
  const double spent_s = static_cast<double>(spent_ms()) / 1000;
  const std::optional<double> left_s =
      options_.budget_s ? std::optional(std::max(0.0, *options_.budget_s - spent_s)) : std::nullopt;
  deadline_ = Deadline(left_s, options_.until, clock_.deadline_clocks());
  limit_s_ = deadline_.left_s();
}

// A plan of many problems takes time, too. One that is nearly done is finished all the same: then the run can be gone
// on with, and what it did not reach is told.
void SweepRun::check_planning_time(std::size_t problems) {
  if (!stop_ && !deadline_.over()) {
    return;
  }
  report_stop();
  if (!planned_late_at_) {
    planned_late_at_ = clock_.now();
  }
  if (clock_.now() - *planned_late_at_ < kLongestPlannedLate) {
    return;
  }
  const std::string planning =
      fmt::format("while {} problem{} being planned; nothing was started", problems, problems == 1 ? " was" : "s were");
  if (stop_) {
    throw SweepStoppedError(fmt::format("interrupted {}: start it again as before", planning));
  }
  throw Error(
      fmt::format("the sweep's time ran out {}: give it more time (--budget, --until) or fewer problems", planning));
}

// Sessions of the run that is to be resumed.
std::vector<SessionRow> SweepRun::earlier_sessions() {
  std::vector<SessionRow> found;
  for (SessionRow& session : store_.sessions()) {
    if (!options_.resume_run.empty() && session.run_uuid == options_.resume_run && session.imported_from.empty()) {
      // Anybody may have written the file: more than any budget is as good as the most.
      earlier_spent_ms_ = std::max(earlier_spent_ms_, std::min(session.spent_ms, kMaxSpentMs));
      found.push_back(std::move(session));
    } else if (session.alive && options_.shard && shard_of_options(session.options_json) == options_.shard) {
      throw Error(fmt::format("shard {} is being measured into {} by process {}: what both try would be there twice",
                              options_.shard->shard.text(), options_.database.string(), session.process_id));
    } else if (session.alive) {
      others_.push_back(std::move(session));
    }
  }
  return found;
}

// Another sweep goes on, and so does this one: whose times matter more is not known here.
void SweepRun::warn_of_others(const DeviceInfo& device) {
  const auto warn = [&](const std::string& who, const std::string& how_to_see) {
    recorder_.note(fmt::format(
        "warning: another sweep measures on {}, too: {}; they slow each other down, so stop one of them and "
        "resume it later{}",
        device.id, who, how_to_see));
  };
  bool told = false;
  for (const SessionRow& other : others_) {
    if (other.device_uuid == device.uuid && other.device.kind == device_row(device).kind) {
      const auto now = clock_.wall().time_since_epoch();
      const double age_s =
          std::max(0.0, std::chrono::duration<double>(now).count() - static_cast<double>(other.started_unix_ms) / 1000);
      warn(fmt::format("process {}, for {} now", other.process_id, duration_text(age_s)),
           fmt::format(" (pascaline status --db {} shows what runs)", options_.database.string()));
      told = true;
    }
  }
  if (device.kind == DeviceKind::cuda) {
    const DeviceClaim& claim =
        claims_.emplace_back(DeviceClaim::usual_folder(), device.uuid, options_.database.string());
    if (!told && !claim.other().empty()) {
      warn(claim.other(), "");
    }
  }
}

void SweepRun::add_device(DevicePlan& plan, const DeviceInfo& device) {
  warn_of_others(device);
  std::int64_t id = 0;
  // With another toolkit nothing counts that the session measured, and what it says of itself would be wrong.
  const ToolkitRow toolkit = plan.toolkits().front();
  const auto earlier = std::find_if(earlier_.begin(), earlier_.end(), [&](const SessionRow& session) {
    return session.device_uuid == device.uuid && session.device.name == device_row(device).name &&
           session.toolkit == toolkit;
  });
  if (earlier != earlier_.end()) {
    id = earlier->id;
    recorder_.persist([&](Store& store) { store.resume_session(id); });
  } else {
    SessionRow session;
    session.run_uuid = summary_.run;
    session.command_line = options_.command_line;
    session.searcher = options_.searcher;
    session.seed = options_.seed;
    session.options_json = options_json(options_, plan.transfer().taken_over());
    session.device_uuid = device.uuid;
    session.program_version = kVersion;
    id = recorder_.persist(
        [&](Store& store) { return store.begin_session(session, plan.context().device, plan.context().toolkit); });
  }
  summary_.session = summary_.session == 0 ? id : summary_.session;
  if (std::none_of(devices_.begin(), devices_.end(),
                   [&](const ScheduledDevice& scheduled) { return scheduled.plan == &plan; })) {
    plan.set_session(id);
  }
  devices_.push_back({&plan,
                      std::make_unique<DeviceScheduler>(plan, recorder_, options_, services_, device, id, deadline_),
                      options_.polite.enabled ? std::make_unique<PoliteWatch>(options_.polite, device) : nullptr});
}

// What the run's earlier processes stored counts as this one's.
void SweepRun::count_earlier_trials() {
  std::map<std::string, int> of_gone_compilers;
  for (const SessionRow& session : earlier_) {
    TrialFilter filter;
    filter.session_id = session.id;
    store_.for_each_trial(filter, [&](const StoredTrial& stored) {
      if (stored.trial.stage == TrialStage::search) {
        summary_.add(stored.trial);
        of_gone_compilers[stored.toolkit.compiler + " " + stored.toolkit.version] += has_compiler(stored) ? 0 : 1;
      }
    });
  }
  for (const auto& [compiler, trials] : of_gone_compilers) {
    if (trials > 0) {
      recorder_.note(
          fmt::format("warning: {} of this run used {}, which is not used now: they are kept, and nothing "
                      "is compared with them",
                      counted(trials, "trial"), compiler));
    }
  }
}

bool SweepRun::has_compiler(const StoredTrial& stored) const {
  return std::none_of(plans_.begin(), plans_.end(), [&](const auto& plan) {
    const std::vector<ToolkitRow> toolkits = plan->toolkits();
    return same_identity(stored.device, device_row(plan->info())) &&
           std::none_of(toolkits.begin(), toolkits.end(),
                        [&](const ToolkitRow& toolkit) { return same_compiler(toolkit, stored.toolkit); });
  });
}

// Seconds by what earlier sweeps took, the devices working side by side; nothing where one has no such sweeps.
std::optional<double> SweepRun::expected_s() const {
  double seconds = 0;
  for (const auto& plan : plans_) {
    const auto count = std::count_if(devices_.begin(), devices_.end(),
                                     [&](const ScheduledDevice& scheduled) { return scheduled.plan == plan.get(); });
    double plan_s = 0;
    double windows_s = 0;
    for (const auto& tunable : plan->tunables()) {
      PlannedWork work;
      for (const auto& task : plan->tasks()) {
        const bool counts = &task->tunable == tunable.get() && !task->over();
        work.trials += counts ? task->search.remaining() : 0;
        work.problems += counts ? 1 : 0;
      }
      if (work.problems == 0) {
        continue;
      }
      const TrialCost cost =
          store_.trial_costs(plan->context().device, tunable->space->kernel, options_.finals.objective.objective);
      auto kernel_s = estimate_s(work, cost);
      kernel_s = kernel_s ? kernel_s : tunable->guessed_s(work);
      if (!kernel_s) {
        return std::nullopt;
      }
      plan_s += *kernel_s;
      const bool has_windows = !cost.with_objective;
      windows_s += has_windows ? work.problems * objective_windows_s(options_.finals) : 0;
    }
    plan_s += windows_s;
    seconds = std::max(seconds, plan_s / static_cast<double>(std::max<std::ptrdiff_t>(1, count)));
  }
  return seconds;
}

// What will be done, and how long that is expected to take.
void SweepRun::tell_plan() {
  for (const auto& plan : plans_) {
    for (const std::string& line : plan->compilers_left_out()) {
      recorder_.note(line);
    }
    for (const std::string& line : plan->transfer().taken_over_lines(plan->problems())) {
      recorder_.note(line);
    }
    std::vector<std::string> compilers;
    for (const CompilerInfo& compiler : plan->compilers().compilers()) {
      compilers.push_back(compiler.text());
    }
    std::vector<std::string> ids;
    for (const ScheduledDevice& scheduled : devices_) {
      if (scheduled.plan == plan.get()) {
        ids.push_back(scheduled.scheduler->device());
      }
    }
    recorder_.note(fmt::format("{} ({}), {} for {}, {}", plan->info().name, fmt::join(ids, ", "),
                               fmt::join(compilers, " and "), shown_architecture(plan->target().architecture),
                               counted(plan->builds().builder().workers(), "compile worker")));
  }
  const bool limited = options_.trials < kUnlimitedTrials;
  const auto left_s = deadline_.left_s();
  summary_.expected_s = limited ? expected_s() : left_s;
  if (summary_.expected_s && left_s) {
    summary_.expected_s = std::min(*summary_.expected_s, *left_s);
  }
  std::string time = summary_.expected_s ? "about " + duration_text(*summary_.expected_s)
                                         : "duration unknown, as no earlier sweep here tells";
  if (left_s) {
    time = limited && summary_.expected_s != left_s
               ? time + fmt::format(", at most {}", duration_text(*left_s))
               : fmt::format("{}, shared by expected speedup of the whole model", duration_text(*left_s));
  }
  const auto& tasks = plans_.front()->tasks();
  const auto between = static_cast<std::size_t>(
      std::ranges::count_if(tasks, [](const auto& task) { return task->search.wanted().between; }));
  const std::size_t problems = tasks.size() - between;
  const std::string trials = limited ? fmt::format("up to {} each", counted(options_.trials, "trial"))
                             : options_.searcher == kNoSearcher ? std::string("defaults and portfolios only")
                                                                : std::string("as many trials as fit");
  const std::size_t kernels = plans_.front()->tunables().size();
  const FinalsObjective& by = objective_of(options_.finals);
  const std::string objective = by.by_time_alone() ? "" : fmt::format(" by time and by {}", phrase_of(by.id()));
  const std::string time_left =
      !deepens(options_) ? std::string()
      : between > 0      ? fmt::format("; with time left: finals again, neighbours of winners, {} in between",
                                       counted(between, "shape"))
                         : std::string("; with time left: finals again, neighbours of winners");
  recorder_.note(fmt::format("plan: {}{}, {}, then finals{}; {}{}", counted(problems, "problem"),
                             kernels > 1 ? fmt::format(" of {} kernels", kernels) : "", trials, objective, time,
                             time_left));
  report_forecast();
}

// Nothing where the time suffices for a first look at every problem.
void SweepRun::report_forecast() {
  const auto left_s = deadline_.left_s();
  if (!left_s) {
    return;
  }
  for (const auto& plan : plans_) {
    if (auto short_of = forecast_of(*plan, devices_of(*plan), *left_s)) {
      recorder_.note((plans_.size() > 1 ? short_of->device + ": " : "") + forecast_text(*short_of));
      summary_.forecasts.push_back(std::move(*short_of));
    }
  }
}

}  // namespace pascaline
