#include "report/compiler_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/util/counted.hpp"
#include "report/markdown_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

using Groups = std::vector<const DeviceSummary*>;

bool same_but_for_compiler(const DeviceSummary& a, const DeviceSummary& b) {
  return a.device.kind != "foreign" && a.device.kind == b.device.kind && a.device.name == b.device.name &&
         a.device.compute_capability == b.device.compute_capability && a.device.sm_count == b.device.sm_count &&
         a.toolkit.target == b.toolkit.target && a.toolkit.driver_version == b.toolkit.driver_version;
}

// By kernel and source, then by problem: the times of each group.
std::map<std::string, std::vector<std::optional<TimeSummary>>> times_by_compiler(const Groups& groups) {
  std::map<std::string, std::vector<std::optional<TimeSummary>>> times;
  std::map<std::string, std::string> sources;  // the newest of each kernel
  std::map<std::string, std::int64_t> newest;
  for (const DeviceSummary* group : groups) {
    for (const auto& [kernel, source] : group->current_sources) {
      if (!newest.contains(kernel) || group->last_unix_ms > newest[kernel]) {
        newest[kernel] = group->last_unix_ms;
        sources[kernel] = source;
      }
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const auto& [kernel, problems] : groups[i]->kernels) {
      if (sources[kernel.first] != kernel.second) {
        continue;
      }
      for (const auto& [problem, summary] : problems) {
        auto& row = times[problem];
        row.resize(groups.size());
        row[i] = summary.best && summary.best->median_us > 0 ? summary.best : std::nullopt;
      }
    }
  }
  return times;
}

CompilerComparison comparison_of(const Groups& groups) {
  CompilerComparison out;
  out.device = groups.front()->device;
  for (const DeviceSummary* group : groups) {
    out.compilers.push_back(group->toolkit.compiler + " " + group->toolkit.version);
  }
  out.fastest_of.resize(groups.size());
  std::vector<double> logs(groups.size());
  std::vector<std::size_t> counts(groups.size());
  for (auto& [problem, best] : times_by_compiler(groups)) {
    CompilerRow row{problem, std::move(best)};
    double slowest_us = 0;
    std::size_t timed = 0;
    for (std::size_t i = 0; i < row.best.size(); ++i) {
      if (!row.best[i]) {
        continue;
      }
      ++timed;
      slowest_us = std::max(slowest_us, row.best[i]->median_us);
      if (!row.best[row.fastest] || row.best[i]->median_us < row.best[row.fastest]->median_us) {
        row.fastest = i;
      }
    }
    if (timed < 2) {
      continue;
    }
    const double fastest_us = row.best[row.fastest]->median_us;
    row.speedup = slowest_us / fastest_us;
    ++out.fastest_of[row.fastest];
    for (std::size_t i = 0; i < row.best.size(); ++i) {
      if (row.best[i]) {
        logs[i] += std::log(row.best[i]->median_us / fastest_us);
        ++counts[i];
      }
    }
    out.rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out.gain.push_back(counts[i] > 0 ? std::exp(logs[i] / static_cast<double>(counts[i])) : 1);
  }
  return out;
}

std::string compiler_table(const CompilerComparison& comparison) {
  std::string head = "| Problem |";
  std::string line = "|---|";
  for (const std::string& compiler : comparison.compilers) {
    head += fmt::format(" {}, µs |", markdown_escape(compiler));
    line += "--:|";
  }
  std::vector<std::string> rows;
  for (const CompilerRow& row : comparison.rows) {
    std::string text = fmt::format("| {} |", markdown_escape(row.problem));
    for (const auto& time : row.best) {
      text += fmt::format(" {} |", median_cell(time));
    }
    rows.push_back(text +
                   fmt::format(" {} | {:.2f}× |", markdown_escape(comparison.compilers[row.fastest]), row.speedup));
  }
  return markdown_table(head + " Fastest | Over the slowest |\n" + line + "---|--:|", rows);
}

}  // namespace

std::vector<CompilerComparison> compare_compilers(const std::vector<DeviceSummary>& groups) {
  std::vector<CompilerComparison> out;
  std::vector<bool> taken(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Groups alike;
    for (std::size_t j = i; j < groups.size(); ++j) {
      if (!taken[j] && same_but_for_compiler(groups[i], groups[j])) {
        taken[j] = true;
        alike.push_back(&groups[j]);
      }
    }
    if (alike.size() < 2) {
      continue;
    }
    CompilerComparison comparison = comparison_of(alike);
    if (!comparison.rows.empty()) {
      out.push_back(std::move(comparison));
    }
  }
  return out;
}

std::string markdown_compilers(const std::vector<CompilerComparison>& comparisons) {
  std::string out;
  for (const CompilerComparison& comparison : comparisons) {
    out += fmt::format("## Compilers on {}\n\n", markdown_escape(comparison.device.name));
    for (std::size_t i = 0; i < comparison.compilers.size(); ++i) {
      out +=
          fmt::format("- {}: the fastest of {} of {}; choosing for each problem is {:.2f}× as fast as this one alone\n",
                      markdown_escape(comparison.compilers[i]), comparison.fastest_of[i],
                      counted(comparison.rows.size(), "problem"), comparison.gain[i]);
    }
    out += "\nThe best configuration of each compiler; the means are geometric, and small differences may be luck.\n\n";
    out += compiler_table(comparison);
  }
  return out;
}

}  // namespace pascaline
