#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/suggestion.hpp"
#include "db/stored_probe.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/static_model/rank_check.hpp"
#include "tuner/static_model/ranking.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

struct RankCommandOptions {
  KernelOptions kernel;
  std::string architecture = "sm_61";
  std::string device_name;  // of a probed device; empty: a typical one
  std::string database;     // that knows it
  int sm_count = 0;         // 0: the architecture's
  double clock_mhz = 0;
  double memory_gbps = 0;
  std::size_t top = 20;
  std::size_t compile = 0;
  std::uint64_t sample = 20'000;
  std::string against;
  std::size_t min_trials = 10;
  std::string cache;
  VariantOptions variants;
  bool as_json = false;
};

void adjust(const RankCommandOptions& options, DeviceRates& rates) {
  rates.clock_mhz = options.clock_mhz > 0 ? options.clock_mhz : rates.clock_mhz;
  rates.memory_gbps = options.memory_gbps > 0 ? options.memory_gbps : rates.memory_gbps;
}

// The device of that name that was probed last.
DeviceRow probed_row(const Store& store, const std::string& name) {
  std::vector<std::string> names;
  for (const StoredProbe& stored : store.probes(nullptr)) {
    if (stored.device.name == name && stored.device.kind == "cuda") {
      return stored.device;
    }
    if (stored.device.kind == "cuda") {
      names.push_back(stored.device.name);
    }
  }
  throw Error(fmt::format("{} knows no GPU called '{}' that was probed{}; run pascaline probe on it",
                          store.file().string(), name, did_you_mean(name, names)));
}

// "sm_61" of "6.1".
std::string architecture_of(const DeviceRow& device) {
  std::string digits = device.compute_capability;
  std::erase(digits, '.');
  return "sm_" + digits;
}

DeviceRates rates_of_probed(const RankCommandOptions& options) {
  const Store store(database_path(options.database), OpenMode::read_only);
  const DeviceRow device = probed_row(store, options.device_name);
  const auto typical = typical_rates(device.compute_capability, stored_limits(device, DeviceLimits{}));
  if (!typical) {
    throw Error(fmt::format("nothing is known of compute capability '{}' of {}", device.compute_capability,
                            options.device_name));
  }
  DeviceRates rates = *typical;
  use_measured(rates, store.measured_rates(device));
  adjust(options, rates);
  return rates;
}

DeviceRates rates_of(const RankCommandOptions& options) {
  if (!options.device_name.empty()) {
    return rates_of_probed(options);
  }
  auto limits = limits_of_architecture(options.architecture);
  if (!limits) {
    throw Error(
        fmt::format("unknown architecture '{}': give one from sm_50 to sm_90, such as sm_61", options.architecture));
  }
  limits->sm_count = options.sm_count > 0 ? options.sm_count : limits->sm_count;
  DeviceRates rates = typical_rates(options.architecture, *limits).value();
  adjust(options, rates);
  return rates;
}

// Compiles the configurations and judges them again. One that does not compile, or fits no SM, is left out.
void compile_best(const BoundSpace& bound, const DeviceRates& rates, const RankCommandOptions& options,
                  Ranking& ranking) {
  std::vector<Config> configs;
  for (const RankedConfig& ranked : ranking.best) {
    configs.push_back(ranked.config);
  }
  ranking.best.clear();
  compile_variants(
      bound, options.variants, configs,
      [&](const CompiledVariant& variant) {
        if (variant.status == TrialStatus::ok) {
          const Resources& resources = variant.binary.resources;
          ranking.best.push_back({variant.config, estimate(bound, variant.config, rates, &resources), resources,
                                  estimate_from_code(variant.binary, bound, variant.config, rates),
                                  variant.compiler.text()});
        }
      },
      interrupted());
  // They finish in any order.
  std::sort(ranking.best.begin(), ranking.best.end(), [](const RankedConfig& a, const RankedConfig& b) {
    return std::pair(a.config.text(), a.compiler) < std::pair(b.config.text(), b.compiler);
  });
  sort_by_time(ranking.best);
}

