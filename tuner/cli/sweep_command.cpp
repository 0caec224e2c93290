#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/workload.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/cli/progress.hpp"
#include "tuner/cli/resume.hpp"
#include "tuner/searcher.hpp"
#include "tuner/sweep.hpp"

namespace pascaline::cli {
namespace {

struct Options {
  KernelOptions kernel;
  DeviceOptions device;
  SweepOptions sweep;
  std::string workload;
  std::vector<std::string> phases;
  std::vector<std::string> types;
  std::vector<std::string> symbols;
  std::string devices;
  std::string database;
  std::string budget;
  std::string until;
  std::string until_unix;  ///< `until` as it was resolved when the run began
  std::string log;
  std::string compile_memory = "4096";
  std::string max_temperature;
  std::vector<std::string> tolerated;
  bool resume = false;
  bool trials_given = false;
  bool warm_cache = false;
  bool quiet = false;
  bool as_json = false;
};

bool matches(const WorkloadProblem& problem, const Options& options) {
  for (const std::string& text : options.types) {
    for (const auto& [name, value] : split_settings(text)) {
      if (name_of(problem.problem.type(name)) != value) {
        return false;
      }
    }
  }
  for (const std::string& text : options.symbols) {
    for (const auto& [name, value] : split_settings(text)) {
      const auto symbol = std::find_if(problem.symbols.begin(), problem.symbols.end(),
                                       [&key = name](const auto& entry) { return entry.first == key; });
      if (symbol != problem.symbols.end() && std::to_string(symbol->second) != value) {
        return false;
      }
    }
  }
  return true;
}

// A workload's problems, each once: equal shapes of several phases are tuned together.
std::vector<SweepProblem> from_workload(const Space& space, const Options& options) {
  const Workload workload = Workload::load(options.workload);
  std::vector<SweepProblem> problems;
  for (const WorkloadProblem& entry : expand(workload, space, {options.phases, true})) {
    if (!matches(entry, options)) {
      continue;
    }
    const auto known = std::find_if(problems.begin(), problems.end(),
                                    [&](const SweepProblem& problem) { return problem.problem == entry.problem; });
    const std::string label = entry.phase + ": " + entry.names;
    if (known == problems.end()) {
      problems.push_back({entry.problem, entry.count, label});
    } else {
      known->count += entry.count;
      known->label += "; " + label;
    }
  }
  if (problems.empty()) {
    throw Error(fmt::format("{} has no problem of kernel '{}' that fits --phase, --type and --symbol", options.workload,
                            space.kernel));
  }
  return problems;
}

std::vector<SweepProblem> problems_of(const Space& space, const Options& options) {
  if (!options.workload.empty() && !options.kernel.problems.empty()) {
    throw Error("give either --workload or --problem, not both");
  }
  if (!options.workload.empty()) {
    return from_workload(space, options);
  }
  std::vector<SweepProblem> problems;
  for (Problem& problem : options.kernel.load_problems(space)) {
    problems.push_back({std::move(problem), 1, ""});
  }
  return problems;
}

std::vector<std::string> devices_of(const Options& options) {
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
    throw Error("--devices all: there is no GPU here; `pascaline devices` says why, `--device host` does without");
  }
  return gpus;
}

void set_limits(const Options& options, SweepOptions& sweep) {
  if (!options.budget.empty()) {
    sweep.budget_s = parse_duration_s(options.budget);
  }
  if (!options.until_unix.empty()) {
    sweep.until = std::chrono::system_clock::time_point(std::chrono::seconds(std::stoll(options.until_unix)));
  } else if (!options.until.empty()) {
    sweep.until = parse_time_of_day(options.until, std::chrono::system_clock::now());
  }
  if ((sweep.budget_s || sweep.until) && !options.trials_given) {
    sweep.trials = kUnlimitedTrials;
  }
}

// The words to go on with: a time of day means the one it meant when the run began.
std::vector<std::string> words_to_resume(const SweepOptions& sweep) {
  std::vector<std::string> words = own_words();
  if (sweep.until && std::find(words.begin(), words.end(), "--until-unix") == words.end()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(sweep.until->time_since_epoch()).count();
    words.insert(words.end(), {"--until-unix", std::to_string(seconds)});
  }
  return words;
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

int finish(const SweepSummary& summary, const SweepOptions& sweep, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", nlohmann::json{{"session", summary.session},
                                      {"run", summary.run},
                                      {"database", sweep.database.string()},
                                      {"trials", summary.trials},
                                      {"ok", summary.ok},
                                      {"duplicates", summary.duplicates},
                                      {"rejected", summary.rejected},
                                      {"reused", summary.reused},
                                      {"reused_ok", summary.reused_ok},
                                      {"problems_done", summary.problems_done},
                                      {"restarts", summary.restarts},
                                      {"wall_s", summary.wall_s},
                                      {"measuring_s", summary.busy_s},
                                      {"waiting_for_cards_s", summary.waited_s},
                                      {"compiling_s", summary.compile_s},
                                      {"ended_because", summary.ended_because},
                                      {"interrupted", summary.interrupted}}
                           .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  if (!summary.ended_because.empty() && summary.interrupted && !interrupted()) {
    throw Error(fmt::format("{}; what was measured is stored, go on with: pascaline sweep --resume --db {}",
                            summary.ended_because, sweep.database.string()));
  }
  if (summary.interrupted) {
    return kInterrupted;
  }
  return summary.ok + summary.reused_ok > 0 ? kSuccess : kNegative;
}

int sweep(Options options) {
  options.sweep.database = database_path(options.database);
  if (options.resume) {
    resume_run(options.sweep.database);
  }
  catch_interrupts();
  const Space space = options.kernel.load_space();
  const std::vector<SweepProblem> problems = problems_of(space, options);
  SweepOptions& sweep = options.sweep;
  sweep.devices = devices_of(options);
  sweep.target = options.device.target;
  sweep.nvrtc = options.device.nvrtc;
  sweep.kernels = options.kernel.kernels();
  sweep.cache = options.device.cache_path();
  sweep.measure.cold_cache = !options.warm_cache;
  sweep.command_line = command_line();
  set_limits(options, sweep);
  set_governor(options.max_temperature, options.tolerated, sweep.governor);
  sweep.compile_memory_bytes = std::stoull(options.compile_memory) << 20U;
  sweep.arguments = words_to_resume(sweep);
  LiveViewOptions view;
  view.quiet = options.quiet || options.as_json;
  view.terminal = ::isatty(STDOUT_FILENO) != 0;
  if (!options.log.empty()) {
    view.log = options.log;
  }
  Progress progress(std::move(view));
  const SweepSummary summary = run_sweep(space, problems, sweep, progress.events(), interrupted());
  progress.summary(summary, sweep);
  return finish(summary, sweep, options.as_json);
}

void add_searching_options(CLI::App& command, Options& options) {
  SweepOptions& sweep = options.sweep;
  command.add_option("--searcher", sweep.searcher, "random or exhaustive")
      ->capture_default_str()
      ->check(CLI::IsMember({"random", "exhaustive"}));
  command
      .add_option("-n,--trials", sweep.trials, "New trials a problem (with --budget or --until alone: as many as fit)")
      ->capture_default_str()
      ->check(CLI::Range(1, kUnlimitedTrials));
  command.add_option("-b,--budget", options.budget, "Time for all, e.g. 8h, 90m; shared by expected gain");
  command.add_option("--until", options.until, "Time to be done by, e.g. 07:00");
  command.add_option("--until-unix", options.until_unix)->group("");
  command.add_option("--seed", sweep.seed, "Seed of the search and of the inputs")->capture_default_str();
  command.add_flag("--resume", options.resume, "Go on with the last sweep of the database that did not finish");
  command.add_option("--resume-run", sweep.resume_run)->group("");
  command.add_flag("--retry-failed", sweep.retry_failed,
                   "Try again what timed out, crashed or was not launched before");
  command.add_option("-j,--jobs", sweep.jobs, "Compile workers (default: every processor)")->check(CLI::Range(1, 1024));
  command.add_option("--compile-timeout", sweep.compile_timeout_s, "Seconds a variant may take to compile")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--compile-memory", options.compile_memory, "MiB of memory a compile worker may use; 0: no cap")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24));
  command.add_option("--kernel-timeout", sweep.kernel_timeout_s, "Seconds a launch may take, at most")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

void add_governor_options(CLI::App& command, Options& options) {
  GovernorOptions& governor = options.sweep.governor;
  command.add_option("--preheat", governor.preheat_limit_s, "Seconds of load at most before measuring; 0: none")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--max-temperature", options.max_temperature,
                  "Pause near this temperature (C), not only at the card's limit")
      ->check(CLI::Range(20, 120));
  command
      .add_option("--drift", governor.canary_tolerance, "Samples count while clock and canary are within this fraction")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1.0));
  command.add_option("--pause-limit", governor.pause_limit_s, "Seconds to wait for the card before giving up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      .add_option("--tolerate", options.tolerated,
                  "Count samples although the card is throttled for its power or its temperature (power, thermal)")
      ->check(CLI::IsMember({"power", "thermal"}));
  command
      .add_option(
          "--sensors", options.sweep.sensors,
          "Read temperatures, clocks and throttling from this trace instead of the card (for trying things out)")
      ->check(CLI::ExistingFile);
}

