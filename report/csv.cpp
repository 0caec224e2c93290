#include "core/util/csv.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "report/report.hpp"
#include "report/summary.hpp"

namespace pascaline {
namespace {

// A trial's own columns stand between these.
constexpr std::string_view kContextHeader =
    "trial_id,session_id,device_kind,device,compute_capability,sm_count,compiler,compiler_version,target,"
    "driver_version,kernel,source_hash,space_hash,problem";
constexpr std::string_view kTimeHeader = "median_us,low_us,high_us,sample_count,gflops,gbs";
constexpr std::string_view kEndHeader = ",shared_trial_id\r\n";

std::string csv_header() {
  std::string text(kContextHeader);
  const Trial trial{};
  for_each_field(trial, [&](std::string_view name, const auto& value) {
    text += ',';
    text += std::is_same_v<std::decay_t<decltype(value)>, std::optional<TimeSummary>> ? kTimeHeader : name;
  });
  text += kEndHeader;
  return text;
}

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

// How each type of field is written.
class FieldWriter {
 public:
  FieldWriter(Line& line, const Work& work) : line_(&line), work_(&work) {}
  void operator()(std::string_view, bool value) { line_->number(value ? 1 : 0); }
  void operator()(std::string_view, int value) { line_->number(value); }
  void operator()(std::string_view, std::int64_t value) { line_->number(value); }
  void operator()(std::string_view, double value) { line_->number(value); }
  void operator()(std::string_view, const std::string& value) { line_->text(value); }
  void operator()(std::string_view, const std::optional<double>& value) {
    line_->optional(value.has_value(), value.value_or(0));
  }
  void operator()(std::string_view, const Config& config) { line_->text(config.text()); }
  void operator()(std::string_view, TrialStatus status) { line_->text(name_of(status)); }
  void operator()(std::string_view, TrialStage stage) { line_->text(name_of(stage)); }
  void operator()(std::string_view, const std::optional<TimeSummary>& time) { write_time(*line_, time, *work_); }

 private:
  Line* line_;
  const Work* work_;
};

void write_trial(std::string& out, const StoredTrial& stored, const Work& work) {
  Line line(out);
  write_context(line, stored);
  line.text(stored.trial.problem.text());
  for_each_field(stored.trial, FieldWriter(line, work));
  line.optional(stored.trial.shared_trial != 0, stored.trial.shared_trial);
  line.end();
}

}  // namespace

std::string csv_report(const Store& store, const ReportOptions& options) {
  std::string out = csv_header();
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
