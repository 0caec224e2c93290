#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/model/model_options.hpp"
#include "app/model/model_passes.hpp"
#include "app/options.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// Least seconds that `--budget` takes: with less it would be written as 0 in the command that resumes.
constexpr double kShortestBudgetS = 0.001;

/// What `--time-left` takes.
inline constexpr std::string_view kDeepen = "deepen";
inline constexpr std::string_view kSearchOn = "search";

/// What the words of `pascaline sweep` say.
struct SweepCommandOptions {
  KernelOptions kernel;              ///< its `kernel` is tuned where nothing else is asked for
  std::vector<std::string> kernels;  ///< given with --kernel
  ModelCommandOptions model;         ///< its folder, types and sizes; the rest is as for the sweep
  PassCommandOptions sizes{
      .usual_prompts = {128, 512, 1024, 2048}, .usual_image = kUsualImage, .prompts = {}, .image = {}};
  DeviceOptions device;
  SweepOptions sweep;
  std::string workload;
  std::string objective{name_of(Objective::time)};
  std::string time_left{kDeepen};
  std::string portfolio;  ///< a file, "none", or empty: that of the search space
  std::vector<std::string> phases;
  std::vector<std::string> types;
  std::vector<std::string> symbols;
  std::int64_t seed = 1;
  std::string devices;
  std::string shard;  ///< "2/4", or empty: all
  std::string fleet;  ///< file of a fleet's plan, or empty
  std::string database;
  std::string budget;
  std::string until;
  std::optional<std::int64_t> until_unix_s;  ///< of the plan that is resumed, where there is no `until`
  std::string log;
  std::string compile_memory = "4096";
  std::string max_temperature;
  std::vector<std::string> tolerated;
  bool resume = false;
  bool trials_given = false;
  bool finalists_given = false;
  bool warm_cache = false;
  bool quiet = false;
  bool as_json = false;
};

/// Whether they say what to tune, with --model, --workload or --problem.
[[nodiscard]] bool asks_for_problems(const SweepCommandOptions& options);

/// Makes every option of `pascaline sweep` fill `options`.
void add_sweep_options(CLI::App& command, SweepCommandOptions& options);

/// Throws Error, naming them, if options contradict each other, or one lacks the other that it is about.
void check_together(const SweepCommandOptions& options);

}  // namespace pascaline
