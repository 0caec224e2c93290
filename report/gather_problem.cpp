#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"
#include "report/gather_parts.hpp"
#include "report/summary.hpp"

namespace pascaline {
namespace {

// Work over microseconds in units of 1e9 a second.
std::optional<double> rate_of(double work, double time_us) {
  return work > 0 && time_us > 0 ? std::optional(work / time_us / 1e3) : std::nullopt;
}

void set_rates(ReportProblem& out, const std::optional<ReportRoofline>& roofline, bool is_int8) {
  const auto peak = !roofline ? std::nullopt
                    : is_int8 ? roofline->peak_int8_gops
                              : std::optional(roofline->peak_gflops);
  if (peak && (out.flops > 0 || out.bytes > 0)) {
    out.roofline_us = std::max(out.flops / (*peak * 1e3), out.bytes / (roofline->memory_gbps * 1e3));
  }
  if (!out.best) {
    return;
  }
  out.gflops = rate_of(out.flops, out.best->median_us);
  out.gbs = rate_of(out.bytes, out.best->median_us);
  if (out.roofline_us && out.best->median_us > 0) {
    out.roofline_share = *out.roofline_us / out.best->median_us;
  }
}

// A curve under construction, and what it began with.
struct SearchCurve {
  ReportSearch search;
  std::int64_t began_unix_ms = 0;
  double elapsed_s = 0;
  bool dated = true;
};

void extend_curve(SearchCurve& curve, const TrialPoint& trial) {
  ReportSearch& search = curve.search;
  if (search.total++ == 0) {
    curve.began_unix_ms = trial.started_unix_ms;
  }
  // Another tuner may not tell when, and the system's clock may step back.
  curve.dated = curve.dated && trial.started_unix_ms > 0;
  curve.elapsed_s = std::max(curve.elapsed_s, static_cast<double>(trial.ended_unix_ms - curve.began_unix_ms) / 1e3);
  if (trial.median_us > 0 && (search.best_us.empty() || trial.median_us < search.best_us.back())) {
    search.trials.push_back(search.total);
    search.elapsed_s.push_back(curve.dated ? std::optional(curve.elapsed_s) : std::nullopt);
    search.best_us.push_back(trial.median_us);
  }
}

template <typename Element>
void keep_places(std::vector<Element>& from, const std::vector<std::size_t>& places) {
  std::vector<Element> kept;
  std::transform(places.begin(), places.end(), std::back_inserter(kept), [&](std::size_t at) { return from[at]; });
  from = std::move(kept);
}

ReportSearch finish_curve(SearchCurve& curve, std::size_t most_points) {
  ReportSearch& search = curve.search;
  if (search.best_us.size() > most_points) {
    const std::vector<std::size_t> places = evenly(search.best_us.size(), most_points);
    keep_places(search.trials, places);
    keep_places(search.elapsed_s, places);
    keep_places(search.best_us, places);
  }
  if (!search.best_us.empty() && search.trials.back() < search.total) {
    search.trials.push_back(search.total);
    search.elapsed_s.push_back(curve.dated ? std::optional(curve.elapsed_s) : std::nullopt);
    search.best_us.push_back(search.best_us.back());
  }
  return std::move(search);
}

std::vector<ReportSearch> searches_of(const GatheredProblem& problem,
                                      const std::unordered_map<std::int64_t, const SessionRow*>& sessions,
                                      std::size_t most_points) {
  std::map<std::int64_t, SearchCurve> curves;
  for (const TrialPoint& trial : problem.trials) {
    if (trial.stage == TrialStage::search) {
      extend_curve(curves[trial.session], trial);
    }
  }
  std::vector<ReportSearch> searches;
  for (auto& [session, curve] : curves) {
    const auto row = sessions.find(session);
    curve.search.session = session;
    if (row != sessions.end()) {
      curve.search.searcher = row->second->searcher;
      curve.search.seed = row->second->seed;
      curve.search.taken_over = taken_over_of(row->second->options_json, problem.rows.problem.text());
    }
    searches.push_back(finish_curve(curve, most_points));
  }
  return searches;
}

}  // namespace

std::vector<std::size_t> evenly(std::size_t total, std::size_t count) {
  std::vector<std::size_t> places(std::min(total, count));
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (count < total) {
    for (std::size_t i = 0; i < count; ++i) {
      places[i] = count > 1 ? i * (total - 1) / (count - 1) : 0;
    }
  }
  return places;
}

ReportDetail detail_for(std::size_t problems, std::size_t sessions) {
  // Chosen so that 300 problems come to some 25 kB each and few problems show all there is.
  constexpr std::size_t kRows = 6000;
  constexpr std::size_t kSamples = 150'000;
  constexpr std::size_t kReadings = 30'000;
  const std::size_t many = std::max<std::size_t>(problems, 1);
  ReportDetail detail;
  detail.configurations = std::clamp<std::size_t>(kRows / many, 2, 60);
  detail.samples = std::clamp<std::size_t>(kSamples / (many * detail.configurations), 5, 60);
  detail.heat_parameters = many <= 60 ? 6 : many <= 500 ? 4 : many <= 2000 ? 2 : 0;
  detail.telemetry_points = std::clamp<std::size_t>(kReadings / std::max<std::size_t>(sessions, 1), 20, 1500);
  return detail;
}

std::optional<std::size_t> best_of(const GatheredProblem& problem) {
  if (problem.winner) {
    return problem.winner_trial;
  }
  return problem.fastest ? std::optional(problem.fastest_trial) : std::nullopt;
}

std::vector<std::size_t> parameter_order(const GatheredProblem& problem) {
  const nlohmann::json space = nlohmann::json::parse(problem.rows.space_json, nullptr, false);
  std::map<std::string, std::size_t> place;
  if (space.is_object() && space.contains("parameters") && space["parameters"].is_array()) {
    for (const nlohmann::json& parameter : space["parameters"]) {
      if (parameter.is_object() && parameter.contains("name") && parameter["name"].is_string()) {
        place.try_emplace(parameter["name"].get<std::string>(), place.size());
      }
    }
  }
  std::vector<std::size_t> order(problem.configs.parameters());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place_of = [&](std::size_t column) {
    const auto known = place.find(problem.configs.name(column));
    return known == place.end() ? place.size() : known->second;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place_of(a) < place_of(b); });
  return order;
}