Ranking rank_problem(const BoundSpace& bound, const DeviceRates& rates, const RankCommandOptions& options) {
  Ranking ranking;
  if (options.kernel.settings.empty()) {
    ranking = rank_configs(bound, rates, std::max(options.top, options.compile), options.sample, options.variants.seed);
  } else {
    const Config config = options.kernel.load_config(bound);
    if (const auto why = bound.why_invalid(config)) {
      throw Error(
          fmt::format("the configuration {} is not valid for {}: {}", config.text(), bound.problem().text(), *why));
    }
    ranking = {1, 1, {{config, estimate(bound, config, rates), std::nullopt, std::nullopt, {}}}};
  }
  if (options.compile > 0) {
    ranking.best.resize(std::min(ranking.best.size(), options.compile));
    compile_best(bound, rates, options, ranking);
  }
  ranking.best.resize(std::min(ranking.best.size(), options.top));
  return ranking;
}

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json to_json(const CodeTime& time) {
  return {{"time_us", time.time_us},
          {"loops_us", time.loops_us},
          {"outside_us", time.outside_us},
          {"arithmetic", time.arithmetic},
          {"limit", name_of(time.limit)}};
}

json to_json(const CodeEstimate& code) {
  return {{"time_us", code.time_us()},
          {"least", to_json(code.least)},
          {"most", to_json(code.most)},
          {"memory_us", code.memory_us},
          {"trips", code.trips},
          {"waves", code.waves},
          {"resident_blocks", code.resident_blocks},
          {"resident_blocks_limit", name_of(code.residency)}};
}

json to_json(const RankedConfig& ranked) {
  const Estimate& e = ranked.estimate;
  json out{{"config", ranked.config.json()},     {"time_us", number(e.time_us)},
           {"compute_us", number(e.compute_us)}, {"shared_us", number(e.shared_us)},
           {"global_us", number(e.global_us)},   {"latency_us", number(e.latency_us)},
           {"occupancy", e.occupancy},           {"waves", e.waves},
           {"registers", e.registers},           {"resident_blocks", e.resident_blocks}};
  if (ranked.resources) {
    out["local_loads"] = ranked.resources->local_loads;
    out["local_stores"] = ranked.resources->local_stores;
    out["instructions"] = ranked.resources->instructions;
    out["ffma"] = ranked.resources->ffma;
    out["compiler"] = ranked.compiler;
  }
  if (ranked.code) {
    out["code"] = to_json(*ranked.code);
  }
  return out;
}

json to_json(const Ranking& ranking, const BoundSpace& bound) {
  json best = json::array();
  for (const RankedConfig& ranked : ranking.best) {
    best.push_back(to_json(ranked));
  }
  return {{"problem", bound.problem().text()},
          {"valid", ranking.valid ? json(*ranking.valid) : json(nullptr)},
          {"ranked", ranking.ranked},
          {"best", best}};
}

// "12.1 to 14.0", and what limits the launch at both ends.
std::string code_columns(const std::optional<CodeEstimate>& code) {
  if (!code) {
    return fmt::format("  {:>9} {:>19} {:<21}", "-", "-", "-");
  }
  const std::string_view slow = name_of(code->most.limit);
  return fmt::format("  {:>9.2f} {:>19} {:<21}", code->time_us(),
                     fmt::format("{:.2f} to {:.2f}", code->least.time_us, code->most.time_us), slow);
}

void print_ranking(const Ranking& ranking, const BoundSpace& bound, const DeviceRates& rates,
                   const RankCommandOptions& options) {
  fmt::print("{} for {} with {} SMs at {:.0f} MHz and {:.0f} GB/s{}: {} of {} configurations ranked{}\n",
             bound.problem().text(), options.architecture, rates.limits.sm_count, rates.clock_mhz, rates.memory_gbps,
             options.device_name.empty() ? "" : " (" + source_of(rates, options.architecture) + ")", ranking.ranked,
             ranking.valid ? std::to_string(*ranking.valid) : "more than can be counted",
             bound.space().model ? "" : ", by occupancy, waves and work alone");
  const bool from_code = std::any_of(ranking.best.begin(), ranking.best.end(),
                                     [](const RankedConfig& ranked) { return ranked.code.has_value(); });
  const bool several = asks_for_compilers(options.variants.nvrtc) && options.compile > 0;
  const auto column = [&](const std::string& compiler) {
    return several ? fmt::format("{:<14}  ", compiler) : std::string();
  };
  fmt::print("{:>10} {:>10} {:>10} {:>10} {:>10} {:>6} {:>7} {:>5} {:>9}{}  {}{}\n", "time us", "compute", "shared",
             "global", "latency", "occup", "waves", "regs", "LDL/STL",
             from_code ? fmt::format("  {:>9} {:>19} {:<21}", "code us", "range", "limit") : "", column("compiler"),
             "configuration");
  for (const RankedConfig& ranked : ranking.best) {
    const Estimate& e = ranked.estimate;
    const std::string spills =
        ranked.resources ? fmt::format("{}/{}", ranked.resources->local_loads, ranked.resources->local_stores) : "-";
    fmt::print("{:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>5.0f}% {:>7.2f} {:>5} {:>9}{}  {}{}\n", e.time_us,
               e.compute_us, e.shared_us, e.global_us, e.latency_us, 100 * e.occupancy, e.waves, e.registers, spills,
               from_code ? code_columns(ranked.code) : "", column(ranked.compiler), ranked.config.text());
  }
  if (from_code) {
    fmt::print(
        "code us, range, limit: estimated from the machine code, not measured on a card of this architecture; the "
        "range "
        "is what is\nnot known of register bank conflicts and shared memory.\n");
  }
}