void add_measuring_options(CLI::App& command, SweepOptions& sweep, bool& warm_cache) {
  MeasureOptions& measure = sweep.measure;
  command.add_flag("--warm-cache", warm_cache, "Do not evict the device's L2 before each sample");
  command.add_option("--min-samples", measure.min_samples, "Samples a configuration at least")
      ->capture_default_str()
      ->check(CLI::Range(3, 100000));
  command.add_option("--max-samples", measure.max_samples, "Samples a configuration at most")
      ->capture_default_str()
      ->check(CLI::Range(3, 100000));
  command.add_option("--precision", measure.target_half_width, "Sample until the median is known to this fraction")
      ->capture_default_str()
      ->check(CLI::Range(0.0001, 1.0));
  command.add_option("--sample-budget-ms", measure.budget_ms, "Time for the samples of one configuration")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      .add_option("--abort-factor", measure.abort_factor,
                  "Give up on a configuration that many times slower than the best; 0: never")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--finalists", sweep.finalists, "Best configurations re-measured against the default")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  command.add_option("--rounds", sweep.finals.rounds, "Rounds of the finals")
      ->capture_default_str()
      ->check(CLI::Range(2, 10000));
}

}  // namespace

void add_sweep_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("sweep", "Search for the fastest variant of each shape and store every trial");
  const auto options = std::make_shared<Options>();
  options->sweep.jobs = default_jobs();
  options->kernel.add_kernel_to(*command);
  options->kernel.add_problems_to(*command);
  command->add_option("-w,--workload", options->workload, "A workload file: tune its shapes of this kernel")
      ->check(CLI::ExistingFile);
  command->add_option("--phase", options->phases, "Only this phase of the workload (repeatable)");
  command->add_option("--type", options->types, "Only this element type, e.g. STORAGE=float32");
  command->add_option("--symbol", options->symbols, "Only this value of a phase's symbol, e.g. S=512");
  options->device.add_to(*command);
  command->add_option("--devices", options->devices,
                      "all GPUs (all), or a list (cuda:0,cuda:2): each gets a part of the plan");
  add_database_option(*command, options->database, "Database to add to");
  add_searching_options(*command, *options);
  add_measuring_options(*command, options->sweep, options->warm_cache);
  add_governor_options(*command, *options);
  command->add_option("--log", options->log, "Append every line to this file, with the time");
  command->add_flag("-q,--quiet", options->quiet, "Print nothing but errors");
  command->add_flag("--json", options->as_json, "Print a summary as JSON, nothing else");
  command->footer(
      "The default configuration is measured first and is always a finalist: a tuned result never loses to it.\n"
      "What the database knows under the same key (source, device, compiler, driver) is not measured again.\n"
      "Ctrl-C finishes the trial in flight; a second one stops at once. `--resume` goes on after either, after\n"
      "kill -9 and after a power cut. `pascaline status` shows a running sweep in another terminal.\n\nExamples:\n"
      "  pascaline sweep --problem M=512,N=2048,K=2048,STORAGE=float32 --trials 200\n"
      "  pascaline sweep --workload search_spaces/workloads/qwen3-vl-2b.json --phase prefill --until 07:00\n"
      "  pascaline sweep --devices all --workload search_spaces/workloads/qwen3-vl-2b.json --budget 8h\n"
      "  pascaline sweep --resume");
  // The words of a resumed run are followed by those of the resuming command, which count.
  for (CLI::Option* option : command->get_options()) {
    if (option->get_items_expected_max() == 1 && option->get_type_size() != 0) {
      option->take_last();
    }
  }
  command->callback([&action, command, options] {
    options->trials_given = command->count("--trials") > 0;
    action = [options] { return sweep(*options); };
  });
}

}  // namespace pascaline::cli
