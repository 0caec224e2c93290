#include "cli/tune/portfolio_estimate.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "app/text.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "core/workload.hpp"
#include "tuner/portfolio/estimated_times.hpp"
#include "tuner/portfolio/portfolio_file.hpp"

namespace pascaline::cli {
namespace {

// How much slower, alone, a configuration may be estimated that is taken where estimates tell no difference.
constexpr double kNear = 1.15;

std::vector<DeviceRates> cards_of(const PortfolioEstimateOptions& options) {
  std::vector<DeviceRates> cards;
  for (const int sm_count : options.sm_counts) {
    auto limits = limits_of_architecture(options.architecture);
    if (!limits) {
      throw Error(
          fmt::format("unknown architecture '{}': give one from sm_50 to sm_62, such as sm_61", options.architecture));
    }
    limits->sm_count = sm_count;
    cards.push_back(typical_rates(options.architecture, *limits).value());
  }
  return cards;
}

// Each kernel's problems, each once, of those kernels or of all that the workloads have.
std::map<std::string, std::vector<Problem>> problems_of(const PortfolioEstimateOptions& options,
                                                        const KernelOptions& kernel,
                                                        const std::vector<std::string>& kernels) {
  std::map<std::string, std::vector<Problem>> problems;
  for (const std::string& file : options.workloads) {
    const Workload workload = Workload::load(file);
    std::set<std::string> names(kernels.begin(), kernels.end());
    if (names.empty()) {
      for (const WorkloadEntry& entry : workload.entries) {
        names.insert(entry.kernel);
      }
    }
    for (const std::string& name : names) {
      if (kernels.empty() && !std::filesystem::exists(kernel_file(kernel.spaces(), name, ".json"))) {
        continue;
      }
      std::vector<Problem>& list = problems[name];
      for (const WorkloadProblem& entry : expand(workload, kernel.load_space(name), {{}, true})) {
        if (std::find(list.begin(), list.end(), entry.problem) == list.end()) {
          list.push_back(entry.problem);
        }
      }
    }
  }
  for (const std::string& name : options.workloads.empty() ? std::vector<std::string>{} : kernels) {
    if (problems[name].empty()) {
      throw Error(fmt::format("no --workload that was given has a shape of kernel '{}'", clean_line(name)));
    }
  }
  if (options.workloads.empty()) {
    for (const std::string& name : kernels) {
      problems[name] = kernel.load_problems(kernel.load_space(name));
    }
  }
  std::erase_if(problems, [](const auto& entry) { return entry.second.empty(); });
  if (problems.empty()) {
    throw Error("there is no problem to choose a portfolio for: give --workload, or --kernel with --problem");
  }
  return problems;
}

// The rows of one card.
TimeMatrix of_card(const EstimatedTimes& estimated, std::size_t card) {
  TimeMatrix out;
  out.configs = estimated.times.configs;
  for (std::size_t i = 0; i < estimated.times.rows.size(); ++i) {
    if (estimated.cards[i] == card) {
      out.rows.push_back(estimated.times.rows[i]);
    }
  }
  return out;
}

std::string ratio_text(double value) { return fmt::format("{:.3f}", value); }

std::string changes_text(const Config& config, const Config& standard) {
  std::string text;
  for (const auto& [name, value] : config.settings()) {
    if (*standard.find(name) != value) {
      text += fmt::format(" {}={}", name, setting_text(value));
    }
  }
  return text;
}

void print_estimated(std::FILE* to, const std::string& kernel, const PortfolioEstimateOptions& options,
                     const std::vector<Problem>& problems, const EstimatedTimes& estimated,
                     const PortfolioChoice& choice, std::size_t chosen) {
  fmt::print(to, "{} for {}: {} problems, {} configurations compiled; {} members by estimate, {} by distance\n",
             clean_line(kernel), options.architecture, problems.size(), estimated.configs.size(), chosen,
             choice.members.size() - 1 - chosen);
  std::vector<std::vector<std::string>> rows{{"members"}};
  for (const int sm_count : options.sm_counts) {
    rows[0].push_back(fmt::format("mean, {} SMs", sm_count));
    rows[0].emplace_back("worst");
    rows[0].emplace_back("not covered");
  }
  for (std::size_t count = 1; count <= choice.members.size(); ++count) {
    const std::vector<std::size_t> members(choice.members.begin(),
                                           choice.members.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(std::to_string(count - 1));
    for (std::size_t card = 0; card < options.sm_counts.size(); ++card) {
      const PortfolioQuality quality = portfolio_quality(of_card(estimated, card), members);
      row.push_back(ratio_text(quality.mean));
      row.push_back(ratio_text(quality.worst));
      row.push_back(std::to_string(quality.uncovered));
    }
  }
  fmt::print(to, "{}", aligned_columns(rows));
  for (std::size_t i = 1; i < choice.members.size(); ++i) {
    fmt::print(to, "  {}.{}\n", i, changes_text(estimated.configs[choice.members[i]], estimated.configs.front()));
  }
  const PortfolioQuality& last = choice.quality.back();
  fmt::print(to, "  worst: {}, {}\n\n", clean_line(problems[estimated.problems[last.worst_row]].text()),
             estimated.groups[estimated.times.rows[last.worst_row].group]);
}

}  // namespace

void add_portfolio_estimate_options(CLI::App& command, PortfolioEstimateOptions& options) {
  options.variants.jobs = default_jobs();
  command
      .add_option("-w,--workload", options.workloads, "With --estimate: the shapes of this workload file (repeatable)")
      ->check(CLI::ExistingFile);
  command.add_option("--sm-count", options.sm_counts, "With --estimate: multiprocessors of the cards, e.g. 20,3")
      ->delimiter(',')
      ->capture_default_str()
      ->transform(whole_number(1, 1024));
  command.add_option("--compile", options.compile, "With --estimate: configurations to compile")
      ->capture_default_str()
      ->transform(whole_number(2, 100'000));
  command.add_option(
      "--same-code", options.same_code,
      "With --estimate: a macro computed from the problem, to be taken to leave the code as it is: fewer "
      "kernels are compiled (repeatable)");
  command.add_option("--seed", options.variants.seed, "With --estimate: seed of what is drawn")
      ->capture_default_str()
      ->transform(any_unsigned());
  command.add_option("-j,--jobs", options.variants.jobs, "With --estimate: compile workers (default: every processor)")
      ->transform(whole_number(1, 1024));
  command.add_option("--nvrtc", options.variants.nvrtc, std::string("With --estimate: ") + kNvrtcChoiceHelp)
      ->transform(nvrtc_choice());
  command.add_option("--cache", options.cache,
                     "With --estimate: folder for compiled kernels (default: ~/.cache/pascaline)");
}

int estimate_portfolios(PortfolioEstimateOptions options, const KernelOptions& kernel,
                        const std::vector<std::string>& kernels, std::size_t size, bool as_json) {
  options.architecture = options.architecture.empty() ? "sm_61" : options.architecture;
  EstimateOptions wanted;
  wanted.cards = cards_of(options);
  wanted.variants = options.variants;
  wanted.variants.architecture = options.architecture;
  wanted.variants.kernels = kernel.kernels();
  wanted.variants.cache = options.cache.empty() ? cache_folder() : std::filesystem::path(options.cache);
  wanted.pool = options.compile;
  wanted.same_code = options.same_code;
  const bool tells = ::isatty(STDERR_FILENO) != 0;
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, problems] : problems_of(options, kernel, kernels)) {
    const Space space = kernel.load_space(name);
    const auto told = [&, &shown = name](std::size_t compiled) {
      if (tells) {
        fmt::print(stderr, "\r\033[K{}: {} of {} configurations", shown, compiled, options.compile);
        std::fflush(stderr);
      }
    };
    const EstimatedTimes estimated = estimate_times(space, problems, wanted, told, interrupted());
    if (tells) {
      fmt::print(stderr, "\r\033[K");
    }
    if (interrupted()) {
      return kInterrupted;
    }
    PortfolioChoice choice = choose_portfolio(estimated.times, {0}, size);
    const std::size_t chosen = choice.members.size() - 1;
    spread_out(space, estimated, size, kNear, choice);
    std::FILE* const to = as_json ? stderr : stdout;
    print_estimated(to, name, options, problems, estimated, choice, chosen);
    std::fflush(to);
    std::vector<Config> members;
    for (std::size_t i = 1; i < choice.members.size(); ++i) {
      members.push_back(estimated.configs[choice.members[i]]);
    }
    out[name] = portfolio_json(space, options.architecture, members);
  }
  if (as_json) {
    fmt::print("{}\n", out.dump(1));
  }
  return kSuccess;
}

}  // namespace pascaline::cli
