#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "app/data/known_names.hpp"
#include "app/text.hpp"
#include "cli/command.hpp"
#include "cli/tune/portfolio_estimate.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/portfolio/measured_times.hpp"
#include "tuner/portfolio/portfolio_file.hpp"

namespace pascaline::cli {
namespace {

using PortfolioOutput = nlohmann::ordered_json;

struct PortfolioCommandOptions {
  KernelOptions kernel;
  std::vector<std::string> kernels;
  std::string database;
  MeasuredTimesFilter filter;
  std::string architecture;
  std::size_t size = 7;
  std::size_t keep = 0;   // of the portfolio that there is, the first so many
  std::size_t pool = 0;   // 0: a portfolio is chosen
  std::size_t first = 0;  // 0: likewise
  bool estimate = false;
  PortfolioEstimateOptions estimates;
  bool as_json = false;
};

struct MeasuredKernel {
  Space space;
  MeasuredTimes times;
};

// What is stored of the kernels asked for that have a search space.
std::vector<MeasuredKernel> measured_kernels(const PortfolioCommandOptions& options) {
  const Store store(database_path(options.database), OpenMode::read_only);
  for (const std::string& kernel : options.kernels) {
    require_known_kernel(store, kernel);
  }
  require_known_device(store, options.filter.device);
  std::vector<MeasuredKernel> found;
  for (MeasuredTimes& times : measured_times(store, options.filter)) {
    const bool wanted = options.kernels.empty() || std::find(options.kernels.begin(), options.kernels.end(),
                                                             times.kernel) != options.kernels.end();
    if (wanted && !why_no_kernel_name(times.kernel) &&
        std::filesystem::exists(kernel_file(options.kernel.spaces(), times.kernel, ".json"))) {
      found.push_back({options.kernel.load_space(times.kernel), std::move(times)});
    }
  }
  if (found.empty()) {
    throw Error(fmt::format("{} has no usable trial of {}that fits; measure some with pascaline sweep",
                            store.file().string(),
                            options.kernels.empty() ? "a kernel with a search space " : "those kernels "));
  }
  return found;
}

std::string place_of(const MeasuredKernel& kernel) {
  return fmt::format("{} on {} ({})", clean_line(kernel.times.kernel), clean_line(kernel.times.device.name),
                     clean_line(describe(kernel.times.toolkit)));
}

std::string architecture_for(const PortfolioCommandOptions& options, const MeasuredKernel& kernel) {
  return options.architecture.empty() ? portfolio_architecture(kernel.space, kernel.times.limits())
                                      : options.architecture;
}

void print_all(const PortfolioOutput& out) { fmt::print("{}\n", out.dump(1)); }

std::string ratio(double value) { return fmt::format("{:.3f}", value); }

// The member as what differs from the one before all others.
std::string difference(const Config& config, const Config& standard) {
  std::string text;
  for (const auto& [name, value] : config.settings()) {
    const Value* other = standard.find(name);
    if (other == nullptr || *other != value) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, setting_text(value));
    }
  }
  return text.empty() ? "the default" : text;
}

void print_choice(const MeasuredKernel& kernel, const MeasuredMatrix& matrix, const PortfolioChoice& choice) {
  fmt::print("{}: {} problems, {} configurations that are near the best for one\n", place_of(kernel),
             kernel.times.problems.size(), matrix.configs.size());
  std::vector<std::vector<std::string>> rows{{"members", "mean", "worst", "not covered"}};
  const std::size_t kept = choice.members.size() - choice.quality.size();  // beside the default
  for (std::size_t i = 0; i < choice.quality.size(); ++i) {
    const PortfolioQuality& quality = choice.quality[i];
    rows.push_back(
        {std::to_string(kept + i), ratio(quality.mean), ratio(quality.worst), std::to_string(quality.uncovered)});
  }
  fmt::print("{}", aligned_columns(rows));
  for (std::size_t i = 1; i < choice.members.size(); ++i) {
    fmt::print("  {}. {}\n", i,
               clean_line(difference(matrix.configs[choice.members[i]], matrix.configs[choice.members[0]])));
  }
  const PortfolioQuality& last = choice.quality.back();
  fmt::print("  worst: {}\n\n", clean_line(kernel.times.problems[last.worst_row].problem.text()));
}