bool is_int8_work(const GatheredProblem& problem) {
  const nlohmann::json space = nlohmann::json::parse(problem.rows.space_json, nullptr, false);
  const nlohmann::json::json_pointer place("/work/arithmetic");
  return space.is_object() && space.contains(place) && space[place].is_string() &&
         is_int8_work(space[place].get<std::string>(), problem.rows.problem);
}

std::optional<ReportRoofline> roofline_of(const DeviceRow& device, const MeasuredRates& measured) {
  DeviceLimits limits;
  limits.sm_count = device.sm_count;
  auto rates = device.kind == "cuda" ? typical_rates(device.compute_capability, limits) : std::nullopt;
  if (!rates || device.sm_count <= 0) {
    return std::nullopt;
  }
  use_measured(*rates, measured);
  ReportRoofline roofline{rates->peak_gflops(), rates->peak_int8_gops(), rates->memory_gbps, {}};
  roofline.source =
      fmt::format("float32 multiply-adds of {} multiprocessors at {:.0f} MHz, {:.0f} GB/s of memory: {}",
                  device.sm_count, rates->clock_mhz, rates->memory_gbps, source_of(*rates, device.compute_capability));
  return roofline;
}

ReportProblem problem_figures(const GatheredProblem& problem, const std::optional<ReportRoofline>& roofline,
                              const std::unordered_map<std::int64_t, const SessionRow*>& sessions,
                              const ReportDetail& detail) {
  ReportProblem out;
  out.problem = problem.rows.problem;
  out.flops = problem.rows.flops;
  out.bytes = problem.rows.bytes;
  out.baseline = problem.baseline;
  out.best = problem.fastest;
  if (problem.winner) {
    out.decided = true;
    out.provisional = problem.winner->trial.stage == TrialStage::search;
    out.baseline = problem.winner->baseline;
    if (out.baseline) {
      out.confidence = problem.winner->confidence;
    }
    out.best = problem.winner->trial.time;
    if (problem.stand_in) {
      out.baseline_config = problem.stand_in->config;
      out.baseline_why = problem.stand_in->why;
    }
  }
  if (const auto best = best_of(problem)) {
    out.best_trial = problem.trials[*best].id;
    out.best_is_default = problem.trials[*best].is_default;
  }
  out.speedup = speedup_between(out.baseline, out.best);
  set_rates(out, roofline, is_int8_work(problem));
  out.counts = problem.counts;
  for (const TrialPoint& trial : problem.trials) {
    out.statuses[static_cast<std::size_t>(trial.status)] += trial.stage == TrialStage::search ? 1 : 0;
  }
  out.searches = searches_of(problem, sessions, detail.curve_points);
  return out;
}

}  // namespace pascaline