int rank(const RankCommandOptions& options) {
  const DeviceRates rates = rates_of(options);
  const Space space = options.kernel.load_space();
  json out = json::array();
  int code = kSuccess;
  for (const Problem& problem : options.kernel.load_problems(space)) {
    const BoundSpace bound(space, problem, rates.limits);
    const Ranking ranking = rank_problem(bound, rates, options);
    if (options.as_json) {
      out.push_back(to_json(ranking, bound));
    } else {
      print_ranking(ranking, bound, rates, options);
    }
    code = ranking.best.empty() ? kNegative : code;
    if (interrupted()) {
      return kInterrupted;
    }
  }
  if (options.as_json) {
    fmt::print("{}\n", json{{"kernel", space.kernel},
                            {"architecture", options.architecture},
                            {"sm_count", rates.limits.sm_count},
                            {"clock_mhz", rates.clock_mhz},
                            {"memory_gbps", rates.memory_gbps},
                            {"problems", out}}
                           .dump(1));
  }
  return code;
}

/// Means over the problems of a kernel.
struct KernelMean {
  std::size_t problems = 0;
  std::size_t trials = 0;
  double correlation = 0;
  double compiled_correlation = 0;
  double found = 0;
  double compiled_found = 0;
};

std::map<std::string, KernelMean> means_of(const std::vector<RankCheck>& checks) {
  std::map<std::string, KernelMean> means;
  for (const RankCheck& check : checks) {
    KernelMean& mean = means[check.kernel];
    const double weight = 1.0 / static_cast<double>(++mean.problems);
    mean.trials += check.trials;
    mean.correlation += weight * (check.correlation - mean.correlation);
    mean.compiled_correlation += weight * (check.compiled_correlation - mean.compiled_correlation);
    mean.found += weight * (check.found - mean.found);
    mean.compiled_found += weight * (check.compiled_found - mean.compiled_found);
  }
  return means;
}

json to_json(const RankCheck& check) {
  json out{{"device", check.device.name},
           {"sm_count", check.device.sm_count},
           {"target", check.target},
           {"problem", check.problem},
           {"trials", check.trials},
           {"skipped", check.skipped},
           {"correlation", check.correlation},
           {"compiled_correlation", check.compiled_correlation},
           {"found", check.found},
           {"compiled_found", check.compiled_found}};
  if (check.code) {
    out["code"] = {{"trials", check.code->trials},
                   {"correlation", check.code->correlation},
                   {"least_correlation", check.code->least},
                   {"most_correlation", check.code->most},
                   {"compiled_correlation", check.code->compiled_correlation}};
  }
  return out;
}

// How the estimates from code order the trials that were compiled.
void print_code_checks(const std::vector<RankCheck>& checks) {
  if (std::none_of(checks.begin(), checks.end(), [](const RankCheck& check) { return check.code.has_value(); })) {
    return;
  }
  fmt::print("Estimates from code\n{:>7} {:>7} {:>7} {:>7} {:>9}  {}\n", "trials", "rho", "least", "most", "compiled",
             "problem");
  for (const RankCheck& check : checks) {
    if (check.code) {
      fmt::print("{:>7} {:>7.3f} {:>7.3f} {:>7.3f} {:>9.3f}  {}\n", check.code->trials, check.code->correlation,
                 check.code->least, check.code->most, check.code->compiled_correlation, clean_line(check.problem));
    }
  }
}

