#include "db/exchange/store_spaces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "db/exchange/space_builder.hpp"

namespace pascaline {
namespace {

// How far an interval can be trusted: fewer samples than this do not bound the median at 95 %.
constexpr int kFewSamples = 6;

// Whether `a` says more of the configuration's time than `b`.
bool more_certain(const Trial& a, const Trial& b) {
  if (!has_time(a.status) || !has_time(b.status)) {
    return has_time(a.status);
  }
  const bool few_a = a.time->count < kFewSamples;
  const bool few_b = b.time->count < kFewSamples;
  if (few_a != few_b) {
    return few_b;
  }
  return (a.time->high_us - a.time->low_us) / a.time->median_us <
         (b.time->high_us - b.time->low_us) / b.time->median_us;
}

bool is_usable(const Trial& trial) {
  return !has_time(trial.status) || (trial.time && trial.time->median_us > 0 && std::isfinite(trial.time->median_us));
}

RecordedTrial recorded(const Trial& trial) {
  RecordedTrial out;
  // The formats of other tuners hold either a time or a failure.
  out.status = has_time(trial.status) ? TrialStatus::ok : trial.status;
  out.compile_ms = trial.compile_ms;
  out.verify_ms = trial.verify_ms;
  out.measure_ms = trial.measure_ms;
  out.started_unix_ms = trial.started_unix_ms;
  if (!has_time(trial.status)) {
    out.reason = one_line(trial.reason);
    return out;
  }
  out.time_us = trial.time->median_us;
  for (const Sample& sample : trial.samples) {
    if (sample.counted()) {
      out.samples_us.push_back(sample.time_us * trial.clock_scale);
    }
  }
  return out;
}

// The trials of one space while a database is read.
class StoredSpace {
 public:
  void add(const Trial& trial) {
    std::string key;
    for (const auto& [name, value] : trial.config.settings()) {
      key += value_key(value) + '\n';
    }
    const auto [place, added] = known_.try_emplace(std::move(key), trials_.size());
    if (added) {
      trials_.push_back(trial);
      return;
    }
    Trial& known = trials_[place->second];
    const bool both_failed = !has_time(trial.status) && !has_time(known.status);
    if (both_failed || more_certain(trial, known)) {
      known = trial;
    }
  }

  [[nodiscard]] RecordedSpace finish(const StoredTrial& first, const std::string& file) const {
    SpaceBuilder builder("pascaline");
    const SpaceBuilder::Complain complain = [&](const std::string& problem) {
      throw StoreError(
          fmt::format("cannot read the recorded space of {} from {}: {}", first.trial.problem.text(), file, problem));
    };
    for (const auto& [name, value] : first.trial.config.settings()) {
      builder.add_parameter(name, {}, complain);
    }
    for (const Trial& trial : trials_) {
      std::vector<Value> values;
      for (const auto& [name, value] : trial.config.settings()) {
        values.push_back(value);
      }
      builder.add(recorded(trial), values, trial.config.text(), complain);
    }
    RecordedSpace space = builder.finish();
    const std::string problem = first.trial.problem.text();
    space.kernel = first.trial.problem.kernel;
    space.problem_size = problem.substr(std::min(problem.size(), space.kernel.size() + 1));
    space.device = first.device.name;
    space.name = problem + " " + first.device.name;
    return space;
  }

 private:
  std::vector<Trial> trials_;
  std::unordered_map<std::string, std::size_t> known_;  // configuration to trial
};

// What trials of one space have in common.
std::string space_key(const StoredTrial& stored) {
  const DeviceRow& device = stored.device;
  const ToolkitRow& toolkit = stored.toolkit;
  std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", device.kind, device.name, device.compute_capability,
                  device.sm_count, toolkit.compiler, toolkit.version, toolkit.target, toolkit.driver_version,
                  stored.kernel.source_hash, stored.trial.problem.text());
  for (const auto& [name, value] : stored.trial.config.settings()) {
    key += '\n' + name;
  }
  return key;
}

}  // namespace

std::vector<RecordedSpace> recorded_spaces(const Store& store, const SpaceFilter& filter) {
  std::vector<std::pair<StoredTrial, StoredSpace>> spaces;  // with the first trial of each
  std::unordered_map<std::string, std::size_t> places;
  TrialFilter wanted;
  wanted.kernel = filter.kernel;
  wanted.problem = filter.problem;
  wanted.with_samples = filter.with_samples;
  store.for_each_trial(wanted, [&](const StoredTrial& stored) {
    if (stored.trial.stage != TrialStage::search || stored.trial.config.settings().empty() ||
        !is_usable(stored.trial) || (!filter.device.empty() && stored.device.name != filter.device)) {
      return;
    }
    const auto [place, added] = places.try_emplace(space_key(stored), spaces.size());
    if (added) {
      spaces.emplace_back(stored, StoredSpace());
    }
    spaces[place->second].second.add(stored.trial);
  });
  std::vector<RecordedSpace> out;
  out.reserve(spaces.size());
  for (const auto& [first, space] : spaces) {
    out.push_back(space.finish(first, store.file().string()));
  }
  return out;
}

}  // namespace pascaline
