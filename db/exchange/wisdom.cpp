#include "db/exchange/wisdom.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "db/exchange/readers.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;

// Kernel and problem first, so that the entries of a kernel stand together.
using BestKey = std::tuple<std::string, std::string, std::string, std::string, std::int64_t>;

BestKey best_key(const Problem& problem, const DeviceRow& device) {
  return {problem.text(), device.name, device.kind, device.compute_capability, device.sm_count};
}

bool is_wanted(const SpaceFilter& filter, const Problem& problem, const DeviceRow& device) {
  return (filter.kernel.empty() || problem.kernel == filter.kernel) &&
         (filter.problem.empty() || problem.text() == filter.problem) &&
         (filter.device.empty() || device.name == filter.device);
}

// The fastest trial of a problem on a device, for what has no winner.
struct Fastest {
  std::optional<StoredTrial> best;
  std::optional<TimeSummary> default_time;
  ToolkitRow toolkit;
  KernelRow kernel;

  void add(const StoredTrial& stored) {
    if (!(toolkit == stored.toolkit) || !(kernel == stored.kernel)) {
      *this = {std::nullopt, std::nullopt, stored.toolkit, stored.kernel};  // trials come in the order they were made
    }
    const Trial& trial = stored.trial;
    if (trial.status != TrialStatus::ok || !trial.time) {
      return;
    }
    if (trial.is_default) {
      default_time = trial.time;
    }
    if (!best || trial.time->median_us < best->trial.time->median_us) {
      best = stored;
    }
  }
};

ordered_json problem_json(const Problem& problem) {
  ordered_json dimensions = ordered_json::object();
  for (const auto& [name, value] : problem.dimensions) {
    dimensions[name] = value;
  }
  ordered_json types = ordered_json::object();
  for (const auto& [name, type] : problem.types) {
    types[name] = name_of(type);
  }
  return {{"dimensions", dimensions}, {"types", types}};
}

ordered_json device_json(const DeviceRow& device) {
  return {{"name", device.name},
          {"kind", device.kind},
          {"compute_capability", device.compute_capability},
          {"sm_count", device.sm_count}};
}

ordered_json entry_of(const Trial& trial, const DeviceRow& device, const ToolkitRow& toolkit, const KernelRow& kernel,
                      const std::optional<TimeSummary>& default_time) {
  return {{"kernel", trial.problem.kernel},
          {"source_hash", kernel.source_hash},
          {"device", device_json(device)},
          {"problem", problem_json(trial.problem)},
          {"config", trial.config.json()},
          {"time_us", trial.time->median_us},
          {"time_interval_us", {trial.time->low_us, trial.time->high_us}},
          {"samples", trial.time->count},
          {"default_time_us", default_time ? ordered_json(default_time->median_us) : ordered_json()},
          {"confidence", nullptr},
          {"decided", false},
          {"environment",
           {{"compiler", toolkit.compiler},
            {"compiler_version", toolkit.version},
            {"target", toolkit.target},
            {"driver", toolkit.driver_version},
            {"date", nullptr}}}};
}

void put_date(ordered_json& entry, std::int64_t unix_ms) {
  if (unix_ms > 0) {
    entry["environment"]["date"] = timestamp_of(unix_ms);
  }
}

std::map<BestKey, Fastest> fastest_trials(const Store& store, const SpaceFilter& filter) {
  std::map<BestKey, Fastest> out;
  TrialFilter wanted;
  wanted.kernel = filter.kernel;
  wanted.problem = filter.problem;
  store.for_each_trial(wanted, [&](const StoredTrial& stored) {
    if (stored.trial.stage == TrialStage::search && is_wanted(filter, stored.trial.problem, stored.device)) {
      out[best_key(stored.trial.problem, stored.device)].add(stored);
    }
  });
  return out;
}

}  // namespace

std::optional<std::string> wisdom_json(const Store& store, const SpaceFilter& filter) {
  std::map<BestKey, ordered_json> entries;
  for (const Winner& winner : store.winners(filter.kernel, nullptr)) {  // the newest decision first
    const BestKey key = best_key(winner.trial.problem, winner.device);
    if (!is_wanted(filter, winner.trial.problem, winner.device) || !winner.trial.time || entries.contains(key)) {
      continue;
    }
    ordered_json entry = entry_of(winner.trial, winner.device, winner.toolkit, winner.kernel, winner.baseline);
    entry["confidence"] = winner.confidence;
    entry["decided"] = winner.trial.stage == TrialStage::finals;
    put_date(entry, winner.decided_unix_ms);
    entries.emplace(key, std::move(entry));
  }
  for (const auto& [key, fastest] : fastest_trials(store, filter)) {
    if (fastest.best && !entries.contains(key)) {
      const StoredTrial& stored = *fastest.best;
      ordered_json entry = entry_of(stored.trial, stored.device, stored.toolkit, stored.kernel, fastest.default_time);
      put_date(entry, stored.trial.started_unix_ms);
      entries.emplace(key, std::move(entry));
    }
  }
  if (entries.empty()) {
    return std::nullopt;
  }
  ordered_json document{{"format", "pascaline-wisdom"}, {"version", 1}, {"entries", ordered_json::array()}};
  for (auto& [key, entry] : entries) {
    document["entries"].push_back(std::move(entry));
  }
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace pascaline
