#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/tune/rank_against.hpp"
#include "cli/tune/rank_card.hpp"
#include "cli/tune/rank_output.hpp"
#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_setup.hpp"
#include "tuner/static_model/ranking.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

// Compiles the configurations and judges them again. One that does not compile, or fits no SM, is left out.
void compile_best(const BoundSpace& bound, const RankCard& card, const RankCommandOptions& options, Ranking& ranking) {
  std::vector<Config> configs;
  for (const RankedConfig& ranked : ranking.best) {
    configs.push_back(ranked.config);
  }
  ranking.best.clear();
  VariantOptions variants = options.variants;
  variants.architecture = card.architecture;
  compile_variants(
      bound, variants, configs,
      [&](const CompiledVariant& variant) {
        if (variant.status == TrialStatus::ok) {
          const Resources resources = resources_of_launches(variant.binary);
          ranking.best.push_back({variant.config, estimate(bound, variant.config, card.rates, &resources), resources,
                                  estimate_from_code(variant.binary, bound, variant.config, card.rates, card.sm_rates),
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

Ranking rank_problem(const BoundSpace& bound, const RankCard& card, const RankCommandOptions& options) {
  Ranking ranking;
  if (options.kernel.settings.empty()) {
    ranking = rank_configs(bound, card.rates, std::max(options.top, options.compile), options.sample,
                           options.variants.seed, stop_check(interrupted()));
  } else {
    const Config config = options.kernel.load_config(bound);
    if (const auto why = bound.why_invalid(config)) {
      throw Error(
          fmt::format("the configuration {} is not valid for {}: {}", config.text(), bound.problem().text(), *why));
    }
    ranking = {1, 1, {{config, estimate(bound, config, card.rates), std::nullopt, std::nullopt, {}}}};
  }
  if (options.compile > 0) {
    ranking.best.resize(std::min(ranking.best.size(), options.compile));
    compile_best(bound, card, options, ranking);
  }
  ranking.best.resize(std::min(ranking.best.size(), options.top));
  return ranking;
}

int rank(const RankCommandOptions& options) {
  const RankCard card = rank_card(options);
  const Space space = options.kernel.load_space();
  const bool names_compilers = asks_for_compilers(options.variants.nvrtc) && options.compile > 0;
  json out = json::array();
  int code = kSuccess;
  for (const Problem& problem : options.kernel.load_problems(space)) {
    const BoundSpace bound(space, problem, card.rates.limits);
    const Ranking ranking = rank_problem(bound, card, options);
    if (options.as_json) {
      out.push_back(ranking_json(ranking, bound));
    } else {
      print_ranking(ranking, bound, card, names_compilers);
    }
    code = ranking.best.empty() ? kNegative : code;
    if (interrupted()) {
      return kInterrupted;
    }
  }
  if (options.as_json) {
    fmt::print("{}\n", json{{"kernel", space.kernel},
                            {"architecture", card.architecture},
                            {"sm_count", card.rates.limits.sm_count},
                            {"clock_mhz", card.rates.clock_mhz},
                            {"memory_gbps", card.rates.memory_gbps},
                            {"problems", out}}
                           .dump(1));
  }
  return code;
}

void add_rate_options(CLI::App& command, RankCommandOptions& options) {
  command.add_option("-a,--arch", options.architecture, "Architecture, e.g. sm_61")
      ->capture_default_str()
      ->check(architecture_name(false));
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
  command.add_option("--nvrtc", options.variants.nvrtc, kNvrtcChoiceHelp)->transform(nvrtc_choice());
  command.add_option("--cache", options.cache, "Folder for compiled kernels (default: ~/.cache/pascaline)");
}

// Options that would be ignored are refused: what the user meant was something else.
void refuse_what_is_ignored(CLI::App& command) {
  CLI::Option* const against = command.get_option("--against");
  for (const char* ranking :
       {"--arch", "--sm-count", "--device-name", "--problem", "--set", "--top", "--sample", "--seed"}) {
    against->excludes(ranking);
  }
  command.get_option("--min-trials")->needs(against);
  command.get_option("--db")->needs("--device-name");
  for (const char* drawing : {"--sample", "--seed"}) {
    command.get_option("--set")->excludes(drawing);
  }
  for (const char* compiling : {"--jobs", "--nvrtc", "--cache"}) {
    command.get_option(compiling)->needs("--compile");
  }
}

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
  refuse_what_is_ignored(*command);
  command->footer(
      "Times are estimates; only their order matters. Each term is what a launch would take if nothing else limited "
      "it.\n"
      "With --compile, for sm_50 to sm_62, code us is the time estimated from the machine code, range what is not "
      "known "
      "of it\n(whether register bank conflicts cost a clock, unless --device-name was probed, and whether lanes share "
      "what\nthey read from shared memory), and limit what takes most of the time at the slow end.\n\n"
      "Examples:\n  pascaline rank --kernel matmul --problem M=512,N=2048,K=2048 --arch sm_61 --sm-count 20\n"
      "  pascaline rank --kernel attention_prefill --compile 100 --top 10\n"
      "  pascaline rank --kernel matmul --compile 20 --nvrtc all\n"
      "  pascaline rank --set BLOCK_M=128,BLOCK_N=128 --json\n  pascaline rank --against tuned.db\n"
      "  pascaline rank --against tuned.db --compile 50");
  command->callback([&action, options, command] {
    action = [options, command] {
      catch_interrupts();
      options->variants.kernels = options->kernel.kernels();
      if (options->compile > 0) {
        options->variants.cache = options->cache.empty() ? cache_folder() : std::filesystem::path(options->cache);
      }
      return options->against.empty() ? rank(*options) : rank_against(*options, command->count("--kernel") > 0);
    };
  });
}

const Command kRankCommand(Heading::tune, 10, add_rank_command);

}  // namespace

}  // namespace pascaline::cli
