#include "report/compiler_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/util/counted.hpp"
#include "report/document_parts.hpp"
#include "report/markdown_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

/// What one compiler gave: of each kernel the present source, and the best times of its problems by their text.
struct CompilerGroup {
  DeviceRow device;
  ToolkitRow toolkit;
  std::int64_t last_unix_ms = 0;
  std::map<std::string, std::string> sources;
  std::map<std::string, std::map<std::string, std::optional<TimeSummary>>> kernels;
};
using Groups = std::vector<const CompilerGroup*>;

CompilerGroup group_of(const DeviceSummary& summary) {
  CompilerGroup group{summary.device, summary.toolkit, summary.last_unix_ms, summary.current_sources, {}};
  for (const auto& [kernel, problems] : summary.kernels) {
    if (summary.current_sources.at(kernel.first) == kernel.second) {
      for (const auto& [text, problem] : problems) {
        group.kernels[kernel.first][text] = problem.best;
      }
    }
  }
  return group;
}

CompilerGroup group_of(const ReportContext& context) {
  CompilerGroup group{context.device, context.toolkit, context.last_unix_ms, {}, {}};
  for (const ReportKernel& kernel : context.kernels) {
    if (kernel.current) {
      group.sources[kernel.name] = kernel.source_hash;
      for (const ReportProblem& problem : kernel.problems) {
        group.kernels[kernel.name][problem.problem.text()] = problem.best;
      }
    }
  }
  return group;
}

bool same_but_for_compiler(const CompilerGroup& a, const CompilerGroup& b) {
  return a.device.kind != "foreign" && a.device.kind == b.device.kind && a.device.name == b.device.name &&
         a.device.compute_capability == b.device.compute_capability && a.device.sm_count == b.device.sm_count &&
         a.toolkit.target == b.toolkit.target && a.toolkit.driver_version == b.toolkit.driver_version;
}

// By problem, of the newest source of each kernel: the times of each group.
std::map<std::string, std::vector<std::optional<TimeSummary>>> times_by_compiler(const Groups& groups) {
  std::map<std::string, std::vector<std::optional<TimeSummary>>> times;
  std::map<std::string, std::string> sources;  // the newest of each kernel
  std::map<std::string, std::int64_t> newest;
  for (const CompilerGroup* group : groups) {
    for (const auto& [kernel, source] : group->sources) {
      if (!newest.contains(kernel) || group->last_unix_ms > newest[kernel]) {
        newest[kernel] = group->last_unix_ms;
        sources[kernel] = source;
      }
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const auto& [kernel, problems] : groups[i]->kernels) {
      if (sources[kernel] != groups[i]->sources.at(kernel)) {
        continue;
      }
      for (const auto& [problem, best] : problems) {
        auto& row = times[problem];
        row.resize(groups.size());
        row[i] = best && best->median_us > 0 ? best : std::nullopt;
      }
    }
  }
  return times;
}

CompilerComparison comparison_of(const Groups& groups) {
  CompilerComparison out;
  out.device = groups.front()->device;
  out.target = groups.front()->toolkit.target;
  out.driver_version = groups.front()->toolkit.driver_version;
  for (const CompilerGroup* group : groups) {
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

template <typename Source>
std::vector<CompilerComparison> comparisons_of(const std::vector<Source>& sources) {
  std::vector<CompilerGroup> groups;
  for (const Source& source : sources) {
    groups.push_back(group_of(source));
  }
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

struct CompilerShare {
  std::string name;
  std::size_t fastest_of = 0;
  double gain = 0;
};

const Fields<CompilerShare>& fields_of(const CompilerShare*) {
  static const auto fields =
      Fields<CompilerShare>("compiler", "A compiler of a comparison.")
          .add("name", &CompilerShare::name, "`nvrtc 12.9`.")
          .add("fastest_of", &CompilerShare::fastest_of, "Number of rows of which it is the fastest.")
          .add(
              "gain", &CompilerShare::gain,
              "Gain of choosing for each problem over this compiler alone: geometric mean, over the rows that have its "
              "time, of that time / the fastest.");
  return fields;
}

std::vector<CompilerShare> compiler_shares_of(const CompilerComparison& comparison) {
  std::vector<CompilerShare> shares;
  for (std::size_t i = 0; i < comparison.compilers.size(); ++i) {
    shares.push_back({comparison.compilers[i], comparison.fastest_of[i], comparison.gain[i]});
  }
  return shares;
}

}  // namespace

std::vector<CompilerComparison> compare_compilers(const std::vector<DeviceSummary>& groups) {
  return comparisons_of(groups);
}

std::vector<CompilerComparison> compare_compilers(const std::vector<ReportContext>& contexts) {
  return comparisons_of(contexts);
}

const Fields<CompilerRow>& fields_of(const CompilerRow*) {
  static const auto fields =
      Fields<CompilerRow>("compiler_row", "A problem that at least two compilers have a usable configuration for.")
          .add("problem", &CompilerRow::problem, "The problem as text.")
          .add("best", &CompilerRow::best, "Best time of each compiler, in their order; null: none.")
          .add("fastest", &CompilerRow::fastest, "Index of the compiler with the lowest median.")
          .add("speedup", &CompilerRow::speedup, "Slowest of these times / the fastest.");
  return fields;
}

const Fields<CompilerComparison>& fields_of(const CompilerComparison*) {
  static const auto fields =
      Fields<CompilerComparison>("compiler_comparison",
                                 "Compilers that built the same sources; small differences may be luck.")
          .add(
              "device", [](const CompilerComparison& of) { return of.device.name; }, "Name of the device.")
          .add("target", &CompilerComparison::target, "`sm_61`, `compute_61` (PTX) or `host`.")
          .add("driver_version", &CompilerComparison::driver_version, "CUDA version of the driver.")
          .add("compilers", compiler_shares_of, "Two or more.")
          .add("rows", &CompilerComparison::rows, "Problems of the current sources.");
  return fields;
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