// Of the portfolio that a search on that device begins with, those that stay.
std::vector<Config> kept_members(const PortfolioCommandOptions& options, const MeasuredKernel& kernel) {
  std::vector<Config> members = kernel.space.portfolio_for(kernel.times.limits());
  members.resize(std::min({members.size(), options.keep, options.size}));
  return members;
}

int choose(const PortfolioCommandOptions& options, const std::vector<MeasuredKernel>& kernels) {
  PortfolioOutput out = PortfolioOutput::object();
  for (const MeasuredKernel& kernel : kernels) {
    const std::vector<Config> kept = kept_members(options, kernel);
    const MeasuredMatrix matrix = matrix_of(kernel.times, kernel.space, kept);
    std::vector<std::size_t> given(1 + kept.size());
    std::iota(given.begin(), given.end(), std::size_t{0});
    const PortfolioChoice choice = choose_portfolio(matrix.times, given, options.size - kept.size());
    if (!options.as_json) {
      print_choice(kernel, matrix, choice);
      continue;
    }
    std::vector<Config> members;
    for (std::size_t i = 1; i < choice.members.size(); ++i) {
      members.push_back(matrix.configs[choice.members[i]]);
    }
    out[kernel.times.kernel] = portfolio_json(kernel.space, architecture_for(options, kernel), members);
  }
  if (options.as_json) {
    print_all(out);
  }
  return kSuccess;
}

int list_fastest(const PortfolioCommandOptions& options, const std::vector<MeasuredKernel>& kernels) {
  PortfolioOutput out = PortfolioOutput::object();
  for (const MeasuredKernel& kernel : kernels) {
    out[kernel.times.kernel] = portfolio_json(kernel.space, architecture_for(options, kernel),
                                              fastest_of_each(kernel.times, kernel.space, options.pool));
  }
  print_all(out);
  return kSuccess;
}

/// How the first trials of problems compare with all of them.
struct FirstTrials {
  std::size_t problems = 0;
  std::size_t without = 0;  // of them, those whose first trials gave nothing usable
  double log_sum = 0;
  double worst = 1;
  std::string worst_problem;
};

FirstTrials compare_first(const MeasuredTimes& times, std::size_t first) {
  FirstTrials out;
  for (const MeasuredProblem& problem : times.problems) {
    const double early = problem.best_us(first);
    const double best = problem.best_us();
    ++out.problems;
    if (!std::isfinite(early)) {
      ++out.without;
      continue;
    }
    out.log_sum += std::log(early / best);
    if (early / best >= out.worst) {
      out.worst = early / best;
      out.worst_problem = problem.problem.text();
    }
  }
  return out;
}

int judge_first(const PortfolioCommandOptions& options, const std::vector<MeasuredKernel>& kernels) {
  PortfolioOutput out = PortfolioOutput::object();
  std::vector<std::vector<std::string>> rows{{"kernel", "problems", "mean", "worst", "none usable"}};
  std::string worst;
  for (const MeasuredKernel& kernel : kernels) {
    const FirstTrials result = compare_first(kernel.times, options.first);
    const std::size_t compared = result.problems - result.without;
    const double mean = compared > 0 ? std::exp(result.log_sum / static_cast<double>(compared)) : 1;
    rows.push_back({clean_line(kernel.times.kernel), std::to_string(result.problems), compared > 0 ? ratio(mean) : "-",
                    compared > 0 ? ratio(result.worst) : "-", std::to_string(result.without)});
    worst += fmt::format("worst of {}: {}\n", clean_line(kernel.times.kernel), clean_line(result.worst_problem));
    out[kernel.times.kernel] = {{"device", kernel.times.device.name},
                                {"target", kernel.times.toolkit.target},
                                {"problems", result.problems},
                                {"none_usable", result.without},
                                {"mean", compared > 0 ? PortfolioOutput(mean) : PortfolioOutput()},
                                {"worst", compared > 0 ? PortfolioOutput(result.worst) : PortfolioOutput()},
                                {"worst_problem", result.worst_problem}};
  }
  if (options.as_json) {
    print_all(out);
  } else {
    fmt::print("best of the first {} trials over the best of all\n{}{}", options.first, aligned_columns(rows), worst);
  }
  return kSuccess;
}

