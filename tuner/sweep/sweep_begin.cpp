#include "tuner/sweep/sweep_begin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

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
#include "tuner/sweep/plan_record.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxSpentMs = 1'000'000'000'000;
constexpr std::chrono::milliseconds kLongestPlannedLate{1000};

std::string options_json(const SweepOptions& options, const std::vector<TakenOver>& taken_over) {
  nlohmann::json json{{"devices", options.devices},
                      {"target", options.compile.target},
                      {"searcher", options.search.searcher},
                      {"seed", options.search.seed},
                      {"trials", options.trials},
                      {"jobs", options.compile.jobs},
                      {"finalists", options.finalists},
                      {"objective", name_of(options.finals.objective.objective)},
                      {"cold_cache", options.measure.cold_cache},
                      {"folder", std::filesystem::current_path().string()}};
  if (options.budget_s) {
    json["budget_s"] = *options.budget_s;
  }
  if (options.record.shard) {
    json["shard"] = {{"fleet", options.record.shard->fleet},
                     {"index", options.record.shard->shard.index},
                     {"count", options.record.shard->shard.count}};
  }
  if (!taken_over.empty()) {
    json["other_devices"] = taken_over_json(taken_over);
  }
  if (!options.files.sensors.empty()) {
    json["sensors"] = options.files.sensors.string();
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
  return options.files.sensors.empty() ? open_device(device.id)->read_sensors()
                                       : SensorTrace::load(options.files.sensors).at(0).sensors;
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
                                                 std::max<std::size_t>(1, options.compile.jobs / models.size())));
  }
  return plans;
}

/// Makes the plans and sessions of a sweep, or takes up those of the run that it resumes.
class SweepBeginning {
 public:
  explicit SweepBeginning(SweepState& sweep) : sweep_(sweep) {}

  void begin(const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems);

 private:
  [[nodiscard]] std::vector<SessionRow> earlier_sessions();
  void check_planning_time(std::size_t problems);
  void warn_of_others(const DeviceInfo& device);
  void add_device(DevicePlan& plan, const DeviceInfo& device);
  void count_earlier_trials();
  [[nodiscard]] bool has_compiler(const StoredTrial& stored) const;

  SweepState& sweep_;
  std::vector<SessionRow> earlier_{};                       ///< of the run that is resumed
  std::vector<SessionRow> others_{};                        ///< of sweeps of other processes that are running now
  std::optional<SweepClock::TimePoint> planned_late_at_{};  ///< when the time was over before the plan was done
};

void SweepBeginning::begin(const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems) {
  const std::vector<DeviceInfo> devices = find_devices(sweep_.options.devices, sweep_.services.devices());
  sweep_.plans = make_plans(spaces, sweep_.options, sweep_.services, devices);
  sweep_.summary.run = sweep_.options.record.resume_run.empty() ? Store::new_run() : sweep_.options.record.resume_run;
  earlier_ = earlier_sessions();
  sweep_.time.limit(sweep_.options);
  for (const auto& plan : sweep_.plans) {
    plan->plan(sweep_.recorder, problems, sweep_.options.record.resume_run,
               [&] { check_planning_time(problems.size()); });
    const std::int64_t device = plan->context().device;
    if (const int settled = sweep_.recorder.persist([&](Store& store) { return store.settle_attempts(device); });
        settled > 0) {
      sweep_.recorder.note(fmt::format("{} during which the machine went down twice: now marked as crashed",
                                       counted(settled, "configuration")));
    }
  }
  // Before the sessions: whoever finds one of the run finds what to resume, too.
  std::vector<PlannedKernel> kernels;
  for (const auto& tunable : sweep_.plans.front()->tunables()) {
    kernels.push_back({tunable->own_space->kernel, tunable->source.hash, tunable->own_space->hash});
  }
  const SweepPlan stored = plan_of(std::move(kernels), problems, sweep_.options);
  sweep_.recorder.persist([&](Store& store) { store.save_plan(sweep_.summary.run, stored); });
  for (const auto& plan : sweep_.plans) {
    for (const DeviceInfo& info : devices) {
      if (same_model(info, plan->info())) {
        add_device(*plan, info);
      }
    }
  }
  count_earlier_trials();
}

// A plan of many problems takes time, too. One that is nearly done is finished all the same: then the run can be gone
// on with, and what it did not reach is told.
void SweepBeginning::check_planning_time(std::size_t problems) {
  if (!sweep_.stop && !sweep_.time.deadline.over()) {
    return;
  }
  sweep_.report_stop();
  if (!planned_late_at_) {
    planned_late_at_ = sweep_.time.clock.now();
  }
  if (sweep_.time.clock.now() - *planned_late_at_ < kLongestPlannedLate) {
    return;
  }
  const std::string planning =
      fmt::format("while {} problem{} being planned; nothing was started", problems, problems == 1 ? " was" : "s were");
  if (sweep_.stop) {
    throw SweepStoppedError(fmt::format("interrupted {}: start it again as before", planning));
  }
  throw Error(
      fmt::format("the sweep's time ran out {}: give it more time (--budget, --until) or fewer problems", planning));
}

