#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/device/emulator_name.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "db/overview.hpp"
#include "report/comparison.hpp"
#include "report/compiler_comparison.hpp"
#include "report/device_comparison.hpp"
#include "report/markdown_parts.hpp"
#include "report/pareto.hpp"
#include "report/report.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

std::string device_text(const DeviceSummary& group) {
  const DeviceRow& device = group.device;
  return device.kind == "cuda" ? fmt::format("{} (compute capability {}, {} SMs)", device.name,
                                             device.compute_capability, device.sm_count)
                               : device.name;
}

std::string built_by_text(const DeviceSummary& group) {
  const ToolkitRow& toolkit = group.toolkit;
  if (group.device.kind == "foreign") {
    return fmt::format("results of another tuner ({})", toolkit.compiler);
  }
  std::string text = fmt::format("{} {} for {}", toolkit.compiler, toolkit.version, shown_architecture(toolkit.target));
  return toolkit.driver_version.empty() ? text : fmt::format("{}, driver {}", text, toolkit.driver_version);
}

// Of the trials that are not usable; empty if all are.
std::string status_counts(const DeviceSummary& group) {
  std::string list;
  for (std::size_t i = 0; i < kTrialStatuses; ++i) {
    if (group.statuses[i] > 0 && !has_time(static_cast<TrialStatus>(i))) {
      list +=
          fmt::format("{}{} {}", list.empty() ? "; " : ", ", group.statuses[i], name_of(static_cast<TrialStatus>(i)));
    }
  }
  return list;
}

// Work over microseconds in units of 1e9 a second.
std::string rate_cell(double work, const std::optional<TimeSummary>& time) {
  return time && time->median_us > 0 && work > 0 ? short_number(work / time->median_us / 1e3) : std::string(kNoValue);
}

std::string confidence_cell(const ProblemSummary& problem) {
  if (problem.confidence && !problem.baseline) {
    return std::string(kNoValue);
  }
  return problem.confidence
             ? fmt::format("{:.1f} %{}", *problem.confidence * 100, problem.provisional ? ", provisional" : "")
         : problem.in_finals ? std::string("decided again later")
                             : std::string("undecided");
}

std::string problem_line(const std::string& text, const ProblemSummary& problem) {
  return fmt::format("| {} | {}{} | {} | {} | {} | {} | {} | {} |", markdown_escape(text),
                     median_cell(problem.baseline), problem.stand_in ? "\\*" : "", median_cell(problem.best),
                     speedup_cell(problem.baseline, problem.best), rate_cell(problem.flops, problem.best),
                     rate_cell(problem.bytes, problem.best), confidence_cell(problem),
                     problem.best ? markdown_escape(problem.config.text()) : std::string(kNoValue));
}

// Which times are not the default's, and why.
std::string stand_ins(const std::map<std::string, ProblemSummary>& problems) {
  std::string out;
  for (const auto& [text, problem] : problems) {
    if (problem.stand_in) {
      out += fmt::format("\\* {}: time of `{}`, the usable configuration nearest to the default ({})\n\n",
                         markdown_escape(text), clean_line(problem.stand_in->config.text()),
                         markdown_escape(default_fate(problem.stand_in->why)));
    }
  }
  return out;
}

// What a source that has been changed since gave is folded.
std::string kernel_section(const DeviceSummary& group) {
  constexpr std::string_view kHead =
      "| Problem | Default, µs | Best, µs | Speedup (interval) | Gop/s | GB/s | Confidence | Configuration |\n"
      "|---|--:|--:|--:|--:|--:|--:|---|";
  std::string out;
  for (const auto& [kernel, problems] : group.kernels) {
    const bool current = group.current_sources.at(kernel.first) == kernel.second;
    out += fmt::format("### {} (source {}{})\n\n", markdown_escape(kernel.first),
                       markdown_escape(kernel.second.substr(0, 8)), current ? "" : ", outdated");
    std::vector<std::string> lines;
    for (const auto& [text, problem] : problems) {
      lines.push_back(problem_line(text, problem));
    }
    out += markdown_table(kHead, lines, current ? kOpenRows : 0);
    out += stand_ins(problems);
  }
  return out;
}

// Why there is no estimate, and of how many configurations.
std::string missing_limits(const std::map<std::string, std::size_t>& missing) {
  std::string out;
  for (const auto& [reason, count] : missing) {
    out += fmt::format("{}: {}\n\n", counted(count, "configuration"), markdown_escape(reason));
  }
  return out;
}

