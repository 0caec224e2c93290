#include "tuner/simulation/sweep_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/device/device_rates.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "db/exchange/store_spaces.hpp"
#include "db/exchange/unpack.hpp"
#include "db/sweep_plan.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/device/compile.hpp"
#include "tuner/simulation/simulated_world.hpp"
#include "tuner/static_model/rank_correlation.hpp"
#include "tuner/sweep/agenda.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;

constexpr int kRecordingSchema = 1;
constexpr std::size_t kMaxCandidates = 4096;  // values of a parameter
constexpr double kPreparationSeconds = 0.2;   // of a problem whose turn no other's went before

constexpr std::array<std::pair<const char*, double RecordedCandidate::*>, 4> kColumns{
    {{"build_s", &RecordedCandidate::build_s},
     {"verify_s", &RecordedCandidate::verify_s},
     {"measure_s", &RecordedCandidate::measure_s},
     {"time_us", &RecordedCandidate::time_us}}};

double rounded(double value) { return std::stod(fmt::format("{:.3g}", value)); }

double spent_s(const Trial& trial) { return (trial.verify_ms + trial.measure_ms) / 1000; }

// Returns the shortest preparation of each problem: from the end of another problem's turn (its last trial or decision)
// to the first trial of a turn of this one.
std::map<std::string, double> preparations_s(const Store& store, const SessionRow& session) {
  std::map<std::string, std::set<double>> decided_s;
  for (const PastDecision& decision : store.decisions(session.device)) {
    decided_s[decision.problem].insert(static_cast<double>(decision.decided_unix_ms) / 1000);
  }
  std::map<std::string, double> shortest_s;
  std::string present;
  double end_s = 0;
  TrialFilter filter;
  filter.session_id = session.id;
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    const Trial& trial = stored.trial;
    if (!(spent_s(trial) > 0)) {
      return;
    }
    const double start_s = static_cast<double>(trial.started_unix_ms) / 1000;
    const std::string problem = trial.problem.text();
    if (!present.empty() && problem != present) {
      const std::set<double>& decided = decided_s[present];
      const auto after = decided.upper_bound(start_s);
      const double free_s = after != decided.begin() ? std::max(end_s, *std::prev(after)) : end_s;
      const double gap_s = std::max(0.0, start_s - free_s);
      const auto [known, first] = shortest_s.emplace(problem, gap_s);
      known->second = std::min(known->second, gap_s);
    }
    present = problem;
    end_s = std::max(end_s, start_s + spent_s(trial));
  });
  return shortest_s;
}

// Finals know times better than the search does. A finalist takes time besides its launches, too.
void take_finals(const Store& store, const RecordedSpace& space, RecordedSearch& search) {
  std::map<std::string, double> times_us;
  double besides_s = 0;
  int finalists = 0;
  TrialFilter filter;
  filter.kernel = search.kernel;
  filter.problem = search.problem;
  filter.with_samples = true;
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    const Trial& trial = stored.trial;
    if (trial.stage == TrialStage::finals && trial.time && stored.device.name == space.device) {
      times_us[trial.config.text()] = trial.time->median_us;
      const double launches_s = 1e-6 * trial.time->median_us * static_cast<double>(trial.samples.size());
      besides_s += std::max(0.0, spent_s(trial) - launches_s);
      ++finalists;
    }
  });
  for (std::size_t i = 0; i < search.candidates.size(); ++i) {
    const auto known = times_us.find(space.config(space.trials[i]).text());
    if (known != times_us.end() && search.candidates[i].usable()) {
      search.candidates[i].time_us = known->second;
    }
  }
  search.finalist_s = finalists > 0 ? besides_s / finalists : 0;
}

// A compiled kernel from the cache took no time: it counts as much as the mean of the others.
void fill_in_builds(SweepRecording& recording) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const RecordedSearch& search : recording.searches) {
    for (const RecordedCandidate& candidate : search.candidates) {
      sums[search.kernel].first += candidate.build_s;
      sums[search.kernel].second += candidate.build_s > 0 ? 1 : 0;
    }
  }
  for (RecordedSearch& search : recording.searches) {
    const auto& [sum_s, built] = sums[search.kernel];
    for (RecordedCandidate& candidate : search.candidates) {
      candidate.build_s = candidate.build_s > 0 || built == 0 ? candidate.build_s : sum_s / built;
    }
  }
}

