#include "app/sweep/resume.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "app/sweep/plan_options.hpp"
#include "core/error.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kLongestLabel = 1000;

// The option and what else of the plan it takes the place of.
const std::map<std::string, std::set<std::string>> kReplaces{
    {"--device", {"--devices"}},
    {"--until", {"--until-unix"}},
    {"--objective", {"--finalists"}},  // which have another default each
};
// What every resuming command says for itself.
const std::set<std::string> kOwn{"--resume", "--db"};

// CLI11 itself names no hidden ones; every option of `sweep` has a long name.
std::string name_of_option(const CLI::Option& option) { return "--" + option.get_lnames().front(); }

std::set<std::string> given_by(const CLI::App& command) {
  std::set<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) {
      names.insert(name_of_option(*option));
      if (const auto others = kReplaces.find(name_of_option(*option)); others != kReplaces.end()) {
        names.insert(others->second.begin(), others->second.end());
      }
    }
  }
  return names;
}

// The options given, under their long names and one value each, whatever way they were written.
std::vector<std::string> given_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of_option(*option);
    if (option->count() == 0 || kOwn.contains(name)) {
      continue;
    }
    std::vector<std::string> values = option->results();
    if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast ||
        option->get_items_expected_max() == 0) {
      values = {values.back()};
    }
    if (option->get_items_expected_min() > 1) {  // a value each would be too few
      words.push_back(name);
      words.insert(words.end(), values.begin(), values.end());
      continue;
    }
    for (const std::string& value : values) {
      words.push_back(name + "=" + value);
    }
  }
  return words;
}

FileOptions file_options(const StoredRun& run, const OptionWords& words) {
  try {
    return FileOptions(words);
  } catch (const Error& error) {
    refuse_run(run, error.what());
  }
}

bool has_kernel(const SweepPlan& plan, const std::string& kernel) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(),
                     [&](const PlannedKernel& known) { return known.name == kernel; });
}

std::vector<std::string> kernel_names(const SweepPlan& plan) {
  std::vector<std::string> names;
  std::transform(plan.kernels.begin(), plan.kernels.end(), std::back_inserter(names),
                 [](const PlannedKernel& kernel) { return kernel.name; });
  return names;
}

// Of whole characters: only UTF-8 can be stored.
std::string short_label(const std::string& stored) {
  std::string label = clean_line(stored);
  if (label.size() > kLongestLabel) {
    std::size_t end = kLongestLabel;
    while ((static_cast<unsigned char>(label[end]) & 0xC0U) == 0x80U) {
      --end;
    }
    label.resize(end);
  }
  return label;
}

void check_calls(const StoredRun& run, const Problem& problem, double calls) {
  if (!std::isfinite(calls) || calls < 0) {
    refuse_run(run, fmt::format("its plan says that {} is called {} times", problem.text(), calls));
  }
}

SweepProblem resumed_problem(const StoredRun& run, const PlannedProblem& planned, const Space& space) {
  try {
    space.check(planned.problem);
  } catch (const Error& error) {
    refuse_run(run, fmt::format("its plan has a problem that does not fit {}: {}; give --problem or --workload",
                                space.file, error.what()));
  }
  SweepProblem problem{planned.problem, planned.count, short_label(planned.label)};
  problem.part = planned.part;
  problem.between = planned.count == 0;
  check_calls(run, planned.problem, planned.count);
  for (const PhaseCalls& phase : planned.phases) {
    check_calls(run, planned.problem, phase.count);
    problem.phases.push_back({short_label(phase.phase), phase.count});
  }
  return problem;
}

}  // namespace

SweepCommandOptions planned_options(const StoredRun& run, const OptionWords& planned, const CLI::App& command) {
  std::set<std::string> given = given_by(command);
  if (given.contains("--model") || given.contains("--workload")) {
    given.insert("--kernel");  // another plan: all of its kernels
  }
  std::vector<std::string> words;
  const FileOptions of_file = file_options(run, planned);
  for (const auto& option : of_file.words()) {
    if (!given.contains(option.first)) {
      words.push_back(word_of(option));
    }
  }
  const std::vector<std::string> own = given_words(command);
  words.insert(words.end(), own.begin(), own.end());
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  CLI::App app;
  SweepCommandOptions options;
  add_sweep_options(app, options);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    refuse_run(run, error.what());
  }
  options.trials_given = app.count("--trials") > 0;
  options.finalists_given = app.count("--finalists") > 0;
  if (!given.contains("--jobs")) {
    // More compile workers would slow each other down on this machine.
    options.sweep.compile.jobs = std::min(options.sweep.compile.jobs, default_jobs());
  }
  return options;
}

SweepCommandOptions resumed_options(const StoredRun& run, const OptionWords& more, const CLI::App& command) {
  OptionWords planned = options_of(run.plan);
  for (const auto& option : more) {
    if (std::ranges::none_of(planned, [&](const auto& known) { return known.first == option.first; })) {
      planned.push_back(option);
    }
  }
  SweepCommandOptions options = planned_options(run, planned, command);
  if (!given_by(command).contains("--until")) {
    options.until_unix_s = run.plan.until_unix_s;
  }
  options.sweep.record.resume_run = run.uuid;
  if (!asks_for_problems(options)) {
    for (const std::string& kernel : options.kernels) {
      if (!has_kernel(run.plan, kernel)) {
        refuse_run(run, fmt::format("its problems are of kernel '{}', not of '{}'; give --problem or --workload, too",
                                    fmt::join(kernel_names(run.plan), ", "), kernel));
      }
    }
  }
  return options;
}

std::vector<SweepProblem> resumed_problems(const StoredRun& run, const std::vector<Space>& spaces) {
  std::vector<SweepProblem> problems;
  for (const PlannedProblem& planned : run.plan.problems) {
    const std::string& kernel = planned.problem.kernel;
    const auto space = std::find_if(spaces.begin(), spaces.end(), [&](const Space& s) { return s.kernel == kernel; });
    if (space == spaces.end()) {
      if (!has_kernel(run.plan, kernel)) {
        refuse_run(run, fmt::format("its plan holds a problem of kernel '{}', which it does not name", kernel));
      }
      continue;  // narrowed down by --kernel
    }
    problems.push_back(resumed_problem(run, planned, *space));
  }
  if (problems.empty()) {
    refuse_run(run, "its plan has no problem; give --problem, --workload or --model");
  }
  return problems;
}

}  // namespace pascaline
