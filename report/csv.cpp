#include "core/util/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "report/fields.hpp"
#include "report/report.hpp"
#include "report/summary.hpp"

namespace pascaline {
namespace {

struct ColumnText {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
};

// The columns that are fields of a trial, as `for_each_field` names them.
constexpr std::array kTrialColumns{
    ColumnText{"config", "", "The configuration, `NAME=value` sorted by name."},
    ColumnText{"status", "", "How it ended."},
    ColumnText{"stage", "", "Stage of the sweep."},
    ColumnText{"is_default", "", "It is the default configuration."},
    ColumnText{"reason", "", "Why it is not `ok`, or a note."},
    ColumnText{"occupancy", "", "Resident warps / the maximum of a multiprocessor; 0: unknown."},
    ColumnText{"registers", "", "Registers of a thread; 0: unknown, as on the emulated device."},
    ColumnText{"static_shared_bytes", "bytes", "Static shared memory of a block."},
    ColumnText{"constant_bytes", "bytes", "Parameters and constants."},
    ColumnText{"local_bytes", "bytes", "Stack of a thread."},
    ColumnText{"local_loads", "", "Load instructions from local memory."},
    ColumnText{"local_stores", "", "Store instructions to local memory."},
    ColumnText{"instructions", "", "Machine instructions."},
    ColumnText{"ffma", "", "Fused multiply-add instructions among them."},
    ColumnText{
        "max_error", "",
        "Largest [relative error](../search_spaces.md#tolerance) of the verification; `inf`: the result was NaN."},
    ColumnText{"binary_hash", "", "Hash of the code."},
    ColumnText{"compile_ms", "ms", "Time to compile; 0: from the cache."},
    ColumnText{"verify_ms", "ms", "Time until the result was verified."},
    ColumnText{"load_ms", "ms", "Part of `verify_ms`: bringing the code to the device and preparing its launch."},
    ColumnText{"inputs_ms", "ms",
               "Part of `verify_ms`: drawing inputs and computing the right result; 0: earlier ones served."},
    ColumnText{"measure_ms", "ms", "Time to measure."},
    ColumnText{"warm_up_ms", "ms", "Part of `measure_ms`: launches before the first sample."},
    ColumnText{"evict_ms", "ms", "Part of `measure_ms`: evicting the device's caches before samples."},
    ColumnText{"sample_ms", "ms", "Part of `measure_ms`: the launches that are timed."},
    ColumnText{"wait_ms", "ms", "Part of `measure_ms`: waiting until the card is fit to be measured on."},
    ColumnText{"started_unix_ms", "ms since 1970 UTC", "Start."},
    ColumnText{"canary_us", "µs", "Median time of the canary kernel around the samples; empty without one."},
    ColumnText{"clock_scale", "", "Factor on the samples' times where the clock had drifted; 1 if it had not."},
    ColumnText{
        "energy_mj", "mJ",
        "Energy of a launch, where the card reports its power: of winners and of the default measured with them, "
        "where their search took 20 s or more, and with `--objective energy` or `edp` of all contenders."},
    ColumnText{"sustained_us", "µs",
               "Time of a launch in the thermal steady state of back-to-back work, where a sweep tuned for it."},
};

const ColumnText& text_of_field(std::string_view name) {
  const auto* found = std::ranges::find(kTrialColumns, name, &ColumnText::name);
  if (found == kTrialColumns.end()) {
    throw std::logic_error(fmt::format("report/csv.cpp does not describe the field {} of a trial", name));
  }
  return *found;
}

using Work = std::pair<double, double>;

std::optional<double> rate(const std::optional<TimeSummary>& time, double work) {
  const bool known = time && time->median_us > 0 && work > 0;
  return known ? std::optional(work / time->median_us / 1e3) : std::nullopt;
}

template <typename Visit>
void visit_time(const std::optional<TimeSummary>& time, const Work& work, Visit& visit) {
  const auto part = [&](auto member) { return time ? std::optional((*time).*member) : std::nullopt; };
  visit(ColumnText{"median_us", "µs", "Median time of a launch."}, part(&TimeSummary::median_us));
  visit(ColumnText{"low_us", "µs", "Lower end of the median's 95 % interval."}, part(&TimeSummary::low_us));
  visit(ColumnText{"high_us", "µs", "Upper end of that interval."}, part(&TimeSummary::high_us));
  visit(ColumnText{"sample_count", "", "Launches counted."}, part(&TimeSummary::count));
  visit(ColumnText{"gflops", "10⁹ operations/s", "Rate at the median."}, rate(time, work.first));
  visit(ColumnText{"gbs", "10⁹ bytes/s", "Rate at the median."}, rate(time, work.second));
}

// Every column of a line in its order, with its text and value.
template <typename Visit>
void visit_columns(const StoredTrial& stored, const Work& work, Visit&& visit) {
  visit(ColumnText{"trial_id", "", "Row in the database."}, stored.id);
  visit(ColumnText{"session_id", "", "Row of the session."}, stored.session_id);
  visit(ColumnText{"device_kind", "", "`cuda`, `host` (the emulated device), or `foreign` (another tuner's results)."},
        stored.device.kind);
  visit(ColumnText{"device", "", "Name of the device."}, stored.device.name);
  visit(ColumnText{"compute_capability", "", "`6.1`; empty on the emulated device."}, stored.device.compute_capability);
  visit(ColumnText{"sm_count", "", "Number of multiprocessors."}, stored.device.sm_count);
  visit(ColumnText{"compiler", "", "`nvrtc`, `g++`, `clang++`; the format of another tuner's results."},
        stored.toolkit.compiler);
  visit(ColumnText{"compiler_version", "", "Version of the compiler."}, stored.toolkit.version);
  visit(ColumnText{"target", "", "`sm_61`, `compute_61` (PTX) or `host` (the emulated device)."},
        stored.toolkit.target);
  visit(ColumnText{"driver_version", "", "CUDA version of the driver; empty on the emulated device."},
        stored.toolkit.driver_version);
  visit(ColumnText{"kernel", "", "Name of the kernel."}, stored.kernel.name);
  visit(ColumnText{"source_hash", "", "Hash of its source with headers."}, stored.kernel.source_hash);
  visit(ColumnText{"space_hash", "", "Hash of the search space it came from."}, stored.space_hash);
  visit(ColumnText{"problem", "", "Kernel, dimensions and element types."}, stored.trial.problem.text());
  for_each_field(stored.trial, [&](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::optional<TimeSummary>>) {
      visit_time(value, work, visit);
    } else {
      visit(text_of_field(name), value);
    }
  });
  visit(ColumnText{"shared_trial_id", "", "Trial of an identical binary whose result this is; empty: its own."},
        stored.trial.shared_trial != 0 ? std::optional(stored.trial.shared_trial) : std::nullopt);
  visit(ColumnText{"counted_as", "", "The [counts](#count) that include it, separated by spaces."},
        counted_as(stored.trial));
}

template <typename Value>
std::string csv_value(const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_arithmetic_v<Value>) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_same_v<Value, Config>) {
    return csv_field(value.text());
  } else if constexpr (std::is_enum_v<Value>) {
    return csv_field(name_of(value));
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return csv_field(value);
  } else {
    return value ? csv_value(*value) : std::string();
  }
}

