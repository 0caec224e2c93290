// Re-times the winners that several databases hold for the same problems side by side, in interleaved rounds, and
// prints how far apart they are: how repeatable a sweep is.
//
//   compare_winners --db night1.db --db night2.db --db night3.db [--kernel matmul] [--target sm_61] [--device cuda:0]
//
// With one database it times that one's winners again.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/options.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/run_finals.hpp"
#include "tuner/measure/trial_runner.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace {

using namespace pascaline;

struct Options {
  KernelOptions kernel;
  std::string device = "cuda:0";
  std::string target;
  std::vector<std::string> databases;
  int rounds = 40;
  bool json = false;
};

/// What runs where nothing was tuned.
Trial default_trial(const Space& space, const Problem& problem, const DeviceLimits& limits) {
  Trial trial;
  trial.problem = problem;
  trial.config = BoundSpace(space, problem, limits).default_config();
  return trial;
}

/// Winners of the problems asked for, in that order, or of all, one of each database that has any; the default of a
/// problem that was asked for and has none.
std::vector<std::pair<std::string, std::vector<Trial>>> winners_by_problem(const Options& options, const Space& space,
                                                                           const DeviceInfo& device,
                                                                           const DeviceLimits& limits) {
  std::map<std::string, std::vector<Trial>> winners;
  const DeviceRow row = device_row(device);
  for (const std::string& file : options.databases) {
    for (const Winner& winner : Store(file, OpenMode::read_only).winners(options.kernel.kernel, &row)) {
      winners[winner.trial.problem.text()].push_back(winner.trial);
    }
  }
  if (options.kernel.problems.empty()) {
    return {winners.begin(), winners.end()};
  }
  std::vector<std::pair<std::string, std::vector<Trial>>> asked;
  for (const Problem& problem : options.kernel.load_problems(space)) {
    const auto found = winners.find(problem.text());
    if (found == winners.end()) {
      asked.emplace_back(problem.text(), std::vector<Trial>{default_trial(space, problem, limits)});
    } else {
      asked.emplace_back(*found);
    }
  }
  return asked;
}

/// What a problem's winners are timed with.
struct Bench {
  const Options& options;
  const Space& space;
  DeviceMonitor& monitor;
  const CompileTarget& target;
  const Toolchain& toolchain;
  const KernelSource& source;

  [[nodiscard]] Binary compile(const BoundSpace& bound, const Config& config) const {
    CompileResult result = toolchain.compile(compile_request(bound, config, source, target.kind, target.architecture));
    if (!result.ok) {
      throw Error(result.reason);
    }
    return std::move(result.binary);
  }

  /// Median microseconds of each database's winner; equal ones are timed once. `names` says which are equal.
  [[nodiscard]] std::vector<double> times(const std::vector<Trial>& trials, std::string& names) const {
    const BoundSpace bound(space, trials.front().problem, target.limits);
    std::vector<std::pair<Config, Binary>> finalists;
    std::vector<std::size_t> chosen;  // each winner's place among the finalists
    for (const Trial& trial : trials) {
      const auto same = std::find_if(finalists.begin(), finalists.end(),
                                     [&](const auto& finalist) { return finalist.first == trial.config; });
      chosen.push_back(static_cast<std::size_t>(same - finalists.begin()));
      names += static_cast<char>('A' + chosen.back());
      if (same == finalists.end()) {
        finalists.emplace_back(trial.config, compile(bound, trial.config));
      }
    }
    FinalsOptions finals;
    finals.rounds = finals.min_rounds = options.rounds;
    finals.energy_window_ms = 0;
    TrialRunner runner(monitor, bound, std::nullopt, {}, 1);
    const auto result = run_finals(runner, finalists, finals);
    if (!result || result->gave_up) {
      throw Error(trials.front().problem.text() + " could not be timed");
    }
    std::vector<double> times;
    for (const std::size_t place : chosen) {
      times.push_back(result->trials.at(place).time->median_us);
    }
    return times;
  }
};

int run(const Options& options) {
  const Space space = options.kernel.load_space();
  const auto device = open_device(options.device);
  const CompileTarget target = compile_target(device->info(), options.target);
  const Toolchain toolchain = Toolchain::find(target.architecture);
  const KernelSource source = KernelSource::load(kernel_file(options.kernel.kernels(), space.kernel, ".cu"), space);
  DeviceMonitor monitor(*device, {});
  monitor.preheat();
  const Bench bench{options, space, monitor, target, toolchain, source};
  nlohmann::json document = nlohmann::json::array();
  double worst = 0;
  for (const auto& [problem, trials] : winners_by_problem(options, space, device->info(), target.limits)) {
    std::string names;
    const std::vector<double> times = bench.times(trials, names);
    const auto [fastest, slowest] = std::minmax_element(times.begin(), times.end());
    worst = std::max(worst, *slowest / *fastest - 1);
    document.push_back({{"problem", problem}, {"time_us", times}});
    if (!options.json) {
      fmt::print("{}: {}: {:.2f} us: {:.2f} % apart\n", problem, names, fmt::join(times, " "),
                 100 * (*slowest / *fastest - 1));
    }
  }
  if (options.json) {
    fmt::print("{}\n", document.dump(1));
  } else {
    fmt::print("worst: {:.2f} %\n", 100 * worst);
  }
  return 0;
}

int command(int argc, char** argv) {
  CLI::App app{"Re-times winners of several databases side by side"};
  Options options;
  options.kernel.add_kernel_to(app);
  app.add_option("--device", options.device);
  app.add_option("--target", options.target);
  app.add_option("--db", options.databases)->required();
  app.add_option("--problem", options.kernel.problems, "Only these shapes (repeatable)");
  app.add_option("--rounds", options.rounds, "Rounds of three launches");
  app.add_flag("--json", options.json, "Print a list of problems and microseconds, one of each database, as JSON");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_winners: %s\n", error.what());
    return 1;
  }
}
