// The straightforward tuner that most people write, as a yardstick: one process that compiles a configuration, verifies
// and times it, then turns to the next. It measures with the code and the options of `pascaline sweep`, takes the
// configurations in the order of the same seed, and keeps nothing.
//
//   one_process_tuner --problem M=512,N=2048,K=2048,STORAGE=float32 --trials 400 --seed 7 [--device cuda:0]
//                     [--target sm_61] [--kernel matmul] [--kernels FOLDER] [--spaces FOLDER]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_runner.hpp"
#include "tuner/monitor/device_monitor.hpp"
#include "tuner/search/searcher.hpp"

namespace {

using namespace pascaline;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
  cli::KernelOptions kernel;
  std::string device = "cuda:0";
  std::string target;
  int trials = 400;
  std::uint64_t seed = 1;
};

Compiled compile(const Toolchain& toolchain, const CompileRequest& request) {
  Compiled compiled;
  compiled.result = toolchain.compile(request);
  compiled.status = compiled.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
  return compiled;
}

int run(const Options& options) {
  const Space space = options.kernel.load_space();
  const Problem problem = options.kernel.load_problems(space).front();
  const auto start = Clock::now();
  const auto device = open_device(options.device);
  const TargetPlan target = plan_target(device->info(), options.target);
  const Toolchain toolchain = Toolchain::find(target.architecture);
  const KernelSource source = KernelSource::load(kernel_file(options.kernel.kernels(), space.kernel, ".cu"));
  const BoundSpace bound(space, problem, target.limits);
  const auto request = [&](const Config& config) {
    return compile_request(bound, config, source, target.kind, target.architecture);
  };
  const CompileRequest naive = reference_request_of(space, request(untuned_config(bound)));
  DeviceMonitor monitor(*device, {.passive = true});
  TrialRunner runner(monitor, bound, compile(toolchain, naive).result.binary, {}, options.seed);

  std::vector<Config> configs{bound.default_config()};
  const SearchDomain domain(bound);
  SearchOptions search;
  search.seed = options.seed;
  const auto searcher = make_searcher("random", domain, search);
  for (const Point& point : searcher->propose(static_cast<std::size_t>(options.trials))) {
    const Config config = space.config_at(point);
    if (config != configs.front() && static_cast<int>(configs.size()) < options.trials) {
      configs.push_back(config);
    }
  }
  double compile_s = 0;
  double best_us = 0;
  int usable = 0;
  for (const Config& config : configs) {
    const auto compile_start = Clock::now();
    const Compiled compiled = compile(toolchain, request(config));
    compile_s += seconds_since(compile_start);
    const Trial trial = runner.run(config, compiled, best_us);
    if (trial.time) {
      ++usable;
      best_us = best_us > 0 ? std::min(best_us, trial.time->median_us) : trial.time->median_us;
    }
  }
  const double wall_s = seconds_since(start);
  fmt::print(
      "{{\"variants\": {}, \"usable\": {}, \"wall_s\": {:.2f}, \"compiling_s\": {:.2f}, \"measuring_s\": {:.2f}, "
      "\"variants_per_hour\": {:.0f}, \"measuring_share\": {:.4f}, \"best_us\": {:.3f}}}\n",
      configs.size(), usable, wall_s, compile_s, wall_s - compile_s,
      3600.0 * static_cast<double>(configs.size()) / wall_s, 1 - compile_s / wall_s, best_us);
  return 0;
}

int command(int argc, char** argv) {
  CLI::App app{"Compiles, measures, and turns to the next, in one process"};
  Options options;
  options.kernel.add_kernel_to(app);
  options.kernel.add_problems_to(app);
  app.add_option("--device", options.device);
  app.add_option("--target", options.target);
  app.add_option("--trials", options.trials);
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "one_process_tuner: %s\n", error.what());
    return 1;
  }
}
