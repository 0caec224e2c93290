#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "report/report.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kNone = "–";

std::string device_title(const DeviceSummary& group) {
  const DeviceRow& device = group.device;
  const ToolkitRow& toolkit = group.toolkit;
  if (device.kind == "foreign") {
    return markdown_escape(fmt::format("{}, results of another tuner ({})", device.name, toolkit.compiler));
  }
  std::string title = device.name;
  if (device.kind == "cuda") {
    title += fmt::format(" (compute capability {}, {} SMs)", device.compute_capability, device.sm_count);
  }
  title += fmt::format(", {} {} for {}", toolkit.compiler, toolkit.version, toolkit.target);
  if (!toolkit.driver_version.empty()) {
    title += fmt::format(", driver {}", toolkit.driver_version);
  }
  return markdown_escape(title);
}

std::size_t total(const DeviceSummary& group) {
  return std::accumulate(group.counts.begin(), group.counts.end(), std::size_t{0});
}

std::string status_counts(const DeviceSummary& group) {
  std::string list;
  for (std::size_t i = 0; i < kStatusCount; ++i) {
    if (group.counts[i] > 0) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", group.counts[i], name_of(static_cast<TrialStatus>(i)));
    }
  }
  return list;
}

std::string time_cell(const std::optional<TimeSummary>& time) {
  return time ? short_number(time->median_us) : std::string(kNone);
}

// The interval is what the two 95 % intervals allow at most: wider than one of the ratio itself.
std::string gain_cell(const ProblemSummary& problem) {
  if (!problem.baseline || !problem.best || !(problem.best->low_us > 0)) {
    return std::string(kNone);
  }
  const TimeSummary& from = *problem.baseline;
  const TimeSummary& to = *problem.best;
  return fmt::format("{:.2f}× ({:.2f}–{:.2f})", from.median_us / to.median_us, from.low_us / to.high_us,
                     from.high_us / to.low_us);
}

// Work over microseconds in units of 1e9 a second.
std::string rate_cell(double work, const std::optional<TimeSummary>& time) {
  return time && time->median_us > 0 && work > 0 ? short_number(work / time->median_us / 1e3) : std::string(kNone);
}

std::string confidence_cell(const ProblemSummary& problem) {
  return problem.confidence ? fmt::format("{:.1f} %", *problem.confidence * 100) : std::string("undecided");
}

std::string problem_line(const std::string& text, const ProblemSummary& problem) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_escape(text), time_cell(problem.baseline),
                     time_cell(problem.best), gain_cell(problem), rate_cell(problem.flops, problem.best),
                     rate_cell(problem.bytes, problem.best), confidence_cell(problem),
                     problem.best ? markdown_escape(problem.config.text()) : std::string(kNone));
}

std::string kernel_section(const DeviceSummary& group) {
  std::string out;
  for (const auto& [kernel, problems] : group.kernels) {
    out += fmt::format("### {} (source {})\n\n", markdown_escape(kernel.first),
                       markdown_escape(kernel.second.substr(0, 8)));
    out += "| Problem | Default, µs | Best, µs | Gain (interval) | GFLOP/s | GB/s | Confidence | Configuration |\n";
    out += "|---|--:|--:|--:|--:|--:|--:|---|\n";
    for (const auto& [text, problem] : problems) {
      out += problem_line(text, problem);
    }
    out += "\n";
  }
  return out;
}

std::string failure_section(const DeviceSummary& group, std::size_t limit) {
  using Entry = std::pair<std::pair<TrialStatus, std::string>, std::size_t>;
  std::vector<Entry> failures(group.failures.begin(), group.failures.end());
  if (failures.empty()) {
    return {};
  }
  std::stable_sort(failures.begin(), failures.end(),
                   [](const Entry& a, const Entry& b) { return a.second > b.second; });
  std::string out = "### Failures\n\n| Trials | Status | Reason |\n|--:|---|---|\n";
  for (std::size_t i = 0; i < std::min(limit, failures.size()); ++i) {
    const auto& [kind, count] = failures[i];
    out += fmt::format("| {} | {} | {} |\n", count, name_of(kind.first), markdown_escape(kind.second));
  }
  if (failures.size() > limit) {
    out += fmt::format("\n{} rarer reasons are left out.\n", failures.size() - limit);
  }
  return out + "\n";
}

std::string group_section(const DeviceSummary& group, std::size_t max_reasons) {
  std::string out = fmt::format("## {}\n\n", device_title(group));
  out += fmt::format("{} trials from {} to {}: {}.\n\n", total(group), utc_time(group.first_unix_ms),
                     utc_time(group.last_unix_ms), status_counts(group));
  if (group.counts[static_cast<std::size_t>(TrialStatus::ok)] == 0) {
    out += "No configuration ran correctly here; the failures below say why.\n\n";
  }
  return out + kernel_section(group) + failure_section(group, max_reasons);
}

}  // namespace

std::string markdown_report(const Store& store, const ReportOptions& options) {
  const std::vector<DeviceSummary> groups = summarize_trials(store, options);
  std::string out = fmt::format("# {}\n\n", markdown_escape(options.title));
  if (groups.empty()) {
    const bool narrowed = !options.kernel.empty() || !options.device.empty();
    return out + (narrowed ? "The database holds no trials of that kernel and device.\n"
                           : "The database holds no trials yet; `pascaline sweep` makes some.\n");
  }
  for (const DeviceSummary& group : groups) {
    out += group_section(group, options.max_reasons);
  }
  out += "Times are medians. The interval of a gain is the widest that the 95 % intervals of both medians allow. ";
  out += "Confidence is the probability that the configuration is not slower than the default, from the finals; ";
  out += "\"undecided\" rows had none, and show the fastest trial of the search.\n";
  return out;
}

}  // namespace pascaline
