#include "report/document_json.hpp"

#include "core/version.hpp"
#include "report/comparison.hpp"
#include "report/compiler_comparison.hpp"
#include "report/device_comparison.hpp"
#include "report/document_parts.hpp"

namespace pascaline {
namespace {

using DocumentJson = nlohmann::ordered_json;

constexpr int kReportVersion = 1;

DocumentJson text_or_null(const std::string& text) {
  return text.empty() ? DocumentJson() : DocumentJson(json_text(text));
}

// 0 stands for a time that nobody noted.
DocumentJson moment(std::int64_t unix_ms) { return unix_ms == 0 ? DocumentJson() : DocumentJson(unix_ms); }

DocumentJson kernel_json(const ReportKernel& kernel) {
  return {{"name", json_text(kernel.name)},
          {"source_hash", json_text(kernel.source_hash)},
          {"current", kernel.current},
          {"arithmetic", kernel.is_int8 ? "int8" : "float32"},
          {"problems", list_of(kernel.problems, problem_json)}};
}

DocumentJson model_times_json(const ReportModelTimes& times) {
  return {{"types", types_object(times.types)},
          {"default_us", json_number(times.baseline_us)},
          {"best_us", json_number(times.best_us)},
          {"speedup", times.speedup ? json_number(times.speedup->value) : DocumentJson()},
          {"speedup_low", times.speedup ? json_number(times.speedup->low) : DocumentJson()},
          {"speedup_high", times.speedup ? json_number(times.speedup->high) : DocumentJson()},
          {"confidence", json_number(times.confidence)},
          {"tuned", times.tuned},
          {"problems", times.problems}};
}

DocumentJson phase_json(const ReportPhase& phase) {
  const auto untuned_json = [](const ReportUntuned& untuned) -> DocumentJson {
    return {{"kernel", json_text(untuned.kernel)},
            {"problem", json_text(untuned.problem)},
            {"count", json_number(untuned.count)}};
  };
  DocumentJson json = {
      {"phase", json_text(phase.phase)}, {"per", json_text(phase.per)}, {"symbols", numbers_object(phase.symbols)}};
  json.update(model_times_json(phase));
  json["untuned"] = list_of(phase.untuned, untuned_json);
  json["untuned_more"] = phase.untuned_more;
  return json;
}

DocumentJson workload_json(const ReportWorkload& workload) {
  return {{"name", json_text(workload.name)},
          {"totals", list_of(workload.totals, model_times_json)},
          {"phases", list_of(workload.phases, phase_json)}};
}

DocumentJson failure_json(const ReportFailure& failure) {
  return {{"status", name_of(failure.status)},
          {"reason", json_text(failure.reason)},
          {"count", failure.count},
          {"kernels", list_of(failure.kernels, json_text)},
          {"problem", json_text(failure.problem)},
          {"config", json_text(failure.config)}};
}

DocumentJson device_json(const DeviceRow& device) {
  return {{"kind", json_text(device.kind)},
          {"name", json_text(device.name)},
          {"compute_capability", json_text(device.compute_capability)},
          {"sm_count", device.sm_count},
          {"memory_bytes", device.memory_bytes}};
}

DocumentJson toolkit_json(const ToolkitRow& toolkit) {
  return {{"compiler", json_text(toolkit.compiler)},
          {"version", json_text(toolkit.version)},
          {"target", json_text(toolkit.target)},
          {"driver_version", json_text(toolkit.driver_version)}};
}

DocumentJson roofline_json(const ReportRoofline& roofline) {
  return {{"peak_gflops", json_number(roofline.peak_gflops)},
          {"peak_int8_gops", json_number(roofline.peak_int8_gops)},
          {"memory_gbps", json_number(roofline.memory_gbps)},
          {"source", json_text(roofline.source)}};
}

DocumentJson context_json(const ReportContext& context) {
  DocumentJson json{{"device", device_json(context.device)},
                    {"toolkit", toolkit_json(context.toolkit)},
                    {"roofline", context.roofline ? roofline_json(*context.roofline) : DocumentJson()},
                    {"first_unix_ms", moment(context.first_unix_ms)},
                    {"last_unix_ms", moment(context.last_unix_ms)},
                    {"spent_ms", context.spent_ms},
                    {"statuses", statuses_json(context.statuses, true)},
                    {"mean_speedup", json_number(context.speedups.speedup)},
                    {"workload", context.workload ? workload_json(*context.workload) : DocumentJson()},
                    {"kernels", list_of(context.kernels, kernel_json)},
                    {"failures", list_of(context.failures, failure_json)},
                    {"failures_more", context.failures_more}};
  json.update(counts_json(context.counts));
  return json;
}

DocumentJson readings_json(const std::vector<TelemetryRow>& points, std::optional<double> TelemetryRow::*value) {
  return list_of(points, [value](const TelemetryRow& point) { return json_coarse(point.*value); });
}

DocumentJson telemetry_json(const ReportTelemetry& telemetry) {
  const auto time_json = [](const TelemetryRow& point) { return DocumentJson(point.unix_ms); };
  const auto state_json = [](const ReportStateSpan& span) -> DocumentJson {
    return {{"from_unix_ms", span.from_unix_ms}, {"to_unix_ms", span.to_unix_ms}, {"state", json_text(span.state)}};
  };
  const auto discarded_json = [](const ReportDiscarded& span) -> DocumentJson {
    return {{"from_unix_ms", span.from_unix_ms}, {"to_unix_ms", span.to_unix_ms}, {"count", span.count}};
  };
  return {{"unix_ms", list_of(telemetry.points, time_json)},
          {"temperature_c", readings_json(telemetry.points, &TelemetryRow::temperature_c)},
          {"sm_clock_mhz", readings_json(telemetry.points, &TelemetryRow::sm_clock_mhz)},
          {"memory_clock_mhz", readings_json(telemetry.points, &TelemetryRow::memory_clock_mhz)},
          {"power_w", readings_json(telemetry.points, &TelemetryRow::power_w)},
          {"canary_us", readings_json(telemetry.points, &TelemetryRow::canary_us)},
          {"states", list_of(telemetry.states, state_json)},
          {"discarded", list_of(telemetry.discarded, discarded_json)},
          {"readings", telemetry.readings}};
}

// Milliseconds by part, in the order of a trial.
DocumentJson trial_time_json(const TrialTimes& times) {
  DocumentJson parts = DocumentJson::object();
  for_each_part(times, [&](const char* name, double part_ms) { parts[name] = json_number(part_ms); });
  return parts;
}

DocumentJson session_json(const ReportSession& session) {
  const SessionRow& row = session.row;
  DocumentJson discarded = DocumentJson::object();
  for (const auto& [mark, count] : session.discarded) {
    discarded[std::string(name_of(mark))] = count;
  }
  DocumentJson json{{"id", row.id},
                    {"uuid", json_text(row.uuid)},
                    {"run_uuid", json_text(row.run_uuid)},
                    {"context", or_null(session.context)},
                    {"device", json_text(row.device.name)},
                    {"started_unix_ms", moment(row.started_unix_ms)},
                    {"finished_unix_ms", moment(row.finished_unix_ms.value_or(0))},
                    {"state", json_text(row.state)},
                    {"alive", row.alive},
                    {"spent_ms", row.spent_ms},
                    {"searcher", json_text(row.searcher)},
                    {"seed", row.seed},
                    {"command_line", json_text(row.command_line)},
                    {"program_version", json_text(row.program_version)},
                    {"imported_from", text_or_null(row.imported_from)},
                    {"samples", session.samples},
                    {"discarded", discarded},
                    {"trial_time_ms", session.times ? trial_time_json(*session.times) : DocumentJson()},
                    {"telemetry", session.telemetry ? telemetry_json(*session.telemetry) : DocumentJson()}};
  json.update(counts_json(session.counts));
  return json;
}

}  // namespace

nlohmann::ordered_json statuses_json(const std::array<std::size_t, kStatusCount>& statuses, bool all) {
  DocumentJson object = DocumentJson::object();
  for (std::size_t i = 0; i < kStatusCount; ++i) {
    if (all || statuses[i] > 0) {
      object[std::string(name_of(static_cast<TrialStatus>(i)))] = statuses[i];
    }
  }
  return object;
}

nlohmann::ordered_json counts_json(const TrialCounts& counts) {
  DocumentJson object = DocumentJson::object();
  for_each_count(counts, [&](const char* name, std::int64_t count) { object[name] = count; });
  return object;
}

nlohmann::ordered_json document_json(const ReportDocument& document, const Comparison* comparison) {
  DocumentJson database{{"file", json_text(document.database)}, {"sessions", document.database_sessions}};
  database.update(counts_json(document.database_counts));
  DocumentJson contexts = DocumentJson::array();
  for (const ReportContext& context : document.contexts) {
    DocumentJson object = DocumentJson::object();
    object["id"] = contexts.size();
    object.update(context_json(context));
    contexts.push_back(std::move(object));
  }
  return {{"format", "pascaline-report"},
          {"version", kReportVersion},
          {"title", json_text(document.title)},
          {"generated_unix_ms", document.generated_unix_ms},
          {"program_version", kVersion},
          {"database", std::move(database)},
          {"kernel_filter", text_or_null(document.kernel_filter)},
          {"device_filter", text_or_null(document.device_filter)},
          {"live", document.live},
          {"contexts", std::move(contexts)},
          {"compilers", list_of(compare_compilers(document.contexts), compiler_comparison_json)},
          {"devices", list_of(compare_devices(document.contexts), device_comparison_json)},
          {"sessions", list_of(document.sessions, session_json)},
          {"comparison", comparison != nullptr ? comparison_json(*comparison) : nlohmann::ordered_json()}};
}

}  // namespace pascaline
