#include "report/document_json.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/version.hpp"
#include "report/document_parts.hpp"

namespace pascaline {
namespace {

constexpr int kReportVersion = 1;
constexpr const char* kUnixMs = "ms since 1970 UTC";

// 0 stands for a time that nobody noted.
template <typename Owner>
auto moment(std::int64_t Owner::*unix_ms) {
  return [unix_ms](const Owner& owner) { return owner.*unix_ms == 0 ? std::nullopt : std::optional(owner.*unix_ms); };
}

// The sum; null where it is not finite.
auto sum_field(double ReportModelTimes::*time_us) {
  return [time_us](const ReportModelTimes& times) {
    return std::isfinite(times.*time_us) ? std::optional(times.*time_us) : std::nullopt;
  };
}

auto speedup_field(double ReportSpeedup::*part) {
  return [part](const ReportModelTimes& times) {
    return times.speedup ? std::optional((*times.speedup).*part) : std::nullopt;
  };
}

auto readings_field(std::optional<double> TelemetryRow::*value) {
  return [value](const ReportTelemetry& telemetry) {
    std::vector<std::optional<Coarse>> list;
    for (const TelemetryRow& point : telemetry.points) {
      list.push_back(coarse(point.*value));
    }
    return list;
  };
}

ByName<double> parts_of(const TrialTimes& times) {
  ByName<double> parts;
  for_each_part(times, [&](const char* name, double part_ms) { parts.entries.emplace_back(name, part_ms); });
  return parts;
}

struct WholeDatabase {
  const ReportDocument* report = nullptr;
};

const Fields<WholeDatabase>& fields_of(const WholeDatabase*) {
  static const auto fields =
      Fields<WholeDatabase>("database", "The whole database, however the report is narrowed.")
          .add(
              "file", [](const WholeDatabase& of) { return of.report->database; }, "Last component of its path.")
          .add(
              "sessions", [](const WholeDatabase& of) { return of.report->database_sessions; }, "Number of sessions.")
          .add_counts([](const WholeDatabase& of) { return of.report->database_counts; });
  return fields;
}

struct NumberedContext {
  std::size_t id = 0;
  const ReportContext* context = nullptr;
};

// A member of a context.
template <typename Value>
auto of_context(Value ReportContext::*member) {
  return [member](const NumberedContext& of) { return of.context->*member; };
}

std::vector<NumberedContext> numbered(const std::vector<ReportContext>& contexts) {
  std::vector<NumberedContext> list;
  for (const ReportContext& context : contexts) {
    list.push_back({list.size(), &context});
  }
  return list;
}

void list_tables(const FieldTable& table, std::vector<const FieldTable*>& out) {
  if (std::ranges::find(out, &table) != out.end()) {
    return;
  }
  out.push_back(&table);
  for (const FieldText& field : table.fields()) {
    if (field.type.table != nullptr) {
      list_tables(*field.type.table, out);
    }
  }
}

}  // namespace

ByName<std::string> names_of(const std::vector<std::pair<std::string, ElementType>>& types) {
  ByName<std::string> names;
  for (const auto& [variable, type] : types) {
    names.entries.emplace_back(variable, name_of(type));
  }
  return names;
}

ByName<std::size_t> by_status(const std::array<std::size_t, kTrialStatuses>& statuses, bool all) {
  ByName<std::size_t> named;
  for (std::size_t i = 0; i < kTrialStatuses; ++i) {
    if (all || statuses[i] > 0) {
      named.entries.emplace_back(name_of(static_cast<TrialStatus>(i)), statuses[i]);
    }
  }
  return named;
}

const Fields<TrialCount>& fields_of(const TrialCount*) {
  static const auto fields =
      Fields<TrialCount>("count", "A count of trials that the document states in several places.")
          .add("name", &TrialCount::name, "Its key.")
          .add("title", &TrialCount::title, "Its name at the head of a column.")
          .add("one", &TrialCount::one, "Follows the number 1.")
          .add("many", &TrialCount::many, "Follows other numbers.")
          .add("meaning", &TrialCount::meaning, "A sentence.");
  return fields;
}

const Fields<DeviceRow>& fields_of(const DeviceRow*) {
  static const auto fields =
      Fields<DeviceRow>("device", "A device.")
          .add("kind", &DeviceRow::kind,
               "`cuda`, `host` (the emulated device), or `foreign` (another tuner's results).")
          .add("name", &DeviceRow::name, "Name of the device.")
          .add("compute_capability", &DeviceRow::compute_capability, "`6.1`; empty on the emulated device.")
          .add("sm_count", &DeviceRow::sm_count, "Number of multiprocessors.")
          .add("memory_bytes", &DeviceRow::memory_bytes, "Its memory.", "bytes");
  return fields;
}

const Fields<ToolkitRow>& fields_of(const ToolkitRow*) {
  static const auto fields =
      Fields<ToolkitRow>("toolkit", "A compiler with its target and the driver.")
          .add("compiler", &ToolkitRow::compiler, "`nvrtc`, `g++`, `clang++`; the format of another tuner's results.")
          .add("version", &ToolkitRow::version, "Version of the compiler.")
          .add("target", &ToolkitRow::target, "`sm_61`, `compute_61` (PTX) or `host` (the emulated device).")
          .add("driver_version", &ToolkitRow::driver_version,
               "CUDA version of the driver; empty on the emulated device.");
  return fields;
}

const Fields<ReportRoofline>& fields_of(const ReportRoofline*) {
  static const auto fields =
      Fields<ReportRoofline>("roofline", "Peak rates of the device.")
          .add("peak_gflops", &ReportRoofline::peak_gflops, "Peak rate of float32 arithmetic.", "10⁹ operations/s")
          .add("peak_int8_gops", &ReportRoofline::peak_int8_gops, "Peak rate of dp4a; null: unknown.",
               "10⁹ operations/s")
          .add("memory_gbps", &ReportRoofline::memory_gbps, "Memory bandwidth.", "10⁹ bytes/s")
          .add("source", &ReportRoofline::source,
               "Origin of the rates: the product, the architecture, or a measurement.");
  return fields;
}

const Fields<ReportModelTimes>& fields_of(const ReportModelTimes*) {
  static const auto fields =
      Fields<ReportModelTimes>(
          "total",
          "All phases with the same element types together, those that are not listed, too; each problem once.")
          .add(
              "types", [](const ReportModelTimes& times) { return names_of(times.types); }, "Element types.")
          .add("default_us", sum_field(&ReportModelTimes::baseline_us),
               "Sum over its problems of calls times the default's median, measured or else estimated by the sweep; "
               "null if "
               "that is not finite.",
               "µs")
          .add("best_us", sum_field(&ReportModelTimes::best_us),
               "The same with the winners' medians where there are any.", "µs")
          .add("speedup", speedup_field(&ReportSpeedup::value), "`default_us` / `best_us`.")
          .add("speedup_low", speedup_field(&ReportSpeedup::low),
               "Lower end of its 95 % interval; problems at their defaults contribute a ratio of exactly 1.")
          .add("speedup_high", speedup_field(&ReportSpeedup::high), "Upper end of that interval.")
          .add("confidence", &ReportModelTimes::confidence,
               "Lowest confidence of its tuned problems not won by the default, 0.5 if the default won all.")
          .add("tuned", &ReportModelTimes::tuned, "Different problems with a winner and a time to compare it with.")
          .add("decided_share", &ReportModelTimes::decided_share, "Share of `default_us` that these make up.")
          .add("problems", &ReportModelTimes::problems, "Different problems.");
  return fields;
}

const Fields<ReportUntuned>& fields_of(const ReportUntuned*) {
  static const auto fields =
      Fields<ReportUntuned>("untuned",
                            "A problem of a phase that has no winner, or none with a time to compare it with.")
          .add("kernel", &ReportUntuned::kernel, "Name of the kernel.")
          .add("problem", &ReportUntuned::problem, "The problem as text.")
          .add("count", &ReportUntuned::count, "Calls in the phase.")
          .add("default_us", &ReportUntuned::default_us,
               "Time of a call with the default, measured or estimated; null: unknown.", "µs");
  return fields;
}

const Fields<ReportPhase>& fields_of(const ReportPhase*) {
  static const auto fields =
      Fields<ReportPhase>("phase", "A phase of the model at one value of its symbols.")
          .add("phase", &ReportPhase::phase, "Name of the phase.")
          .add("per", &ReportPhase::per, "Unit that calls are counted for.")
          .add(
              "symbols", [](const ReportPhase& phase) { return ByName<std::int64_t>{phase.symbols}; },
              "Values of the symbols in its shapes.")
          .add_all(fields_of(static_cast<const ReportModelTimes*>(nullptr)))
          .add("untuned", &ReportPhase::untuned, "Problems that are not tuned, at most 50.")
          .add("untuned_more", &ReportPhase::untuned_more, "Number of such problems that are not listed.");
  return fields;
}

const Fields<ModelPoint>& fields_of(const ModelPoint*) {
  static const auto fields =
      Fields<ModelPoint>("model_point", "The time of a model at a moment of a sweep.")
          .add("elapsed_s", &ModelPoint::elapsed_s, "Since the sweep began, with what passed until it was resumed.",
               "s")
          .add("model_us", &ModelPoint::model_us,
               "With the winners of that moment, provisional ones among them, and the defaults of other problems.",
               "µs")
          .add("default_us", &ModelPoint::default_us, "With every problem's default.", "µs");
  return fields;
}

const Fields<ReportWorkload>& fields_of(const ReportWorkload*) {
  static const auto fields =
      Fields<ReportWorkload>("workload", "Time of a model with the defaults and with the best configurations.")
          .add("name", &ReportWorkload::name, "Name of the model or workload.")
          .add("totals", &ReportWorkload::totals, "One for each choice of element types.")
          .add("phases", &ReportWorkload::phases, "Those of which anything is tuned, at most 40.")
          .add("curve", &ReportWorkload::curve,
               "Over the time of the sweep that `name` is of, when each winner was decided; empty for a workload's "
               "file.");
  return fields;
}

const Fields<ReportFailure>& fields_of(const ReportFailure*) {
  static const auto fields = Fields<ReportFailure>("failure", "Trials that failed with the same status and reason.")
                                 .add("status", &ReportFailure::status, "How they ended.")
                                 .add("reason", &ReportFailure::reason, "Why.")
                                 .add("count", &ReportFailure::count, "Number of trials.")
                                 .add("kernels", &ReportFailure::kernels, "Names of their kernels.")
                                 .add("problem", &ReportFailure::problem, "Problem of the first trial.")
                                 .add("config", &ReportFailure::config, "Configuration of the first trial.");
  return fields;
}

const Fields<ReportKernel>& fields_of(const ReportKernel*) {
  static const auto fields =
      Fields<ReportKernel>("kernel", "A version of a kernel's source.")
          .add("name", &ReportKernel::name, "Name of the kernel.")
          .add("source_hash", &ReportKernel::source_hash, "Hash of its source with headers.")
          .add("current", &ReportKernel::current, "It is the version of the kernel's latest trial here.")
          .add(
              "arithmetic", [](const ReportKernel& kernel) { return kernel.is_int8 ? "int8" : "float32"; },
              "`int8` (dp4a) or `float32`: type of the operations that rates count.")
          .add("problems", &ReportKernel::problems, "Its problems.");
  return fields;
}

namespace {

const Fields<NumberedContext>& fields_of(const NumberedContext*) {
  static const auto fields =
      Fields<NumberedContext>("context", "Everything measured on one device under one toolkit; these are never mixed.")
          .add("id", &NumberedContext::id, "Index in the list.")
          .add("device", of_context(&ReportContext::device), "The device.")
          .add("toolkit", of_context(&ReportContext::toolkit), "Compiler, target and driver.")
          .add("roofline", of_context(&ReportContext::roofline), "Null where no rates are known.")
          .add(
              "first_unix_ms",
              [](const NumberedContext& of) { return moment(&ReportContext::first_unix_ms)(*of.context); },
              "Start of the first trial.", kUnixMs)
          .add(
              "last_unix_ms",
              [](const NumberedContext& of) { return moment(&ReportContext::last_unix_ms)(*of.context); },
              "Start of the last trial.", kUnixMs)
          .add("spent_ms", of_context(&ReportContext::spent_ms), "Time spent in its sessions.", "ms")
          .add(
              "statuses", [](const NumberedContext& of) { return by_status(of.context->statuses, true); },
              "Trials of searches by status.")
          .add(
              "mean_speedup", [](const NumberedContext& of) { return of.context->speedups.speedup; },
              "Geometric mean of the speedups of the decided problems of the kernels' current sources.")
          .add("workload", of_context(&ReportContext::workload), "Null without a workload.")
          .add("kernels", of_context(&ReportContext::kernels), "Versions of kernels.")
          .add("failures", of_context(&ReportContext::failures), "The most common first, at most 200.")
          .add("failures_more", of_context(&ReportContext::failures_more),
               "Trials whose kind of failure is not listed.")
          .add_counts(of_context(&ReportContext::counts));
  return fields;
}

}  // namespace

const Fields<ReportStateSpan>& fields_of(const ReportStateSpan*) {
  static const auto fields = Fields<ReportStateSpan>("state_span", "A state of the governor and when it held.")
                                 .add("from_unix_ms", &ReportStateSpan::from_unix_ms, "Begin.", kUnixMs)
                                 .add("to_unix_ms", &ReportStateSpan::to_unix_ms, "End.", kUnixMs)
                                 .add("state", &ReportStateSpan::state, "Name of the state.");
  return fields;
}

const Fields<ReportDiscarded>& fields_of(const ReportDiscarded*) {
  static const auto fields = Fields<ReportDiscarded>("discarded_span", "Discarded samples and when their trials ran.")
                                 .add("from_unix_ms", &ReportDiscarded::from_unix_ms, "Begin.", kUnixMs)
                                 .add("to_unix_ms", &ReportDiscarded::to_unix_ms, "End.", kUnixMs)
                                 .add("count", &ReportDiscarded::count, "Number of samples.");
  return fields;
}

const Fields<ReportTelemetry>& fields_of(const ReportTelemetry*) {
  static const auto fields =
      Fields<ReportTelemetry>("telemetry", "Sensor readings: lists of the same length.")
          .add(
              "unix_ms",
              [](const ReportTelemetry& telemetry) {
                std::vector<std::int64_t> moments;
                std::ranges::transform(telemetry.points, std::back_inserter(moments), &TelemetryRow::unix_ms);
                return moments;
              },
              "Times of at most 1,500 readings: the lowest and the highest of each stretch of time.", kUnixMs)
          .add("temperature_c", readings_field(&TelemetryRow::temperature_c), "Temperature of the GPU.", "°C")
          .add("sm_clock_mhz", readings_field(&TelemetryRow::sm_clock_mhz), "Clock of the multiprocessors.", "MHz")
          .add("memory_clock_mhz", readings_field(&TelemetryRow::memory_clock_mhz), "Clock of the memory.", "MHz")
          .add("power_w", readings_field(&TelemetryRow::power_w), "Power.", "W")
          .add("canary_us", readings_field(&TelemetryRow::canary_us), "Time of the canary kernel.", "µs")
          .add("states", &ReportTelemetry::states, "States of the governor.")
          .add("discarded", &ReportTelemetry::discarded, "Discarded samples.")
          .add("readings", &ReportTelemetry::readings, "Number of all readings.");
  return fields;
}

const Fields<ReportSession>& fields_of(const ReportSession*) {
  const auto row = [](auto member) { return [member](const ReportSession& of) { return of.row.*member; }; };
  static const auto fields =
      Fields<ReportSession>("session", "A session: one device's part of a run of the tuner.")
          .add("id", row(&SessionRow::id), "Row in the database.")
          .add("uuid", row(&SessionRow::uuid), "Unique id.")
          .add("run_uuid", row(&SessionRow::run_uuid), "Shared by the sessions of one run, one for each device.")
          .add("context", &ReportSession::context, "Index in `contexts`; null without trials.")
          .add(
              "device", [](const ReportSession& of) { return of.row.device.name; }, "Name of the device.")
          .add(
              "started_unix_ms", [](const ReportSession& of) { return moment(&SessionRow::started_unix_ms)(of.row); },
              "Start; null: unknown.", kUnixMs)
          .add("finished_unix_ms", row(&SessionRow::finished_unix_ms), "End; null: not ended or unknown.", kUnixMs)
          .add("state", row(&SessionRow::state), "`running`, `finished`, `interrupted` or `failed`.")
          .add("alive", row(&SessionRow::alive), "It is running, and so is its process.")
          .add("spent_ms", row(&SessionRow::spent_ms), "Time spent, over all its processes.", "ms")
          .add("searcher", row(&SessionRow::searcher), "Name of the searcher.")
          .add("seed", row(&SessionRow::seed), "Seed of the searcher.")
          .add("command_line", row(&SessionRow::command_line), "Command line.")
          .add("program_version", row(&SessionRow::program_version), "Version of Pascaline.")
          .add(
              "imported_from", [](const ReportSession& of) { return unless_empty(&SessionRow::imported_from)(of.row); },
              "File that it was imported from; null: tuned here.")
          .add_counts(&ReportSession::counts)
          .add("samples", &ReportSession::samples, "Samples, discarded ones among them.")
          .add(
              "discarded",
              [](const ReportSession& of) {
                ByName<std::size_t> named;
                for (const auto& [mark, count] : of.discarded) {
                  named.entries.emplace_back(name_of(mark), count);
                }
                return named;
              },
              "Samples that do not count, by reason: `thermal_throttle`, `power_throttle`, `clock_drift`, "
              "`canary_drift`.")
          .add(
              "trial_time_ms",
              [](const ReportSession& of) { return of.times ? std::optional(parts_of(*of.times)) : std::nullopt; },
              "Where trials of searches spent their time on the device: `load`, `inputs`, `check`, `warm up`, `evict`, "
              "`sample`, `wait`, `other`; null where no trial has it.",
              "ms")
          .add("telemetry", &ReportSession::telemetry, "Null without readings.");
  return fields;
}

const Fields<WholeDocument>& fields_of(const WholeDocument*) {
  const auto report = [](auto member) { return [member](const WholeDocument& of) { return of.report->*member; }; };
  static const auto fields =
      Fields<WholeDocument>("report", "The document.")
          .add(
              "format", [](const WholeDocument&) { return "pascaline-report"; }, "`pascaline-report`.")
          .add(
              "version", [](const WholeDocument&) { return kReportVersion; }, "Version of this format.")
          .add("title", report(&ReportDocument::title), "Title.")
          .add("generated_unix_ms", report(&ReportDocument::generated_unix_ms), "When it was written.", kUnixMs)
          .add(
              "program_version", [](const WholeDocument&) { return kVersion; }, "Version of Pascaline.")
          .add(
              "database", [](const WholeDocument& of) { return WholeDatabase{of.report}; }, "The database.")
          .add(
              "kernel_filter",
              [](const WholeDocument& of) { return unless_empty(&ReportDocument::kernel_filter)(*of.report); },
              "Kernel that the report is narrowed to.")
          .add(
              "device_filter",
              [](const WholeDocument& of) { return unless_empty(&ReportDocument::device_filter)(*of.report); },
              "Device that the report is narrowed to.")
          .add("live", report(&ReportDocument::live), "Made while the database may grow.")
          .add(
              "counts",
              [](const WholeDocument&) { return std::vector<TrialCount>(kTrialCounts.begin(), kTrialCounts.end()); },
              "The counts of trials, in the order in which to show them.")
          .add(
              "contexts", [](const WholeDocument& of) { return numbered(of.report->contexts); },
              "One for each device and toolkit, in the order of their first trials.")
          .add(
              "compilers", [](const WholeDocument& of) { return compare_compilers(of.report->contexts); },
              "One for each device, target and driver for which several compilers built the same sources.")
          .add(
              "devices", [](const WholeDocument& of) { return compare_devices(of.report->contexts); },
              "One for each kind of device of which several have a problem of the same source in common.")
          .add("sessions", report(&ReportDocument::sessions), "The oldest first.")
          .add(
              "comparison",
              [](const WholeDocument& of) { return of.comparison ? std::optional(*of.comparison) : std::nullopt; },
              "Comparison with another database or session; null: none was asked for.");
  return fields;
}

nlohmann::ordered_json document_json(const ReportDocument& document, const ReportComparison* comparison) {
  const WholeDocument whole{&document, comparison};
  return fields_of(&whole).json(whole);
}

std::vector<const FieldTable*> report_tables() {
  std::vector<const FieldTable*> tables;
  list_tables(fields_of(static_cast<const WholeDocument*>(nullptr)), tables);
  return tables;
}

}  // namespace pascaline
