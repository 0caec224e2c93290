#include "report/document_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

using ProblemJson = nlohmann::ordered_json;

ProblemJson speedup_json(const ReportSpeedup& speedup) {
  return {
      {"value", json_number(speedup.value)}, {"low", json_number(speedup.low)}, {"high", json_number(speedup.high)}};
}

ProblemJson taken_over_entry(const TakenOver& taken_over) {
  return {{"device", json_text(taken_over.device)},
          {"problem", json_text(taken_over.measured)},
          {"trials", taken_over.trials},
          {"winner", taken_over.winner},
          {"text", json_text(text_of(taken_over))}};
}

ProblemJson search_json(const ReportSearch& search) {
  ProblemJson object{{"session", search.session},
                     {"searcher", json_text(search.searcher)},
                     {"seed", search.seed},
                     {"trials", search.trials},
                     {"elapsed_s", json_coarse(search.elapsed_s)},
                     {"best_us", json_coarse(search.best_us)},
                     {"total", search.total}};
  if (!search.taken_over.empty()) {
    object["other_devices"] = list_of(search.taken_over, taken_over_entry);
  }
  return object;
}

ProblemJson parameter_json(const ReportParameter& parameter) {
  ProblemJson object{{"name", json_text(parameter.name)},
                     {"values", list_of(parameter.values, json_value)},
                     {"trials", parameter.trials},
                     {"ok", parameter.ok},
                     {"best_us", json_coarse(parameter.best_us)},
                     {"median_us", json_coarse(parameter.median_us)},
                     {"effect", json_coarse(parameter.effect)}};
  if (parameter.values_more > 0) {
    object["values_more"] = parameter.values_more;
  }
  return object;
}

ProblemJson heat_json(const ReportHeat& heat) {
  const auto pair_json = [](const ReportHeatPair& pair) -> ProblemJson {
    const auto row_json = [](const std::vector<std::optional<double>>& row) { return json_coarse(row); };
    return {{"x", pair.x}, {"y", pair.y}, {"best_us", list_of(pair.best_us, row_json)}};
  };
  return {{"parameters", list_of(heat.parameters, json_text)}, {"pairs", list_of(heat.pairs, pair_json)}};
}

ProblemJson time_field(const std::optional<TimeSummary>& time, double TimeSummary::*member) {
  return time ? json_number((*time).*member) : ProblemJson();
}

// Code always has registers and instructions: without any nothing is known of it, as on the emulated device.
template <typename Figure>
ProblemJson figure(Figure value, Figure of_any_code) {
  return of_any_code > 0 ? ProblemJson(value) : ProblemJson();
}

ProblemJson configuration_json(const ReportConfiguration& shown) {
  const Trial& trial = shown.trial;
  const Resources& resources = trial.resources;
  const auto value_json = [](const std::optional<Value>& value) { return value ? json_value(*value) : ProblemJson(); };
  return {{"trial", shown.trial_id},
          {"values", list_of(shown.values, value_json)},
          {"status", name_of(trial.status)},
          {"stage", name_of(trial.stage)},
          {"default", trial.is_default},
          {"best", shown.best},
          {"median_us", time_field(trial.time, &TimeSummary::median_us)},
          {"low_us", time_field(trial.time, &TimeSummary::low_us)},
          {"high_us", time_field(trial.time, &TimeSummary::high_us)},
          {"samples_counted", trial.time ? ProblemJson(trial.time->count) : ProblemJson()},
          {"registers", figure(resources.registers, resources.registers)},
          {"shared_bytes", resources.static_shared_bytes},
          {"local_bytes", figure(resources.local_bytes, resources.registers)},
          {"local_loads", figure(resources.local_loads, resources.instructions)},
          {"local_stores", figure(resources.local_stores, resources.instructions)},
          {"instructions", figure(resources.instructions, resources.instructions)},
          {"ffma", figure(resources.ffma, resources.instructions)},
          {"occupancy", trial.occupancy > 0 ? json_coarse(trial.occupancy) : ProblemJson()},
          {"temperature_c", json_coarse(shown.temperature_c)},
          {"sm_clock_mhz", json_coarse(shown.sm_clock_mhz)},
          {"power_w", json_coarse(shown.power_w)},
          {"energy_mj", json_number(trial.energy_mj)},
          {"max_error", json_number(trial.max_error)},
          {"reason", json_text(trial.reason)},
          {"session", shown.session},
          {"samples_us", shown.samples_us.empty() ? ProblemJson() : json_coarse(shown.samples_us)}};
}

ProblemJson configurations_json(const ReportProblem& problem) {
  const auto name = [](const ReportParameter& parameter) { return json_text(parameter.name); };
  return {{"shown", problem.configurations.size()},
          {"of", problem.counts.trials + problem.counts.finals},
          {"columns", list_of(problem.parameters, name)},
          {"rows", list_of(problem.configurations, configuration_json)}};
}

ProblemJson pareto_json(const ParetoProblem& pareto) {
  const auto point_json = [](const ParetoPoint& point) {
    return ProblemJson{{"trial", point.trial_id},
                       {"config", json_config(point.config)},
                       {"median_us", json_number(point.median_us)},
                       {"energy_mj", json_number(point.energy_mj)},
                       {"default", point.is_default},
                       {"front", point.on_front}};
  };
  return {{"summary", pareto_sentence(pareto)},
          {"time_winner", or_null(pareto.time_winner)},
          {"energy_winner", or_null(pareto.energy_winner)},
          {"edp_winner", or_null(pareto.edp_winner)},
          {"points", list_of(pareto.points, point_json)}};
}

}  // namespace

nlohmann::ordered_json problem_json(const ReportProblem& problem) {
  ProblemJson object{
      {"id", problem.id},
      {"text", json_text(problem.problem.text())},
      {"dimensions", numbers_object(problem.problem.dimensions)},
      {"types", types_object(problem.problem.types)},
      {"count", json_number(problem.count)},
      {"flops", json_number(problem.flops)},
      {"bytes", json_number(problem.bytes)},
      {"default", json_time(problem.baseline)},
      {"baseline_config", problem.baseline_config ? json_config(*problem.baseline_config) : ProblemJson()},
      {"baseline_why",
       problem.baseline_config ? ProblemJson(json_text(default_fate(problem.baseline_why))) : ProblemJson()},
      {"best", json_time(problem.best)},
      {"best_config", problem.best_config ? json_config(*problem.best_config) : ProblemJson()},
      {"best_trial", or_null(problem.best_trial)},
      {"speedup", problem.speedup ? speedup_json(*problem.speedup) : ProblemJson()},
      {"decided", problem.decided},
      {"from_search", problem.from_search},
      {"confidence", json_number(problem.confidence)},
      {"gflops", json_number(problem.gflops)},
      {"gbs", json_number(problem.gbs)},
      {"roofline_us", json_number(problem.roofline_us)},
      {"roofline_share", json_number(problem.roofline_share)},
      {"energy_mj", json_number(problem.energy_mj)},
      {"statuses", statuses_json(problem.statuses, false)}};
  object.update(counts_json(problem.counts));
  object["searches"] = list_of(problem.searches, search_json);
  object["parameters"] = list_of(problem.parameters, parameter_json);
  object["heat"] = problem.heat ? heat_json(*problem.heat) : ProblemJson();
  object["configurations"] = configurations_json(problem);
  if (problem.pareto) {
    object["pareto"] = pareto_json(*problem.pareto);
  }
  if (!problem.limits.empty()) {
    object["limits"] = list_of(problem.limits, limit_json);
  }
  return object;
}

}  // namespace pascaline
