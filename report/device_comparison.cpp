#include "report/device_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/util/counted.hpp"
#include "report/document_parts.hpp"
#include "report/markdown_parts.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

// What one toolkit gave on one device: of each kernel the present source, and the best of its problems by their text.
struct ToolkitBests {
  DeviceRow device;
  std::int64_t last_unix_ms = 0;
  std::map<std::string, std::string> sources;
  std::map<std::string, std::map<std::string, DeviceBest>> kernels;
};

bool is_usable(const std::optional<TimeSummary>& time) { return time && time->median_us > 0; }

ToolkitBests bests_of(const DeviceSummary& summary) {
  ToolkitBests bests{summary.device, summary.last_unix_ms, summary.current_sources, {}};
  for (const auto& [kernel, problems] : summary.kernels) {
    if (summary.current_sources.at(kernel.first) != kernel.second) {
      continue;
    }
    for (const auto& [text, problem] : problems) {
      if (is_usable(problem.best)) {
        bests.kernels[kernel.first].emplace(text, DeviceBest{*problem.best, problem.baseline, problem.config});
      }
    }
  }
  return bests;
}

ToolkitBests bests_of(const ReportContext& context) {
  ToolkitBests bests{context.device, context.last_unix_ms, {}, {}};
  for (const ReportKernel& kernel : context.kernels) {
    if (!kernel.current) {
      continue;
    }
    bests.sources[kernel.name] = kernel.source_hash;
    for (const ReportProblem& problem : kernel.problems) {
      if (is_usable(problem.best)) {
        bests.kernels[kernel.name].emplace(problem.problem.text(), DeviceBest{*problem.best, problem.baseline,
                                                                              problem.best_config.value_or(Config{})});
      }
    }
  }
  return bests;
}

// A source that has changed since has other configurations and other times.
std::map<std::string, std::string> newest_sources(const std::vector<ToolkitBests>& all, const std::string& kind) {
  std::map<std::string, std::pair<std::int64_t, std::string>> newest;
  for (const ToolkitBests& bests : all) {
    if (bests.device.kind != kind) {
      continue;
    }
    for (const auto& [kernel, source] : bests.sources) {
      const auto known = newest.find(kernel);
      if (known == newest.end() || known->second.first < bests.last_unix_ms) {
        newest[kernel] = {bests.last_unix_ms, source};
      }
    }
  }
  std::map<std::string, std::string> sources;
  for (const auto& [kernel, source] : newest) {
    sources[kernel] = source.second;
  }
  return sources;
}

std::string name_among(const DeviceRow& device, const std::vector<DeviceRow>& devices) {
  const auto alike = std::ranges::count_if(devices, [&](const DeviceRow& other) { return other.name == device.name; });
  return alike < 2 ? device.name
                   : fmt::format("{}, {}, {}", device.name, device.compute_capability,
                                 counted(device.sm_count, device.kind == "host" ? "processor" : "multiprocessor"));
}

// By kernel and problem.
using Problems = std::map<std::pair<std::string, std::string>, DeviceProblem>;

void add_bests(const ToolkitBests& bests, const std::map<std::string, std::string>& sources, std::size_t device,
               std::size_t devices, Problems& problems) {
  for (const auto& [kernel, of_kernel] : bests.kernels) {
    if (bests.sources.at(kernel) != sources.at(kernel)) {
      continue;
    }
    for (const auto& [text, best] : of_kernel) {
      DeviceProblem& row = problems[{kernel, text}];
      row.kernel = kernel;
      row.problem = text;
      row.devices.resize(devices);
      std::optional<DeviceBest>& known = row.devices[device];
      if (!known || best.best.median_us < known->best.median_us) {
        known = best;
      }
    }
  }
}

bool is_one_config(const DeviceProblem& row) {
  const DeviceBest* first = nullptr;
  for (const std::optional<DeviceBest>& best : row.devices) {
    if (best && first != nullptr && best->config != first->config) {
      return false;
    }
    first = best && first == nullptr ? &*best : first;
  }
  return true;
}

DeviceComparison comparison_of_kind(const std::vector<ToolkitBests>& all, const std::string& kind) {
  DeviceComparison comparison;
  std::vector<std::pair<const ToolkitBests*, std::size_t>> of_kind;
  for (const ToolkitBests& bests : all) {
    if (bests.device.kind != kind) {
      continue;
    }
    const auto known = std::ranges::find_if(
        comparison.devices, [&](const DeviceRow& device) { return same_identity(device, bests.device); });
    of_kind.emplace_back(&bests, static_cast<std::size_t>(known - comparison.devices.begin()));
    if (known == comparison.devices.end()) {
      comparison.devices.push_back(bests.device);
    }
  }
  const std::map<std::string, std::string> sources = newest_sources(all, kind);
  Problems problems;
  for (const auto& [bests, device] : of_kind) {
    add_bests(*bests, sources, device, comparison.devices.size(), problems);
  }
  for (auto& [key, row] : problems) {
    if (std::ranges::count_if(row.devices, [](const auto& best) { return best.has_value(); }) > 1) {
      row.same_config = is_one_config(row);
      comparison.same_config += row.same_config ? 1 : 0;
      comparison.rows.push_back(std::move(row));
    }
  }
  for (const DeviceRow& device : comparison.devices) {
    comparison.names.push_back(name_among(device, comparison.devices));
  }
  return comparison;
}

// Those that have none of the problems in common with another would be empty columns.
void leave_out_lone_devices(DeviceComparison& comparison) {
  for (std::size_t i = comparison.devices.size(); i-- > 0;) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    if (std::ranges::none_of(comparison.rows, [&](const DeviceProblem& row) { return row.devices[i].has_value(); })) {
      comparison.devices.erase(comparison.devices.begin() + at);
      comparison.names.erase(comparison.names.begin() + at);
      for (DeviceProblem& row : comparison.rows) {
        row.devices.erase(row.devices.begin() + at);
      }
    }
  }
}