// Trials are stored as they end, a failure to compile before what was proposed earlier: the default comes first in any
// case.
RecordedSearch search_of(const Store& store, const PlannedProblem& planned, const std::string& device,
                         const Config& standard) {
  RecordedSearch search;
  search.problem = planned.problem.text();
  search.kernel = planned.problem.kernel;
  search.calls = planned.count;
  std::vector<RecordedSpace> spaces = recorded_spaces(store, {search.kernel, search.problem, device});
  if (spaces.empty()) {
    return search;
  }
  RecordedSpace& space =
      *std::ranges::max_element(spaces, {}, [](const RecordedSpace& recorded) { return recorded.trials.size(); });
  const auto first =
      std::ranges::find(space.trials, standard, [&](const RecordedTrial& trial) { return space.config(trial); });
  if (first == space.trials.end()) {
    return search;
  }
  std::rotate(space.trials.begin(), first, first + 1);
  for (const RecordedTrial& trial : space.trials) {
    search.candidates.push_back(
        {trial.compile_ms / 1000, trial.verify_ms / 1000, trial.measure_ms / 1000, trial.time_us});
  }
  take_finals(store, space, search);
  return search;
}

RecordedSearch search_from(const ordered_json& json) {
  RecordedSearch search{json.at("problem"), json.at("kernel"),        json.at("calls"),      json.at("flops"),
                        json.at("bytes"),   json.at("preparation_s"), json.at("finalist_s"), {}};
  search.candidates.resize(json.at("time_us").size());
  for (const auto& [name, member] : kColumns) {
    const auto values = json.at(name).get<std::vector<double>>();
    if (values.size() != search.candidates.size() || std::ranges::any_of(values, [](double v) { return v < 0; })) {
      throw Error(fmt::format("{}: '{}' is not a list of {} numbers that are not negative", search.problem, name,
                              search.candidates.size()));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      search.candidates[i].*member = values[i];
    }
  }
  if (search.candidates.empty() || search.candidates.size() > kMaxCandidates || !search.candidates.front().usable()) {
    throw Error(fmt::format("{}: has {} candidates; there must be 1 to {}, the first of them usable", search.problem,
                            search.candidates.size(), kMaxCandidates));
  }
  return search;
}

}  // namespace

SweepRecording recording_of(const Store& store, const std::filesystem::path& spaces) {
  const std::vector<SessionRow> sessions = store.sessions();
  const auto plan = sessions.empty() ? std::nullopt : store.plan(sessions.front().run_uuid);
  if (!plan) {
    throw Error(fmt::format("{}: has no sweep to record; sweep into it first", store.file().string()));
  }
  const SessionRow& session = sessions.front();
  const std::map<std::string, double> known_s = preparations_s(store, session);
  SweepRecording recording{
      fmt::format("measured on {}", session.device.name), session.device, static_cast<std::size_t>(plan->jobs), {}};
  const DeviceLimits limits = compile_target(device_info(session.device), plan->target).limits;
  const bool any_phases =
      std::ranges::any_of(plan->problems, [](const PlannedProblem& planned) { return !planned.phases.empty(); });
  std::map<std::string, Space> kernels;
  for (const PlannedProblem& planned : plan->problems) {
    const std::string& kernel = planned.problem.kernel;
    if (is_site(kernel) || !(planned.count > 0) || (any_phases && planned.phases.empty())) {
      continue;
    }
    if (!kernels.contains(kernel)) {
      kernels.emplace(kernel, Space::load(kernel_file(spaces, kernel, ".json")));
    }
    const BoundSpace bound(kernels.at(kernel), planned.problem, limits);
    RecordedSearch search = search_of(store, planned, session.device.name, bound.default_config());
    if (search.candidates.empty() || !search.candidates.front().usable()) {
      continue;
    }
    search.candidates.resize(std::min(search.candidates.size(), kMaxCandidates));
    search.flops = bound.flops();
    search.bytes = bound.bytes();
    const auto known = known_s.find(search.problem);
    search.preparation_s = known != known_s.end() ? known->second : kPreparationSeconds;
    recording.searches.push_back(std::move(search));
  }
  if (recording.searches.empty()) {
    throw Error(fmt::format("{}: the last sweep has no problem whose default is usable", store.file().string()));
  }
  fill_in_builds(recording);
  return recording;
}

