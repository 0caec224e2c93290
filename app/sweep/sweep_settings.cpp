#include "app/sweep/sweep_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "app/options.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/duration.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/device.hpp"
#include "tuner/finals/objective.hpp"
#include "tuner/portfolio/portfolio_file.hpp"

namespace pascaline {
namespace {

std::vector<std::string> devices_of(const SweepCommandOptions& options) {
  if (options.devices != "all") {
    std::vector<std::string> ids;
    for (std::size_t start = 0; start < options.devices.size();) {
      const std::size_t end = std::min(options.devices.find(',', start), options.devices.size());
      ids.push_back(options.devices.substr(start, end - start));
      start = end + 1;
    }
    return ids.empty() ? std::vector<std::string>{options.device.chosen_device()} : ids;
  }
  std::vector<std::string> gpus;
  for (const DeviceInfo& info : list_devices()) {
    if (info.kind == DeviceKind::cuda) {
      gpus.push_back(info.id);
    }
  }
  if (gpus.empty()) {
    throw Error("--devices all: there is no GPU here; `pascaline devices` says why; `--device emulator` needs none");
  }
  return gpus;
}

void set_limits(const SweepCommandOptions& options, SweepOptions& sweep) {
  if (!options.budget.empty()) {
    sweep.budget_s = parse_duration_s(options.budget);
  }
  if (options.until_unix_s) {
    sweep.until = std::chrono::system_clock::time_point(std::chrono::seconds(*options.until_unix_s));
  } else if (!options.until.empty()) {
    sweep.until = parse_time_of_day(options.until, std::chrono::system_clock::now());
  }
  if ((sweep.budget_s || sweep.until || sweep.search.searcher == kNoSearcher) && !options.trials_given) {
    sweep.trials = kUnlimitedTrials;
  }
}

void set_governor(const std::string& max_temperature, const std::vector<std::string>& tolerated,
                  GovernorOptions& governor) {
  governor.clock_tolerance = governor.canary_tolerance;  // --drift is of both
  if (!max_temperature.empty()) {
    governor.limit_c = std::stod(max_temperature);
  }
  for (const std::string& what : tolerated) {
    governor.tolerated_throttle |= what == "power" ? kPowerThrottleBits : kThermalThrottleBits;
  }
}

// After the governor: work is sustained once it is as warm as the preheating waits for, and no warmer than allowed.
void set_objective(const SweepCommandOptions& options, SweepOptions& sweep) {
  ObjectiveOptions& objective = sweep.finals.objective;
  const FinalsObjective& by = objective_of(objective_from(options.objective).value_or(Objective::time));
  objective = by.defaults();
  objective.sustain_first_s = sweep.governor.preheat_limit_s;
  objective.sustain_again_s = std::min(objective.sustain_again_s, objective.sustain_first_s);
  objective.max_temperature_c = sweep.governor.limit_c;
  if (by.wants_low_energy() && !options.finalists_given) {
    sweep.finalists = kFinalistsByEnergy;
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> paths_of(const SweepCommandOptions& options) {
  std::vector<std::pair<std::string, std::string>> paths;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) {
      paths.emplace_back(option, std::filesystem::absolute(value).lexically_normal().string());
    }
  };
  add("--kernels", options.kernel.kernels_folder);
  add("--spaces", options.kernel.spaces_folder);
  if (!is_compiler_wish(options.device.nvrtc)) {
    add("--nvrtc", options.device.nvrtc);
  }
  add("--cache", options.device.cache);
  if (options.portfolio == kNoPortfolio) {
    paths.emplace_back("--portfolio", options.portfolio);
  } else {
    add("--portfolio", options.portfolio);
  }
  add("--log", options.log);
  add("--sensors", options.sweep.files.sensors.string());
  const GivenFiles given = options.kernel.given();
  for (const auto& [option, files] : {std::pair("--input", given.inputs), std::pair("--answer", given.answers)}) {
    for (const auto& [argument, file] : files) {
      paths.emplace_back(option, argument + "=" + file.string());
    }
  }
  return paths;
}

void set_sweep(const SweepCommandOptions& options, SweepOptions& sweep) {
  sweep.devices = devices_of(options);
  sweep.search.seed = static_cast<std::uint64_t>(options.seed);
  sweep.compile.target = options.device.target;
  sweep.compile.nvrtc = options.device.nvrtc;
  sweep.files.kernels = options.kernel.kernels();
  sweep.files.spaces = options.kernel.spaces();
  sweep.files.cache = options.device.cache_path();
  sweep.measure.cold_cache = !options.warm_cache;
  sweep.record.command_line = command_line();
  sweep.record.paths = paths_of(options);
  sweep.record.trials_given = options.trials_given;
  sweep.search.deepen = options.time_left == kDeepen;
  set_limits(options, sweep);
  set_governor(options.max_temperature, options.tolerated, sweep.governor);
  set_objective(options, sweep);
  sweep.compile.memory_bytes = std::stoull(options.compile_memory) << 20U;
}

std::vector<PlannedKernel> planned_kernels(const SweepCommandOptions& options, const std::vector<Space>& spaces) {
  std::vector<PlannedKernel> kernels;
  for (const Space& space : spaces) {
    const auto folder = options.kernel.kernels();
    const KernelSource source = is_site(space.kernel)
                                    ? site_source(space.kernel, folder)
                                    : KernelSource::load(kernel_file(folder, space.kernel, ".cu"), space);
    kernels.push_back({space.kernel, source.hash, space.hash});
  }
  return kernels;
}

}  // namespace pascaline