// Sessions of the run that is to be resumed.
std::vector<SessionRow> SweepBeginning::earlier_sessions() {
  std::vector<SessionRow> found;
  for (SessionRow& session : sweep_.store.sessions()) {
    if (!sweep_.options.record.resume_run.empty() && session.run_uuid == sweep_.options.record.resume_run &&
        session.imported_from.empty()) {
      // Anybody may have written the file: more than any budget is as good as the most.
      sweep_.time.earlier_ms = std::max(sweep_.time.earlier_ms, std::min(session.spent_ms, kMaxSpentMs));
      found.push_back(std::move(session));
    } else if (session.alive && sweep_.options.record.shard &&
               shard_of_options(session.options_json) == sweep_.options.record.shard) {
      throw Error(fmt::format("shard {} is being measured into {} by process {}: what both try would be there twice",
                              sweep_.options.record.shard->shard.text(), sweep_.options.database.string(),
                              session.process_id));
    } else if (session.alive) {
      others_.push_back(std::move(session));
    }
  }
  return found;
}

// Another sweep goes on, and so does this one: whose times matter more is not known here.
void SweepBeginning::warn_of_others(const DeviceInfo& device) {
  const auto warn = [&](const std::string& who, const std::string& how_to_see) {
    sweep_.recorder.note(fmt::format(
        "warning: another sweep measures on {}, too: {}; they slow each other down, so stop one of them and "
        "resume it later{}",
        device.id, who, how_to_see));
  };
  bool told = false;
  for (const SessionRow& other : others_) {
    if (other.device_uuid == device.uuid && other.device.kind == device_row(device).kind) {
      const auto now = sweep_.time.clock.wall().time_since_epoch();
      const double age_s =
          std::max(0.0, std::chrono::duration<double>(now).count() - static_cast<double>(other.started_unix_ms) / 1000);
      warn(fmt::format("process {}, for {} now", other.process_id, duration_text(age_s)),
           fmt::format(" (pascaline status --db {} shows what runs)", sweep_.options.database.string()));
      told = true;
    }
  }
  if (device.kind == DeviceKind::cuda) {
    const DeviceClaim& claim =
        sweep_.claims.emplace_back(DeviceClaim::usual_folder(), device.uuid, sweep_.options.database.string());
    if (!told && !claim.other().empty()) {
      warn(claim.other(), "");
    }
  }
}

void SweepBeginning::add_device(DevicePlan& plan, const DeviceInfo& device) {
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
    sweep_.recorder.persist([&](Store& store) { store.resume_session(id); });
  } else {
    SessionRow session;
    session.run_uuid = sweep_.summary.run;
    session.command_line = sweep_.options.record.command_line;
    session.searcher = sweep_.options.search.searcher;
    session.seed = sweep_.options.search.seed;
    session.options_json = options_json(sweep_.options, plan.transfer().taken_over());
    session.device_uuid = device.uuid;
    session.program_version = kVersion;
    id = sweep_.recorder.persist(
        [&](Store& store) { return store.begin_session(session, plan.context().device, plan.context().toolkit); });
  }
  sweep_.summary.session = sweep_.summary.session == 0 ? id : sweep_.summary.session;
  if (std::none_of(sweep_.devices.begin(), sweep_.devices.end(),
                   [&](const ScheduledDevice& scheduled) { return scheduled.plan == &plan; })) {
    plan.set_session(id);
  }
  sweep_.devices.push_back(
      {&plan,
       std::make_unique<DeviceScheduler>(plan, sweep_.recorder, sweep_.options, sweep_.services, device, id,
                                         sweep_.time.deadline),
       sweep_.options.polite.enabled ? std::make_unique<PoliteWatch>(sweep_.options.polite, device) : nullptr});
}

// What the run's earlier processes stored counts as this one's.
void SweepBeginning::count_earlier_trials() {
  std::map<std::string, int> of_gone_compilers;
  for (const SessionRow& session : earlier_) {
    TrialFilter filter;
    filter.session_id = session.id;
    sweep_.store.for_each_trial(filter, [&](const StoredTrial& stored) {
      if (stored.trial.stage == TrialStage::search) {
        sweep_.summary.add(stored.trial);
        of_gone_compilers[stored.toolkit.compiler + " " + stored.toolkit.version] += has_compiler(stored) ? 0 : 1;
      }
    });
  }
  for (const auto& [compiler, trials] : of_gone_compilers) {
    if (trials > 0) {
      sweep_.recorder.note(
          fmt::format("warning: {} of this run used {}, which is not used now: they are kept, and nothing "
                      "is compared with them",
                      counted(trials, "trial"), compiler));
    }
  }
}

bool SweepBeginning::has_compiler(const StoredTrial& stored) const {
  return std::none_of(sweep_.plans.begin(), sweep_.plans.end(), [&](const auto& plan) {
    const std::vector<ToolkitRow> toolkits = plan->toolkits();
    return same_identity(stored.device, device_row(plan->info())) &&
           std::none_of(toolkits.begin(), toolkits.end(),
                        [&](const ToolkitRow& toolkit) { return same_compiler(toolkit, stored.toolkit); });
  });
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

void begin_sweep(SweepState& sweep, const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems) {
  SweepBeginning(sweep).begin(spaces, problems);
}

}  // namespace pascaline