int portfolio(const PortfolioCommandOptions& options) {
  if (!options.architecture.empty() && !options.as_json && options.pool == 0) {
    throw UsageError("--architecture is for what --json and --pool print: give one of them, too");
  }
  if (options.estimate) {
    catch_interrupts();
    PortfolioEstimateOptions estimates = options.estimates;
    estimates.architecture = options.filter.target;
    return estimate_portfolios(estimates, options.kernel, options.kernels, options.size, options.as_json);
  }
  const std::vector<MeasuredKernel> kernels = measured_kernels(options);
  return options.pool > 0    ? list_fastest(options, kernels)
         : options.first > 0 ? judge_first(options, kernels)
                             : choose(options, kernels);
}

// Options that would be ignored are refused: what the user meant was something else.
void refuse_what_portfolio_ignores(CLI::App& command) {
  CLI::Option* const estimate = command.get_option("--estimate");
  for (const char* estimating : {"--workload", "--problem", "--sm-count", "--compile", "--same-code", "--seed",
                                 "--jobs", "--nvrtc", "--cache"}) {
    command.get_option(estimating)->needs(estimate);
  }
  command.get_option("--workload")->excludes("--problem");
  for (const char* measured : {"--db", "--device-name", "--keep", "--pool", "--first", "--architecture"}) {
    estimate->excludes(measured);
  }
  for (const char* choosing : {"--size", "--keep", "--first"}) {
    command.get_option("--pool")->excludes(choosing);
  }
  for (const char* choosing : {"--size", "--keep", "--architecture"}) {
    command.get_option("--first")->excludes(choosing);
  }
}

void add_portfolio_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("portfolio", "Choose the few configurations of each kernel that searches should begin with");
  const auto options = std::make_shared<PortfolioCommandOptions>();
  add_database_option(*command, options->database, "Database with the measured trials");
  command->add_option("-k,--kernel", options->kernels, "Only this kernel (repeatable)");
  options->kernel.add_folders_to(*command);
  command->add_option("--device-name", options->filter.device, "Only what this device measured")->check(not_empty());
  command->add_option("--target", options->filter.target, "Only code for this target, e.g. sm_61")->check(not_empty());
  command->add_option("--size", options->size, "Configurations at most, beside the default")
      ->capture_default_str()
      ->transform(whole_number(1, 16));
  command
      ->add_option("--keep", options->keep,
                   "The first so many of the search space's own portfolio stay and count; the others are chosen "
                   "beside them")
      ->capture_default_str()
      ->transform(whole_number(0, 16));
  command
      ->add_option("--pool", options->pool,
                   "Print, as a file for sweep --portfolio, this many of the fastest configurations of each problem")
      ->transform(whole_number(1, 1000));
  command
      ->add_option("--first", options->first,
                   "Print how near the best of this many first trials of each problem comes to the best of all")
      ->transform(whole_number(1, 1'000'000));
  command->add_option(
      "--architecture", options->architecture,
      "With --json or --pool: print the portfolio as this architecture's own, e.g. sm_61 (default: of the device's "
      "if the search space has anything of its own for it, else the general one)");
  command->add_flag("--estimate", options->estimate,
                    "Choose by estimates from machine code for --target (sm_50 to sm_62; default sm_61) instead of "
                    "measurements: no GPU needed");
  add_portfolio_estimate_options(*command, options->estimates);
  options->kernel.add_problems_to(*command);
  refuse_what_portfolio_ignores(*command);
  command->add_flag("--json", options->as_json,
                    "Print JSON, a portfolio in the form that a search space has it (with --estimate the table goes to "
                    "standard error)");
  command->footer(
      "Mean (geometric) and worst are of the best member's time over the best known, over all problems of the kernel. "
      "A\nconfiguration counts for the problems that it was measured for: measure those that may be good on all of "
      "them.\n\nExamples:\n"
      "  pascaline sweep --workload shapes.json --db tuned.db\n"
      "  pascaline portfolio --db tuned.db --pool 3 > pool.json\n"
      "  pascaline sweep --workload shapes.json --db tuned.db --searcher none --portfolio pool.json\n"
      "  pascaline portfolio --db tuned.db --json\n"
      "  pascaline portfolio --db tuned.db --first 8\n"
      "  pascaline portfolio --estimate --target sm_61 --sm-count 20,3 --workload shapes.json --nvrtc all");
  command->callback([&action, options] { action = [options] { return portfolio(*options); }; });
}

const Command kPortfolioCommand(Heading::tune, 11, add_portfolio_command);

}  // namespace

}  // namespace pascaline::cli
