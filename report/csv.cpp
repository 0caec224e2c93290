#include <fmt/format.h>

#include <iterator>
#include <map>

#include "report/report.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kHeader =
    "trial_id,session_id,device_kind,device,compute_capability,sm_count,compiler,compiler_version,target,"
    "driver_version,kernel,source_hash,space_hash,problem,config,status,stage,is_default,reason,median_us,low_us,"
    "high_us,sample_count,gflops,gbs,occupancy,registers,static_shared_bytes,constant_bytes,local_bytes,local_loads,"
    "local_stores,instructions,ffma,max_error,binary_hash,compile_ms,verify_ms,measure_ms,started_unix_ms,"
    "canary_us,clock_scale,energy_mj,shared_trial_id\r\n";

// One line under construction.
class Line {
 public:
  explicit Line(std::string& out) : out_(&out) {}
  Line& text(std::string_view value) { return raw(csv_field(value)); }
  template <typename Number>
  Line& number(Number value) {
    return raw(fmt::format("{}", value));
  }
  template <typename Number>
  Line& optional(bool present, Number value) {
    return raw(present ? fmt::format("{}", value) : std::string());
  }
  void end() { *out_ += "\r\n"; }

 private:
  Line& raw(const std::string& field) {
    *out_ += first_ ? "" : ",";
    *out_ += field;
    first_ = false;
    return *this;
  }
  std::string* out_;
  bool first_ = true;
};

using Work = std::pair<double, double>;

void write_context(Line& line, const StoredTrial& stored) {
  line.number(stored.id).number(stored.session_id);
  line.text(stored.device.kind).text(stored.device.name).text(stored.device.compute_capability);
  line.number(stored.device.sm_count);
  line.text(stored.toolkit.compiler).text(stored.toolkit.version).text(stored.toolkit.target);
  line.text(stored.toolkit.driver_version);
  line.text(stored.kernel.name).text(stored.kernel.source_hash).text(stored.space_hash);
}

void write_time(Line& line, const std::optional<TimeSummary>& time, const Work& work) {
  const TimeSummary summary = time.value_or(TimeSummary{});
  const bool timed = time && summary.median_us > 0;
  line.optional(time.has_value(), summary.median_us).optional(time.has_value(), summary.low_us);
  line.optional(time.has_value(), summary.high_us).optional(time.has_value(), summary.count);
  line.optional(timed && work.first > 0, work.first / summary.median_us / 1e3);
  line.optional(timed && work.second > 0, work.second / summary.median_us / 1e3);
}

void write_trial(std::string& out, const StoredTrial& stored, const Work& work) {
  const Trial& trial = stored.trial;
  const Resources& resources = trial.resources;
  Line line(out);
  write_context(line, stored);
  line.text(trial.problem.text()).text(trial.config.text()).text(name_of(trial.status)).text(name_of(trial.stage));
  line.number(trial.is_default ? 1 : 0).text(trial.reason);
  write_time(line, trial.time, work);
  line.number(trial.occupancy).number(resources.registers).number(resources.static_shared_bytes);
  line.number(resources.constant_bytes).number(resources.local_bytes).number(resources.local_loads);
  line.number(resources.local_stores).number(resources.instructions).number(resources.ffma);
  line.optional(trial.max_error.has_value(), trial.max_error.value_or(0)).text(trial.binary_hash);
  line.number(trial.compile_ms).number(trial.verify_ms).number(trial.measure_ms).number(trial.started_unix_ms);
  line.optional(trial.canary_us.has_value(), trial.canary_us.value_or(0)).number(trial.clock_scale);
  line.optional(trial.energy_mj.has_value(), trial.energy_mj.value_or(0));
  line.optional(trial.shared_trial != 0, trial.shared_trial);
  line.end();
}

}  // namespace

std::string csv_report(const Store& store, const ReportOptions& options) {
  std::string out(kHeader);
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