template <typename Value>
FieldType csv_type() {
  if constexpr (std::is_same_v<Value, bool>) {
    return {"0 or 1", {}};
  } else if constexpr (std::is_same_v<Value, Config>) {
    return field_types::type_of<std::string>();
  } else if constexpr (field_types::kIs<std::optional, Value>) {
    return {csv_type<typename Value::value_type>().text + " or empty", {}};
  } else {
    return field_types::type_of<Value>();
  }
}

void write_trial(std::string& out, const StoredTrial& stored, const Work& work) {
  const char* separator = "";
  visit_columns(stored, work, [&](const ColumnText&, const auto& value) {
    out += separator + csv_value(value);
    separator = ",";
  });
  out += "\r\n";
}

}  // namespace

std::vector<FieldText> csv_columns() {
  std::vector<FieldText> columns;
  visit_columns({}, {}, [&](const ColumnText& text, const auto& value) {
    columns.push_back({std::string(text.name), csv_type<std::decay_t<decltype(value)>>(), std::string(text.unit),
                       std::string(text.meaning)});
  });
  return columns;
}

std::string csv_report(const Store& store, const ReportOptions& options) {
  std::string out;
  for (const FieldText& column : csv_columns()) {
    out += (out.empty() ? "" : ",") + column.name;
  }
  out += "\r\n";
  std::map<std::string, Work> works;
  TrialFilter filter;
  filter.kernel = options.kernel;
  store.for_each_trial(filter, [&](const StoredTrial& stored) {
    if (!is_wanted(options, stored.device) || !is_wanted(options, stored.session_id)) {
      return;
    }
    const auto [work, fresh] = works.try_emplace(stored.trial.problem.text());
    if (fresh) {
      work->second = store.work(work->first).value_or(Work{});
    }
    write_trial(out, stored, work->second);
  });
  return out;
}

}  // namespace pascaline
