#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/paths.hpp"
#include "core/workload.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/cli/progress.hpp"
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
  std::string database;
  double minutes = 0;
  double minutes_left = 0;
  bool trials_given = false;
  bool warm_cache = false;
  bool quiet = false;
  bool as_json = false;
};

// The words this process was started with.
std::vector<std::string> own_command_line() {
  const std::string text = read_file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\0', start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

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

// A kernel's fault took the device from this process. The trial is stored; the same process id starts anew on the same
// session, so that one configuration is all the fault costs.
[[noreturn]] void go_on_in_new_process(std::int64_t session, const SweepOptions& sweep, double minutes_left,
                                       Progress& progress) {
  progress.events().note("a configuration's fault took the device from this process; going on in a new one");
  std::vector<std::string> words = own_command_line();
  for (const char* option : {"--continue-session", "--minutes-left"}) {
    const auto known = std::find(words.begin(), words.end(), option);
    if (known != words.end()) {
      words.erase(known, known + 2);
    }
  }
  words.insert(words.end(), {"--continue-session", std::to_string(session)});
  if (sweep.minutes) {
    words.insert(words.end(), {"--minutes-left", fmt::format("{}", minutes_left)});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::fflush(stdout);
  ::execv("/proc/self/exe", arguments.data());
  throw Error(fmt::format("cannot start again ({}); run the same command to go on from {}", std::strerror(errno),
                          sweep.database.string()),
              errno);
}

int sweep(Options options) {
  catch_interrupts();
  const Space space = options.kernel.load_space();
  const std::vector<SweepProblem> problems = problems_of(space, options);
  SweepOptions& sweep = options.sweep;
  sweep.device = options.device.chosen_device();
  sweep.target = options.device.target;
  sweep.nvrtc = options.device.nvrtc;
  sweep.kernels = options.kernel.kernels();
  sweep.cache = options.device.cache_path();
  sweep.database = database_path(options.database);
  sweep.measure.cold_cache = !options.warm_cache;
  sweep.command_line = command_line();
  if (options.minutes > 0) {
    sweep.minutes = options.minutes_left > 0 ? options.minutes_left : options.minutes;
    if (!options.trials_given) {
      sweep.trials = std::numeric_limits<int>::max();
    }
  }
  Progress progress(options.quiet || options.as_json);
  const auto started = std::chrono::steady_clock::now();
  const SweepSummary summary = run_sweep(space, problems, sweep, progress.events(), interrupted());
  if (summary.device_lost) {
    const std::chrono::duration<double, std::ratio<60>> spent = std::chrono::steady_clock::now() - started;
    go_on_in_new_process(summary.session, sweep, std::max(0.01, sweep.minutes.value_or(0) - spent.count()), progress);
  }
  progress.summary(summary, sweep);
  if (options.as_json) {
    fmt::print("{}\n", nlohmann::json{{"session", summary.session},
                                      {"database", sweep.database.string()},
                                      {"trials", summary.trials},
                                      {"ok", summary.ok},
                                      {"reused", summary.reused},
                                      {"reused_ok", summary.reused_ok},
                                      {"problems_done", summary.problems_done},
                                      {"interrupted", summary.interrupted}}
                           .dump(2));
  }
  if (summary.interrupted) {
    return kInterrupted;
  }
  return summary.ok + summary.reused_ok > 0 ? kSuccess : kNegative;
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
  add_database_option(*command, options->database, "Database to add to");
  command->add_option("--searcher", options->sweep.searcher, "random or exhaustive")
      ->capture_default_str()
      ->check(CLI::IsMember({"random", "exhaustive"}));
  command
      ->add_option("-n,--trials", options->sweep.trials, "New trials a problem (with --minutes alone: as many as fit)")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000'000));
  command->add_option("-m,--minutes", options->minutes, "Minutes of the whole sweep, shared evenly by the problems")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", options->sweep.seed, "Seed of the search and of the inputs")->capture_default_str();
  command->add_option("-j,--jobs", options->sweep.jobs, "Compile workers (default: every processor)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--continue-session", options->sweep.continue_session)->group("");
  command->add_option("--minutes-left", options->minutes_left)->group("");
  add_measuring_options(*command, options->sweep, options->warm_cache);
  command->add_flag("-q,--quiet", options->quiet, "Print nothing but errors");
  command->add_flag("--json", options->as_json, "Print a summary as JSON, nothing else");
  command->footer(
      "The default configuration is measured first and is always a finalist: a tuned result never loses to it.\n"
      "What the database knows under the same key (source, device, compiler, driver) is not measured again.\n"
      "Ctrl-C finishes the trial in flight; a second one stops at once.\n\nExamples:\n"
      "  pascaline sweep --problem M=512,N=2048,K=2048,STORAGE=float32 --trials 200\n"
      "  pascaline sweep --workload search_spaces/workloads/qwen3-vl-2b.json --phase prefill --minutes 480\n"
      "  pascaline sweep --device cuda:0 --target sm_61 --problem M=4096,N=4096,K=4096 --trials 300");
  command->callback([&action, command, options] {
    options->trials_given = command->count("--trials") > 0;
    action = [options] { return sweep(*options); };
  });
}

}  // namespace pascaline::cli
