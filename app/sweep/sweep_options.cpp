#include "app/sweep/sweep_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "app/sweep/searcher_names.hpp"
#include "core/error.hpp"

namespace pascaline {
namespace {

// Time limits: what is shorter cannot be waited for, what is longer (11 days) nobody means.
constexpr double kMinS = 0.001;
constexpr double kMaxS = 1e6;

void add_what_to_tune(CLI::App& command, SweepCommandOptions& options) {
  command.add_option(
      "-m,--model", options.model.folder,
      "Tune all that this model launches, with these types and sizes: a folder with config.json, or a GGUF file");
  options.model.add_projector_to(command);
  options.model.add_types_to(command);
  options.sizes.add_to(command);
  command.add_option("-w,--workload", options.workload, "Tune the shapes of this workload file")
      ->check(CLI::ExistingFile);
  command.add_option("-k,--kernel", options.kernels,
                     "Only this kernel, the common stem of its .cu and its .json (repeatable; default: all of the "
                     "model or workload, else matmul)");
  options.kernel.add_folders_to(command);
  options.kernel.add_problems_to(command);
  options.kernel.add_given_to(command);
  command.add_option("--phase", options.phases, "Only this phase, e.g. prompt, token or image (repeatable)");
  command.add_option("--type", options.types, "Only this element type, e.g. STORAGE=float32");
  command.add_option("--symbol", options.symbols, "Only this value of a phase's symbol, e.g. S=512");
}

void add_searching_options(CLI::App& command, SweepCommandOptions& options) {
  SweepOptions& sweep = options.sweep;
  std::vector<std::string> searchers = searcher_list();
  searchers.emplace_back(kNoSearcher);
  command
      .add_option("--searcher", sweep.search.searcher,
                  searchers_help() + "; none: only the default and the portfolio are tried")
      ->capture_default_str()
      ->check(one_of(std::move(searchers)));
  std::vector<std::string> objectives;
  for (const Objective objective : kObjectives) {
    objectives.emplace_back(name_of(objective));
  }
  command
      .add_option(
          "--objective", options.objective,
          "What winners are decided by in the finals: time (always decided), energy a launch, edp (energy times "
          "time), or sustained (time once the card is as warm as steady work makes it). By all but time the energies "
          "of "
          "winner and default are measured; with time only after searches of 20 s and more")
      ->capture_default_str()
      ->check(one_of(std::move(objectives)));
  command
      .add_option("--portfolio", options.portfolio,
                  "File with the configurations that searches begin with after the default, or none (default: those of "
                  "the search space)")
      ->check(not_empty());
  command
      .add_option("-n,--trials", sweep.trials, "New trials per problem (with only --budget or --until: as many as fit)")
      ->capture_default_str()
      ->transform(whole_number(1, kUnlimitedTrials));
  command
      .add_option(
          "--min-gain", sweep.search.min_gain,
          "End the search of a problem (with a limit of time: put it last) where no trial is expected to be faster "
          "than the best by this fraction; 0: never")
      ->capture_default_str()
      ->check(number_within(0, 1));
  command.add_option("-b,--budget", options.budget, "Total time, e.g. 8h, 90m; shared by expected speedup")
      ->check(duration(kShortestBudgetS));
  command.add_option("--until", options.until, "Time to be done by, e.g. 07:00")->check(time_of_day());
  command
      .add_option(
          "--time-left", options.time_left,
          "What --until and --budget do where searches are at their end and time is left. deepen: finals again of what "
          "they left undecided, configurations near winners, and shapes between those tuned, by what each may gain. "
          "search: the searches continue")
      ->capture_default_str()
      ->check(one_of({std::string(kDeepen), std::string(kSearchOn)}));
  command.add_option("--seed", options.seed, "Seed of the search and of the inputs")
      ->capture_default_str()
      ->transform(whole_number(0));
  command.add_flag("--resume", options.resume, "Resume the last sweep of the database that did not finish");
  command.add_flag("--retry-failed", sweep.search.retry_failed,
                   "Retry what timed out, crashed or could not be launched before");
  command.add_option("-j,--jobs", sweep.compile.jobs, "Compile workers (default: every processor)")
      ->transform(whole_number(1, 1024));
  command.add_option("--compile-timeout", sweep.compile.timeout_s, "Seconds a variant may take to compile")
      ->capture_default_str()
      ->check(number_within(kMinS, kMaxS));
  command.add_option("--compile-memory", options.compile_memory, "MiB of memory a compile worker may use; 0: no cap")
      ->capture_default_str()
      ->transform(whole_number(0, 1 << 24));
  command.add_option("--kernel-timeout", sweep.waits.kernel_timeout_s, "Maximum seconds a launch may take")
      ->capture_default_str()
      ->check(number_within(kMinS, kMaxS));
}

void add_governor_options(CLI::App& command, SweepCommandOptions& options) {
  GovernorOptions& governor = options.sweep.governor;
  command.add_option("--preheat", governor.preheat_limit_s, "Seconds of load at most before measuring; 0: none")
      ->capture_default_str()
      ->check(number_within(0, kMaxS));
  command
      .add_option("--max-temperature", options.max_temperature,
                  "Pause near this temperature (C), not only at the card's limit")
      ->check(number_within(20, 120));
  command
      .add_option("--drift", governor.canary_tolerance, "Samples count while clock and canary are within this fraction")
      ->capture_default_str()
      ->check(number_within(0.001, 1));
  command.add_option("--pause-limit", governor.pause_limit_s, "Seconds to wait for the card before giving up")
      ->capture_default_str()
      ->check(number_within(kMinS, kMaxS));
  command
      .add_option("--tolerate", options.tolerated,
                  "Count samples even while the card is throttled for power or temperature (power, thermal)")
      ->check(one_of({"power", "thermal"}));
  command.add_flag(
      "--polite", options.sweep.polite.enabled,
      "Also pause while the machine is used: others compute on the GPU, it is on battery, or its lid is closed");
  command
      .add_option(
          "--sensors", options.sweep.files.sensors,
          "Read temperatures, clocks and throttling from this trace instead of the card (for trying things out)")
      ->check(CLI::ExistingFile);
}

void add_measuring_options(CLI::App& command, SweepOptions& sweep, bool& warm_cache) {
  MeasureOptions& measure = sweep.measure;
  command.add_flag("--warm-cache", warm_cache, "Do not evict the device's L2 before each sample");
  command.add_option("--min-samples", measure.min_samples, "Minimum samples per configuration")
      ->capture_default_str()
      ->transform(whole_number(3, 100000));
  command.add_option("--max-samples", measure.max_samples, "Maximum samples per configuration")
      ->capture_default_str()
      ->transform(whole_number(3, 100000));
  command.add_option("--precision", measure.target_half_width, "Sample until the median is known to this fraction")
      ->capture_default_str()
      ->check(number_within(0.0001, 1));
  command.add_option("--sample-budget-ms", measure.budget_ms, "Time for the samples of one configuration")
      ->capture_default_str()
      ->check(number_within(kMinS, 1000 * kMaxS));
  command
      .add_option(
          "--race-error", measure.race_error,
          "Stop timing a configuration once it is slower than the best, with at most this chance of error; 0: never")
      ->capture_default_str()
      ->check(number_within(0, 0.5));
  command
      .add_option(
          "--finalists", sweep.finalists,
          fmt::format(
              "Best configurations measured again against the default in the finals (with --objective energy or edp: "
              "{} unless given)",
              kFinalistsByEnergy))
      ->capture_default_str()
      ->transform(whole_number(1, 100));
  command.add_option("--rounds", sweep.finals.rounds, "Rounds of the finals")
      ->capture_default_str()
      ->transform(whole_number(2, 10000));
}

// One thing to tune, and options of a model only with one.
void check_what_to_tune(const SweepCommandOptions& options) {
  std::vector<std::string> given;
  for (const auto& [option, is_given] :
       {std::pair("--model", !options.model.folder.empty()), std::pair("--workload", !options.workload.empty()),
        std::pair("--problem", !options.kernel.problems.empty())}) {
    if (is_given) {
      given.emplace_back(option);
    }
  }
  if (given.size() > 1) {
    throw UsageError(fmt::format("give either {}, not both", fmt::join(given, " or ")));
  }
  const bool is_given = !options.kernel.inputs.empty() || !options.kernel.answers.empty();
  if (is_given && (!options.model.folder.empty() || !options.workload.empty() || options.kernels.size() > 1)) {
    throw UsageError("--input and --answer are about shapes of one kernel: give --kernel and --problem");
  }
  if (is_given && (!options.shard.empty() || !options.fleet.empty())) {
    throw UsageError("--input and --answer are files of this machine: leave --shard and --fleet out");
  }
  if (!options.kernel.problems.empty() && options.kernels.size() > 1) {
    throw UsageError("the shapes of --problem are of one kernel: give --kernel once");
  }
  const char* of_model = !options.model.projector.empty()              ? "--mmproj"
                         : !options.model.weights.empty()              ? "--weights"
                         : !options.model.kv_cache.empty()             ? "--kv-cache"
                         : options.model.attention != "dense"          ? "--attention"
                         : options.model.context > 0                   ? "--context"
                         : options.model.chunk != ModelOptions{}.chunk ? "--chunk"
                         : !options.sizes.prompts.empty()              ? "--prompt-tokens"
                         : !options.sizes.image.empty()                ? "--image-size"
                                                                       : nullptr;
  if (options.model.folder.empty() && of_model != nullptr) {
    throw UsageError(fmt::format("{} is about a model: give one with --model", of_model));
  }
}

}  // namespace

bool asks_for_problems(const SweepCommandOptions& options) {
  return !options.model.folder.empty() || !options.workload.empty() || !options.kernel.problems.empty();
}

void add_sweep_options(CLI::App& command, SweepCommandOptions& options) {
  options.sweep.compile.jobs = default_jobs();
  add_what_to_tune(command, options);
  options.device.add_to(command, kNvrtcChoiceHelp);
  command
      .add_option("--devices", options.devices,
                  "all GPUs (all), or a list (cuda:0,cuda:2): each gets a part of the plan")
      ->check(device_list());
  command
      .add_option("--shard", options.shard,
                  "Only part i of N of the plan, as 2/4, into a database of its own: every machine that is given the "
                  "same plan divides it alike")
      ->check(shard_text());
  command.add_option("--fleet", options.fleet, "What to tune and how is the plan of this fleet.json; with --shard")
      ->check(CLI::ExistingFile);
  add_database_option(command, options.database, "Database to add to");
  add_searching_options(command, options);
  add_measuring_options(command, options.sweep, options.warm_cache);
  add_governor_options(command, options);
  command.add_option("--log", options.log, "Append every line to this file, with the time");
  command.add_flag("-q,--quiet", options.quiet, "Print nothing but errors");
  command.add_flag("--json", options.as_json, "Print a summary as JSON, nothing else");
  // Of an option given twice the last counts.
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 1 && option->get_type_size() != 0) {
      option->take_last();
    }
  }
}

void check_together(const SweepCommandOptions& options) {
  const MeasureOptions& measure = options.sweep.measure;
  if (measure.min_samples > measure.max_samples) {
    throw UsageError(
        fmt::format("--min-samples {} is more than --max-samples {}", measure.min_samples, measure.max_samples));
  }
  if (!options.devices.empty() && !options.device.device.empty()) {
    throw UsageError("give either --device or --devices, not both");
  }
  check_what_to_tune(options);
  if (!options.fleet.empty() && (options.shard.empty() || asks_for_problems(options))) {
    throw UsageError(options.shard.empty()
                         ? "--fleet is a plan for several machines: say which part of it is wanted with --shard"
                         : "--fleet says what to tune: leave out --model, --workload and --problem");
  }
  const char* narrowing = !options.phases.empty()    ? "--phase"
                          : !options.types.empty()   ? "--type"
                          : !options.symbols.empty() ? "--symbol"
                                                     : nullptr;
  if (options.workload.empty() && options.model.folder.empty() && narrowing != nullptr) {
    throw UsageError(fmt::format(
        "{} chooses among the shapes of a model or workload: give one with --model or --workload", narrowing));
  }
}

}  // namespace pascaline
