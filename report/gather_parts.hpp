#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/model_time.hpp"
#include "db/sweep_plan.hpp"
#include "report/gather_trials.hpp"

namespace pascaline {

/// How much is shown of each problem; less of each where there are many.
struct ReportDetail {
  std::size_t configurations = 60;   ///< trials listed
  std::size_t samples = 60;          ///< of each of them
  std::size_t heat_parameters = 6;   ///< 0: no such view
  std::size_t curve_points = 200;    ///< of a best-so-far curve
  std::size_t telemetry_points = 0;  ///< of a session
};

/// For a document of that many problems and of that many sessions with sensor readings.
[[nodiscard]] ReportDetail detail_for(std::size_t problems, std::size_t sessions);

/// Columns of the configurations' table in the order of the problem's space, those that it does not name last.
[[nodiscard]] std::vector<std::size_t> parameter_order(const GatheredProblem& problem);

/// Times, speedup, rates, energy and curves of a problem; what it is called, its tables and its calls are not set.
[[nodiscard]] ReportProblem problem_figures(const GatheredProblem& problem,
                                            const std::optional<ReportRoofline>& roofline,
                                            const std::unordered_map<std::int64_t, const SessionRow*>& sessions,
                                            const ReportDetail& detail);

/// What each value of each parameter came to in the search, in the order of columns given.
[[nodiscard]] std::vector<ReportParameter> parameter_effects(const GatheredProblem& problem,
                                                             const std::vector<std::size_t>& order);
/// Best times by two parameters' values, of at most that many parameters; nothing if fewer than two have an effect.
[[nodiscard]] std::optional<ReportHeat> heat_of(const GatheredProblem& problem,
                                                const std::vector<ReportParameter>& effects,
                                                const std::vector<std::size_t>& order, std::size_t most_parameters);

/// The best, the default, finalists and a spread of the rest, with what the database holds of them.
[[nodiscard]] std::vector<ReportConfiguration> shown_configurations(const Store& store, const GatheredProblem& problem,
                                                                    const std::vector<std::size_t>& order,
                                                                    const ReportDetail& detail);

/// Whether the problem's operations are of int8, as its search space says.
[[nodiscard]] bool is_int8_work(const GatheredProblem& problem);

/// Peak rates of a device, with what was measured of it in place of what is typical; nothing where they are not known.
[[nodiscard]] std::optional<ReportRoofline> roofline_of(const DeviceRow& device, const MeasuredRates& measured);

/// What the latest sweep of a model or a workload on a device set out to do.
struct SweptModel {
  DeviceRow device;
  SweepPlan plan;
  EstimatedDefaults estimated{};          ///< of a call with a default that it did not measure
  std::vector<PastDecision> decisions{};  ///< on that device, those of other sweeps among them
  std::int64_t began_unix_ms = 0;
  double spent_s = 0;
};

/// Of each device, among the sessions and devices that the options name, that has such a sweep; none if the options
/// name a workload.
[[nodiscard]] std::vector<SweptModel> model_plans(const Store& store, const ReportOptions& options);

/// Sets `count` of the problems and `workload` of the contexts: from the workload that the options name, else from the
/// plan of the context's device. A context without either has no workload. Reads the workload and its kernels' spaces.
void add_workload(ReportDocument& document, const ReportOptions& options, const std::vector<SweptModel>& plans);

/// The sessions of the gathered trials, and those without any where all trials are asked for; the oldest first.
[[nodiscard]] std::vector<ReportSession> report_sessions(const Store& store, const std::vector<SessionRow>& rows,
                                                         const GatheredTrials& gathered, const ReportOptions& options);

/// At most about that many readings: of each stretch of time those with the least and the greatest of every value.
[[nodiscard]] std::vector<TelemetryRow> thin_out(const std::vector<TelemetryRow>& readings, std::size_t most);

/// Which trial of a problem stands for its best; nothing if none has a time.
[[nodiscard]] std::optional<std::size_t> best_of(const GatheredProblem& problem);

/// `count` of `total` places, evenly, the first and the last among them; all if there are fewer.
[[nodiscard]] std::vector<std::size_t> evenly(std::size_t total, std::size_t count);

}  // namespace pascaline