// What limits the winners and defaults of the present sources, by estimate.
std::string limit_section(const DeviceSummary& group, const MeasuredRates& measured, const ReportOptions& options) {
  std::vector<std::string> lines;
  std::map<std::string, std::size_t> missing;
  const auto add = [&](const std::string& text, const ReportLimit& limit) {
    if (!limit.missing.empty()) {
      ++missing[limit.missing];
      return;
    }
    lines.push_back(fmt::format("| {} | {} | {} |", markdown_escape(text), limit.role,
                                markdown_escape(fmt::format("{}", fmt::join(limit_sentences(limit), " ")))));
  };
  for (const auto& [kernel, problems] : group.kernels) {
    for (const auto& [text, problem] : problems) {
      const auto best = problem.best ? std::optional(problem.config) : std::nullopt;
      const auto baseline = problem.stand_in ? std::optional(problem.stand_in->config) : std::nullopt;
      if (group.current_sources.at(kernel.first) == kernel.second) {
        const LimitRequest request{group.device, group.toolkit, kernel.second, problem.problem, {}, measured};
        for (const ReportLimit& limit : limits_of(options.limit_of, request, best, baseline)) {
          add(text, limit);
        }
      }
    }
  }
  if (lines.empty() && missing.empty()) {
    return {};
  }
  return fmt::format("### What limits these kernels\n\n{}\n\n", limit_notice()) +
         markdown_table("| Problem | Configuration | Estimate |\n|---|---|---|", lines) + missing_limits(missing);
}

// What is thriftier than the fastest, and at what cost, of the problems with enough of both.
std::string energy_section(const DeviceSummary& group, const std::map<ParetoKey, ParetoProblem>& pareto) {
  std::vector<std::string> lines;
  for (const auto& [kernel, problems] : group.kernels) {
    for (const auto& [text, problem] : problems) {
      const auto found = pareto.find(pareto_key(group.device, group.toolkit, kernel.second, problem.problem));
      if (found == pareto.end()) {
        continue;
      }
      for (const ParetoPoint& point : found->second.points) {
        if (point.on_front) {
          lines.push_back(fmt::format("| {} | {} | {} | {} | {} |", markdown_escape(text),
                                      short_number(point.median_us), short_number(point.energy_mj),
                                      markdown_escape(pareto_role(found->second, point)),
                                      markdown_escape(point.config.text())));
        }
      }
      lines.push_back(
          fmt::format("| {} | | | | {} |", markdown_escape(text), markdown_escape(pareto_sentence(found->second))));
    }
  }
  if (lines.empty()) {
    return {};
  }
  return "### Time and energy\n\nConfigurations that no other one beats in both.\n\n" +
         markdown_table("| Problem | Time, µs | Energy, mJ | What it is | Configuration |\n|---|--:|--:|---|---|",
                        lines);
}

std::string failure_section(const DeviceSummary& group, std::size_t limit) {
  using Entry = std::pair<std::pair<TrialStatus, std::string>, std::size_t>;
  std::vector<Entry> failures(group.failures.begin(), group.failures.end());
  if (failures.empty()) {
    return {};
  }
  std::stable_sort(failures.begin(), failures.end(),
                   [](const Entry& a, const Entry& b) { return a.second > b.second; });
  std::string out = "| Trials | Status | Reason |\n|--:|---|---|\n";
  std::size_t failed = 0;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const auto& [kind, count] = failures[i];
    failed += count;
    out += i < limit ? fmt::format("| {} | {} | {} |\n", count, name_of(kind.first), markdown_escape(kind.second)) : "";
  }
  if (failures.size() > limit) {
    out += fmt::format("\n{} rarer reasons are not shown.\n", failures.size() - limit);
  }
  return markdown_details("Failures: " + counted(failed, "trial"), out);
}

// Where the device's time for trials went, a line a session.
std::string time_section(const DeviceSummary& group, const ReportOptions& options) {
  if (group.trial_times.empty()) {
    return {};
  }
  std::string head = "| Session | Began | Ran | Dropped early | Device time | Per trial |";
  std::string rule = "|--:|---|--:|--:|--:|--:|";
  for_each_part(group.trial_times.front().times, [&](const char* name, double) {
    head += fmt::format(" {} |", name);
    rule += "--:|";
  });
  std::vector<std::string> lines;
  for (const SessionTrialTimes& session : group.trial_times) {
    const TrialTimes& times = session.times;
    const double all_ms = total_ms(times);
    std::string line = fmt::format(
        "| {} | {} | {} | {} | {} | {} ms |", times.session, utc_time(session.started_unix_ms), times.trials,
        times.dropped, duration_text(all_ms / 1000), short_number(all_ms / static_cast<double>(times.trials)));
    for_each_part(times, [&](const char*, double part_ms) {
      line += all_ms > 0 ? fmt::format(" {:.0f} % |", 100 * part_ms / all_ms) : fmt::format(" {} |", kNoValue);
    });
    lines.push_back(std::move(line));
  }
  const std::string text = fmt::format(
      "Configurations that the searches ran on the device (trials but for duplicates and those that failed before){}, "
      "and the shares of their time there: bringing code to the "
      "device, making inputs and references, the launch that is checked, launches before the first sample, evicting "
      "caches, launches that are timed, waiting for the card to be fit, and the rest.\n\n",
      options.kernel.empty() ? "" : ", of all kernels of these sessions");
  return markdown_details("Time of trials", text + markdown_table(head + "\n" + rule, lines));
}