template <typename Source>
std::vector<DeviceComparison> device_comparisons(const std::vector<Source>& sources) {
  std::vector<ToolkitBests> all;
  for (const Source& source : sources) {
    all.push_back(bests_of(source));
  }
  std::vector<DeviceComparison> out;
  for (const char* const kind : {"cuda", "host"}) {
    DeviceComparison comparison = comparison_of_kind(all, kind);
    if (!comparison.rows.empty()) {
      leave_out_lone_devices(comparison);
      out.push_back(std::move(comparison));
    }
  }
  return out;
}

std::string device_cell(const std::optional<DeviceBest>& best) {
  if (!best) {
    return "–";
  }
  const std::optional<ReportSpeedup> speedup = speedup_between(best->baseline, best->best);
  return median_cell(best->best) + (speedup ? fmt::format(" ({:.2f}×)", speedup->value) : "");
}

std::string device_table(const DeviceComparison& comparison) {
  std::string head = "| Problem |";
  std::string line = "|---|";
  for (const std::string& name : comparison.names) {
    head += fmt::format(" {}, µs |", markdown_escape(name));
    line += "--:|";
  }
  std::vector<std::string> rows;
  for (const DeviceProblem& row : comparison.rows) {
    std::string text = fmt::format("| {} |", markdown_escape(row.problem));
    for (const std::optional<DeviceBest>& best : row.devices) {
      text += fmt::format(" {} |", device_cell(best));
    }
    rows.push_back(text + (row.same_config ? " yes |" : " no |"));
  }
  return markdown_table(head + " Same configuration |\n" + line + "---|", rows);
}

struct DeviceShare {
  std::string name;
  std::string compute_capability;
  std::int64_t sm_count = 0;
  std::int64_t problems = 0;
};

const Fields<DeviceShare>& fields_of(const DeviceShare*) {
  static const auto fields =
      Fields<DeviceShare>("compared_device", "A device of a comparison.")
          .add("name", &DeviceShare::name, "Its name; where two are alike, with what tells them apart.")
          .add("compute_capability", &DeviceShare::compute_capability, "`6.1`; empty on the emulated device.")
          .add("sm_count", &DeviceShare::sm_count, "Number of multiprocessors.")
          .add("problems", &DeviceShare::problems, "Rows that have a time of it.");
  return fields;
}

std::vector<DeviceShare> device_shares_of(const DeviceComparison& comparison) {
  std::vector<DeviceShare> shares;
  for (std::size_t i = 0; i < comparison.devices.size(); ++i) {
    const DeviceRow& device = comparison.devices[i];
    shares.push_back(
        {comparison.names[i], device.compute_capability, device.sm_count,
         std::ranges::count_if(comparison.rows, [&](const DeviceProblem& row) { return row.devices[i].has_value(); })});
  }
  return shares;
}

}  // namespace

std::vector<DeviceComparison> compare_devices(const std::vector<DeviceSummary>& groups) {
  return device_comparisons(groups);
}

std::vector<DeviceComparison> compare_devices(const std::vector<ReportContext>& contexts) {
  return device_comparisons(contexts);
}

const Fields<DeviceBest>& fields_of(const DeviceBest*) {
  static const auto fields = Fields<DeviceBest>("device_best", "The best of a problem on one device.")
                                 .add("best", &DeviceBest::best, "Its time.")
                                 .add("default", &DeviceBest::baseline, "Time of that device's default.")
                                 .add(
                                     "speedup",
                                     [](const DeviceBest& of) {
                                       const std::optional<ReportSpeedup> speedup =
                                           speedup_between(of.baseline, of.best);
                                       return speedup ? std::optional(speedup->value) : std::nullopt;
                                     },
                                     "Over that device's default.")
                                 .add("config", &DeviceBest::config, "Its configuration.");
  return fields;
}

const Fields<DeviceProblem>& fields_of(const DeviceProblem*) {
  static const auto fields =
      Fields<DeviceProblem>("device_row", "A problem that at least two devices have a usable configuration for.")
          .add("kernel", &DeviceProblem::kernel, "Name of the kernel.")
          .add("problem", &DeviceProblem::problem, "The problem as text.")
          .add("devices", &DeviceProblem::devices,
               "In the devices' order; null: none. Of several toolkits the one with the lowest best time.")
          .add("same_config", &DeviceProblem::same_config, "One configuration is the best on all that have one.");
  return fields;
}

const Fields<DeviceComparison>& fields_of(const DeviceComparison*) {
  static const auto fields =
      Fields<DeviceComparison>("device_comparison", "The same problems on devices of one kind.")
          .add(
              "kind", [](const DeviceComparison& of) { return of.devices.front().kind; }, "`cuda` or `host`.")
          .add("devices", device_shares_of, "Two or more.")
          .add("same_config", &DeviceComparison::same_config, "Rows where one configuration is the best on all.")
          .add("rows", &DeviceComparison::rows, "Problems of the newest source of each kernel.");
  return fields;
}

std::string markdown_devices(const std::vector<DeviceComparison>& comparisons) {
  std::string out;
  for (const DeviceComparison& comparison : comparisons) {
    out += fmt::format(
        "## By device\n\nThe same problems on {}: the best time of each, and its speedup over that device's "
        "default. One configuration is the best on every device for {} of {}.\n\n",
        counted(comparison.devices.size(), comparison.devices.front().kind == "host" ? "emulated device" : "device"),
        comparison.same_config, counted(comparison.rows.size(), "problem"));
    out += device_table(comparison);
  }
  return out;
}

}  // namespace pascaline
