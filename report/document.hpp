#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config.hpp"
#include "core/model_time.hpp"
#include "core/problem.hpp"
#include "core/trial.hpp"
#include "core/trial_counts.hpp"
#include "db/overview.hpp"
#include "db/store.hpp"
#include "report/limits.hpp"
#include "report/pareto.hpp"

namespace pascaline {

// What a report says, before it is a page or a file; docs/reference/report.md describes it field by field. Times are
// microseconds and intervals those of 95 %, unless a name says otherwise. Nothing is rounded.

/// How many times as fast, with what the intervals of both times allow at most.
struct ReportSpeedup {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// How many problems of the kernels' current sources were decided, of how many, and the geometric mean of the speedups
/// of those decided.
struct SpeedupSummary {
  std::size_t problems = 0;
  std::size_t decided = 0;
  std::optional<double> speedup{};  ///< nothing without a decided problem that has both times
};

/// Best time so far over the search trials of a session.
struct ReportSearch {
  std::int64_t session = 0;
  std::string searcher;
  std::uint64_t seed = 0;
  std::vector<std::int64_t> trials;  ///< numbers, from 1, of the trials at which the best fell, and the last
  std::vector<std::optional<double>> elapsed_s;  ///< from the start of the first trial to the end of these
  std::vector<double> best_us;
  std::int64_t total = 0;               ///< trials, failed ones among them
  std::vector<TakenOver> taken_over{};  ///< what it began with that other devices measured
};

/// What the values of a parameter came to in the search.
struct ReportParameter {
  std::string name;
  std::vector<Value> values;  ///< those tried, ascending, numbers before texts
  std::vector<std::int64_t> trials;
  std::vector<std::int64_t> ok;
  std::vector<std::optional<double>> best_us;
  std::vector<std::optional<double>> median_us;  ///< of the times of its configurations
  std::optional<double> effect;                  ///< largest over smallest `best_us`
  std::size_t values_more = 0;                   ///< values left out, evenly
};

/// Best times of two parameters' values taken together.
struct ReportHeatPair {
  std::size_t x = 0;  ///< index in ReportHeat::parameters
  std::size_t y = 0;
  std::vector<std::vector<std::optional<double>>> best_us;  ///< a row for each value of y, in it one for each of x
};

struct ReportHeat {
  std::vector<std::string> parameters;  ///< of the largest effect, the largest first
  std::vector<ReportHeatPair> pairs;
};

/// A trial as the explorer shows it.
struct ReportConfiguration {
  std::int64_t trial_id = 0;
  std::int64_t session = 0;
  std::vector<std::optional<Value>> values;  ///< in the order of ReportProblem::parameters
  Trial trial;                               ///< without samples and problem
  bool best = false;
  std::optional<double> temperature_c;  ///< mean over the counted samples, as the two that follow
  std::optional<double> sm_clock_mhz;
  std::optional<double> power_w;
  std::vector<double> samples_us;  ///< counted ones in the order taken, times the trial's clock scale
};

/// Calls of a problem in the model's work that has no winner.
struct ReportUntuned {
  std::string kernel;
  std::string problem;
  double count = 0;
  std::optional<double> default_us{};  ///< of a call: measured, or as a sweep estimated it
};

/// One problem on one device under one toolkit with one version of its kernel.
struct ReportProblem {
  std::size_t id = 0;  ///< unique in the document
  Problem problem;
  std::optional<double> count;  ///< calls in the workload over all its phases; nothing if it is not in it
  double flops = 0;
  double bytes = 0;
  std::optional<TimeSummary> baseline;    ///< of the default configuration, or of what stands in for it
  std::optional<Config> baseline_config;  ///< what does; nothing if it is the default
  std::string baseline_why;               ///< what became of the default then; empty: it was not tried
  std::optional<TimeSummary> best;
  std::optional<Config> best_config;
  std::optional<std::int64_t> best_trial;
  bool best_is_default = false;
  std::optional<ReportSpeedup> speedup;
  bool decided = false;              ///< it has a winner, by finals or from the search
  bool provisional = false;          ///< it is from the search's trials, without finals
  std::optional<double> confidence;  ///< nothing if it is undecided or the default has no time
  std::optional<double> gflops;
  std::optional<double> gbs;
  std::optional<double> roofline_us;
  std::optional<double> roofline_share;  ///< above 1 where data is in cache
  std::optional<double> energy_mj;
  std::array<std::size_t, kTrialStatuses> statuses{};  ///< of the trials
  TrialCounts counts;
  std::vector<ReportSearch> searches;
  std::vector<ReportParameter> parameters;
  std::optional<ReportHeat> heat;
  std::vector<ReportConfiguration> configurations;  ///< some of its trials
  std::optional<ParetoProblem> pareto;              ///< of two configurations at least
  std::vector<ReportLimit> limits;                  ///< of the winner and of the default; empty if nothing was asked
};

struct ReportKernel {
  std::string name;
  std::string source_hash;
  bool current = false;  ///< the version of the kernel's latest trial here
  bool is_int8 = false;  ///< its operations are of int8, not of float32
  std::vector<ReportProblem> problems;
};

/// What calls of a model take before and after. A problem without a winner stays at its default, and is left out where
/// that has neither a time nor an estimate.
struct ReportModelTimes {
  std::vector<std::pair<std::string, ElementType>> types;
  double baseline_us = 0;
  double best_us = 0;
  std::optional<ReportSpeedup> speedup;
  /// The least of its tuned problems that something else than the default won (0.5 if none was).
  double confidence = 0.5;
  std::size_t tuned = 0;  ///< different ones, as `problems`
  std::size_t problems = 0;
  std::optional<double> decided_share{};  ///< of `baseline_us`, of the tuned ones
};

/// A phase of the model at one value of its symbols.
struct ReportPhase : ReportModelTimes {
  std::string phase;
  std::string per;
  std::vector<std::pair<std::string, std::int64_t>> symbols;
  std::vector<ReportUntuned> untuned;
  std::size_t untuned_more = 0;
};

struct ReportWorkload {
  std::string name;
  std::vector<ReportModelTimes> totals;  ///< of all phases together, each problem once, for each choice of types
  std::vector<ReportPhase> phases;
  std::vector<ModelPoint> curve{};  ///< of the sweep that the calls are from; empty for those of a file
};

struct ReportRoofline {
  double peak_gflops = 0;
  std::optional<double> peak_int8_gops;  ///< nothing where it is not known
  double memory_gbps = 0;
  std::string source;
};

struct ReportFailure {
  TrialStatus status = TrialStatus::rejected;
  std::string reason;
  std::size_t count = 0;
  std::vector<std::string> kernels;
  std::string problem;  ///< of the first, as an example
  std::string config;
};

/// Everything measured on one device under one toolkit; these are never mixed.
struct ReportContext {
  DeviceRow device;
  ToolkitRow toolkit;
  std::optional<ReportRoofline> roofline;
  MeasuredRates measured;          ///< of the device, by `pascaline probe`
  std::int64_t first_unix_ms = 0;  ///< 0: unknown
  std::int64_t last_unix_ms = 0;
  std::int64_t spent_ms = 0;
  TrialCounts counts;
  std::array<std::size_t, kTrialStatuses> statuses{};  ///< of the trials
  SpeedupSummary speedups;
  std::optional<ReportWorkload> workload;
  std::vector<ReportKernel> kernels;
  std::vector<ReportFailure> failures;
  std::size_t failures_more = 0;  ///< how many are of kinds that are left out
};

struct ReportStateSpan {
  std::int64_t from_unix_ms = 0;
  std::int64_t to_unix_ms = 0;
  std::string state;
};

struct ReportDiscarded {
  std::int64_t from_unix_ms = 0;
  std::int64_t to_unix_ms = 0;
  std::size_t count = 0;
};

/// Sensor readings, thinned out so that a curve through them looks the same.
struct ReportTelemetry {
  std::vector<TelemetryRow> points;
  std::vector<ReportStateSpan> states;
  std::vector<ReportDiscarded> discarded;
  std::size_t readings = 0;
};

struct ReportSession {
  SessionRow row;
  std::optional<std::size_t> context;  ///< index; nothing without trials
  TrialCounts counts;
  std::size_t samples = 0;
  std::vector<std::pair<SampleMark, std::size_t>> discarded;
  std::optional<TrialTimes> times;  ///< nothing where they are not known
  std::optional<ReportTelemetry> telemetry;
};

/// A whole report.
struct ReportDocument {
  std::string title;
  std::int64_t generated_unix_ms = 0;
  std::string database;  ///< last component of its path
  TrialCounts database_counts;
  std::size_t database_sessions = 0;
  std::string kernel_filter;
  std::string device_filter;
  bool live = false;
  std::vector<ReportContext> contexts;  ///< in the order of their first trials
  std::vector<ReportSession> sessions;  ///< the oldest first
};

}  // namespace pascaline