std::string json_of(const SweepRecording& recording) {
  std::string text = fmt::format("{{\"schema\": {}, \"origin\": {}, \"device\": {}, \"workers\": {}, \"searches\": [",
                                 kRecordingSchema, ordered_json(recording.origin).dump(),
                                 ordered_json{{"kind", recording.device.kind},
                                              {"name", recording.device.name},
                                              {"compute_capability", recording.device.compute_capability},
                                              {"sm_count", recording.device.sm_count},
                                              {"memory_bytes", recording.device.memory_bytes}}
                                     .dump(),
                                 recording.workers);
  for (const RecordedSearch& search : recording.searches) {
    ordered_json json{{"problem", search.problem},
                      {"kernel", search.kernel},
                      {"calls", search.calls},
                      {"flops", search.flops},
                      {"bytes", search.bytes},
                      {"preparation_s", rounded(search.preparation_s)},
                      {"finalist_s", rounded(search.finalist_s)}};
    for (const auto& [name, member] : kColumns) {
      json[name] = ordered_json::array();
      for (const RecordedCandidate& candidate : search.candidates) {
        json[name].push_back(rounded(candidate.*member));
      }
    }
    text += (&search == recording.searches.data() ? "\n" : ",\n") + json.dump();
  }
  return text + "\n]}\n";
}

SweepRecording read_recording(const std::filesystem::path& file) {
  const std::string text = read_plain_or_gzip(file);
  try {
    const auto json = ordered_json::parse(text);
    if (json.at("schema") != kRecordingSchema) {
      throw Error(fmt::format("schema {} is not known; record the sweep again", json.at("schema").dump()));
    }
    const ordered_json& device = json.at("device");
    SweepRecording recording{json.at("origin"), {}, json.at("workers"), {}};
    recording.device.kind = device.at("kind");
    recording.device.name = device.at("name");
    recording.device.compute_capability = device.at("compute_capability");
    recording.device.sm_count = device.at("sm_count");
    recording.device.memory_bytes = device.at("memory_bytes");
    for (const ordered_json& search : json.at("searches")) {
      recording.searches.push_back(search_from(search));
    }
    if (recording.searches.empty() || recording.workers == 0) {
      throw Error("it has no searches or no compile workers");
    }
    return recording;
  } catch (const std::exception& error) {
    throw Error(fmt::format("cannot read the recording of a sweep {}: {}", file.string(), error.what()));
  }
}

DeviceInfo device_info(const DeviceRow& device) {
  DeviceInfo info;
  info.kind = device.kind == "cuda" ? DeviceKind::cuda : DeviceKind::emulator;
  info.id = info.kind == DeviceKind::cuda ? "cuda:0" : "emulator";
  info.name = device.name;
  info.architecture = "host";
  if (info.kind == DeviceKind::cuda) {
    info.architecture = "sm_" + device.compute_capability;
    std::erase(info.architecture, '.');
    info.driver_version = "580.82.07 (CUDA 13.0)";
  }
  info.uuid = "simulated";
  info.memory_bytes = device.memory_bytes;
  info.limits = limits_of_architecture(info.architecture).value_or(DeviceLimits{});
  info.limits.sm_count = device.sm_count;
  return info;
}

std::vector<double> estimated_defaults_us(const SweepRecording& recording) {
  const DeviceInfo info = device_info(recording.device);
  const auto rates = info.kind == DeviceKind::cuda ? typical_rates(info.architecture, info.limits) : std::nullopt;
  std::vector<double> estimated_us;
  for (const RecordedSearch& search : recording.searches) {
    estimated_us.push_back(least_time_us(search.flops, search.bytes, rates));
  }
  return estimated_us;
}

double estimates_correlation(const SweepRecording& recording) {
  std::vector<double> times_us;
  for (const RecordedSearch& search : recording.searches) {
    times_us.push_back(search.candidates.front().time_us);
  }
  return rank_correlation(estimated_defaults_us(recording), times_us);
}

void perturb(SweepRecording& recording, double correlation) {
  constexpr double kStep = 0.05;
  constexpr double kMaxSpread = 10;
  const std::vector<RecordedSearch> searches = recording.searches;
  for (double spread = 0; spread <= kMaxSpread && estimates_correlation(recording) > correlation; spread += kStep) {
    recording.searches = searches;
    for (RecordedSearch& search : recording.searches) {
      const double factor = std::exp(spread * normal_of(search.problem));
      for (RecordedCandidate& candidate : search.candidates) {
        candidate.time_us *= factor;
      }
    }
  }
}

}  // namespace pascaline