std::string searchers_text(const DeviceSummary& group) {
  std::string list;
  for (const std::string& searcher : group.searchers) {
    list += (list.empty() ? "" : ", ") + searcher;
  }
  return list.empty() ? std::string(kNoValue) : markdown_escape(list);
}

std::string spent_text(const DeviceSummary& group) {
  const std::string spent = group.spent_ms > 0 ? duration_text(static_cast<double>(group.spent_ms) / 1000) : "";
  const std::string running = group.running_sessions > 0 ? "still running" : "";
  return spent.empty() && running.empty()   ? std::string(kNoValue)
         : spent.empty() || running.empty() ? spent + running
                                            : spent + ", " + running;
}

// A line a device and toolkit: what was tuned, on what, when, and what it gave.
std::string overview(const std::vector<DeviceSummary>& groups) {
  std::vector<std::string> lines;
  for (const DeviceSummary& group : groups) {
    const SpeedupSummary speedups = summarize_speedups(group);
    lines.push_back(
        fmt::format("| {} | {} | {} | {} | {} | {} | {} of {} | {} |", markdown_escape(device_text(group)),
                    markdown_escape(built_by_text(group)), utc_time(group.last_unix_ms).substr(0, 10),
                    spent_text(group), searchers_text(group), group.counts.trials, speedups.decided, speedups.problems,
                    speedups.speedup ? fmt::format("**{:.2f}×**", *speedups.speedup) : std::string(kNoValue)));
  }
  return markdown_table(
      "| Device | Built by | Last trial | Time spent | Searcher | Trials | Problems decided | Mean speedup over "
      "defaults |\n"
      "|---|---|---|--:|---|--:|--:|--:|",
      lines);
}

std::string group_section(const Store& store, const DeviceSummary& group,
                          const std::map<ParetoKey, ParetoProblem>& pareto, const ReportOptions& options) {
  std::string out =
      fmt::format("## {}, {}\n\n", markdown_escape(device_text(group)), markdown_escape(built_by_text(group)));
  out += fmt::format("{} to {}: {}{}.\n\n", utc_time(group.first_unix_ms), utc_time(group.last_unix_ms),
                     counts_text(group.counts), status_counts(group));
  if (group.counts.ok == 0 && group.counts.finals == 0) {
    out += "No configuration ran correctly here; the failures below give the reasons.\n\n";
  }
  return out + kernel_section(group) + energy_section(group, pareto) +
         limit_section(group, store.measured_rates(group.device), options) + time_section(group, options) +
         failure_section(group, options.max_reasons);
}

}  // namespace

std::string markdown_report(const Store& store, const ReportOptions& options, const ReportComparison* comparison) {
  const std::vector<DeviceSummary> groups = summarize_trials(store, options);
  std::string out = fmt::format("# {}\n\n", markdown_escape(options.title));
  if (comparison != nullptr) {
    out += markdown_comparison(*comparison);
  }
  if (groups.empty()) {
    const bool narrowed = !options.kernel.empty() || !options.device.empty() || !options.sessions.empty();
    return out + (narrowed ? "The database holds no trials of that kernel, device or session.\n"
                           : "The database holds no trials yet; run `pascaline sweep` to get some.\n");
  }
  out += overview(groups);
  out += markdown_compilers(compare_compilers(groups));
  out += markdown_devices(compare_devices(groups));
  const std::map<ParetoKey, ParetoProblem> pareto =
      pareto_problems(store, options.kernel, [&](const StoredTrial& stored) {
        return is_wanted(options, stored.device) && is_wanted(options, stored.session_id);
      });
  for (const DeviceSummary& group : groups) {
    out += group_section(store, group, pareto, options);
  }
  out +=
      "Times are medians. The interval of a speedup is the widest that the 95 % intervals of both medians allow; the ";
  out += "mean speedup over defaults is the geometric mean over the decided problems of the kernels' current sources. ";
  out += "Trials are configurations that searches tried, duplicates and failures among them; measurements in finals ";
  out += "are counted apart. ";
  out += "Confidence is the probability that the configuration is not slower than the default; ";
  out += fmt::format("{}; ", kProvisionalMeaning);
  out += "\"undecided\" rows have no winner and show the fastest trial of the search.\n";
  return out;
}

}  // namespace pascaline