void print_checks(const std::vector<RankCheck>& checks) {
  std::string device;
  for (const RankCheck& check : checks) {
    const std::string heading = fmt::format("{} with {} SMs, code for {}", clean_line(check.device.name),
                                            check.device.sm_count, clean_line(check.target));
    if (heading != device) {
      device = heading;
      fmt::print("{}\n{:>7} {:>7} {:>9} {:>6} {:>9}  {}\n", device, "trials", "rho", "compiled", "found", "compiled",
                 "problem");
    }
    fmt::print("{:>7} {:>7.3f} {:>9.3f} {:>5.0f}% {:>8.0f}%  {}\n", check.trials, check.correlation,
               check.compiled_correlation, 100 * check.found, 100 * check.compiled_found, clean_line(check.problem));
  }
  fmt::print("Means\n{:>9} {:>7} {:>7} {:>9} {:>6} {:>9}  {}\n", "problems", "trials", "rho", "compiled", "found",
             "compiled", "kernel");
  for (const auto& [kernel, mean] : means_of(checks)) {
    fmt::print("{:>9} {:>7} {:>7.3f} {:>9.3f} {:>5.0f}% {:>8.0f}%  {}\n", mean.problems, mean.trials, mean.correlation,
               mean.compiled_correlation, 100 * mean.found, 100 * mean.compiled_found, kernel);
  }
}

// The spaces in the folder: kernels of the database that it does not have are left out.
std::optional<Space> space_if_there(KernelOptions options, const std::string& kernel) {
  const auto folder =
      options.spaces_folder.empty() ? data_folder("search_spaces") : std::filesystem::path(options.spaces_folder);
  if (why_no_kernel_name(kernel) || !std::filesystem::exists(kernel_file(folder, kernel, ".json"))) {
    return std::nullopt;
  }
  options.kernel = kernel;
  return options.load_space();
}

int check_against(const RankCommandOptions& options, bool one_kernel) {
  RankCheckOptions wanted;
  wanted.min_trials = options.min_trials;
  wanted.kernel = one_kernel ? options.kernel.kernel : "";
  if (one_kernel) {
    (void)options.kernel.load_space();  // a kernel that is not there is a mistake
  }
  wanted.load_space = [&](const std::string& kernel) { return space_if_there(options.kernel, kernel); };
  wanted.compile = options.compile;
  wanted.compiler = [&](const BoundSpace& bound, const std::string& architecture, const std::vector<Config>& configs,
                        const std::function<void(const Config&, const Binary&)>& each) {
    VariantOptions variants = options.variants;
    variants.architecture = architecture;
    compile_variants(
        bound, variants, configs,
        [&](const CompiledVariant& variant) {
          if (variant.status == TrialStatus::ok) {
            each(variant.config, variant.binary);
          }
        },
        interrupted());
  };
  wanted.adjust = [&](DeviceRates& rates) { adjust(options, rates); };
  const std::vector<RankCheck> checks = check_ranking(Store(options.against, OpenMode::read_only), wanted);
  if (interrupted()) {
    fmt::print(stderr, "interrupted: nothing is shown, as part of it is missing\n");
    return kInterrupted;
  }
  if (checks.empty()) {
    throw Error(
        fmt::format("{} has no {}problem with {} or more configurations measured on a GPU; give another "
                    "database or a smaller --min-trials",
                    options.against, one_kernel ? options.kernel.kernel + " " : "", options.min_trials));
  }
  if (!options.as_json) {
    print_checks(checks);
    print_code_checks(checks);
    return kSuccess;
  }
  json problems = json::array();
  for (const RankCheck& check : checks) {
    problems.push_back(to_json(check));
  }
  json kernels = json::object();
  for (const auto& [kernel, mean] : means_of(checks)) {
    kernels[kernel] = {{"problems", mean.problems},
                       {"trials", mean.trials},
                       {"correlation", mean.correlation},
                       {"compiled_correlation", mean.compiled_correlation},
                       {"found", mean.found},
                       {"compiled_found", mean.compiled_found}};
  }
  fmt::print("{}\n", json{{"problems", problems}, {"kernels", kernels}}.dump(1));
  return kSuccess;
}

void add_rate_options(CLI::App& command, RankCommandOptions& options) {
  command.add_option("-a,--arch", options.architecture, "Architecture, e.g. sm_61")->capture_default_str();
  command.add_option("--sm-count", options.sm_count, "Multiprocessors of the card (default: 20 for sm_61)")
      ->transform(whole_number(1, 1024));
  command
      .add_option("--device-name", options.device_name,
                  "Instead of --arch and --sm-count: the GPU of this name, as pascaline probe measured it")
      ->check(not_empty())
      ->excludes("--arch")
      ->excludes("--sm-count");
  add_database_option(command, options.database, "With --device-name: database that knows it");
  command
      .add_option("--clock", options.clock_mhz, "Clock of its multiprocessors in MHz (default: typical of such a card)")
      ->check(number_within(1, 100'000));
  command
      .add_option("--bandwidth", options.memory_gbps,
                  "Bandwidth of its memory in GB/s (default: typical of such a card)")
      ->check(number_within(0.1, 1'000'000));
}

void add_choice_options(CLI::App& command, RankCommandOptions& options) {
  command.add_option("-n,--top", options.top, "Configurations to show")
      ->capture_default_str()
      ->transform(whole_number(1, 1'000'000));
  command.add_option("--sample", options.sample, "Configurations to estimate; of a space with more, a uniform sample")
      ->capture_default_str()
      ->transform(whole_number(1, 100'000'000));
  command.add_option("--seed", options.variants.seed, "Seed of the sample")
      ->capture_default_str()
      ->transform(any_unsigned());
  command
      .add_option(
          "--compile", options.compile,
          "Compile this many of the best (no GPU needed) and rank them again by what their binaries use and, for "
          "sm_50 to sm_62, by an estimate from their machine code; with --against: this many of a problem's trials")
      ->transform(whole_number(0, 100'000));
  command.add_option("-j,--jobs", options.variants.jobs, "Compile workers (default: every processor)")
      ->transform(whole_number(1, 1024));
  command.add_option("--nvrtc", options.variants.nvrtc, kNvrtcChoiceHelp);
  command.add_option("--cache", options.cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
}

}  // namespace

void add_rank_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "rank", "Rank configurations by a static model (no GPU needed), or check it against measurements");
  const auto options = std::make_shared<RankCommandOptions>();
  options->variants.jobs = default_jobs();
  options->kernel.add_kernel_to(*command);
  options->kernel.add_problems_to(*command);
  options->kernel.add_settings_to(*command);
  add_rate_options(*command, *options);
  add_choice_options(*command, *options);
  command->add_option("--against", options->against,
                      "Compare the model's order with the times stored in this database instead; all kernels, or "
                      "--kernel's");
  command
      ->add_option("--min-trials", options->min_trials, "With --against: minimum number of configurations per problem")
      ->capture_default_str()
      ->transform(whole_number(2, 1'000'000));
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(
      "Times are estimates; only their order matters. Each term is what a launch would take if nothing else limited "
      "it.\n"
      "With --compile, for sm_50 to sm_62, code us is the time estimated from the machine code, range what is not "
      "known "
      "of it\n(whether register bank conflicts cost a clock, and whether lanes share what they read from shared "
      "memory), "
      "and limit\nwhat takes most of the time at the slow end.\n\n"
      "Examples:\n  pascaline rank --kernel matmul --problem M=512,N=2048,K=2048 --arch sm_61 --sm-count 20\n"
      "  pascaline rank --kernel attention_prefill --compile 100 --top 10\n"
      "  pascaline rank --kernel matmul --compile 20 --nvrtc all\n"
      "  pascaline rank --set BLOCK_M=128,BLOCK_N=128 --json\n  pascaline rank --against tuned.db\n"
      "  pascaline rank --against tuned.db --compile 50");
  command->callback([&action, options, command] {
    action = [options, command] {
      catch_interrupts();
      if (!options->device_name.empty()) {
        const Store store(database_path(options->database), OpenMode::read_only);
        options->architecture = architecture_of(probed_row(store, options->device_name));
      }
      options->variants.architecture = options->architecture;
      options->variants.kernels = options->kernel.kernels();
      if (options->compile > 0) {
        options->variants.cache = options->cache.empty() ? cache_folder() : std::filesystem::path(options->cache);
      }
      return options->against.empty() ? rank(*options) : check_against(*options, command->count("--kernel") > 0);
    };
  });
}

}  // namespace pascaline::cli
