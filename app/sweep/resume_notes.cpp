#include "app/sweep/resume_notes.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/sweep/plan_options.hpp"
#include "app/sweep/sweep_options.hpp"
#include "app/text.hpp"
#include "core/util/counted.hpp"
#include "report/text.hpp"
#include "tuner/sweep/plan_record.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kProblemsShown = 3;

// What the run was begun with and is not in force.
OptionWords paths_missing(const StoredRun& run, const OptionWords& now, const std::set<std::string>& options) {
  OptionWords missing;
  for (const auto& [option, value] : run.plan.paths) {
    const bool same = std::find(now.begin(), now.end(), std::pair(option, value)) != now.end();
    if (options.contains(option) && !same) {
      missing.emplace_back(option, value);
    }
  }
  return missing;
}

std::string asking(const OptionWords& missing) {
  return fmt::format(
      "Pascaline does not open paths stored in a database; give the option{} again if you trust "
      "what is there",
      missing.size() > 1 ? "s" : "");
}

bool is_given(const OptionWords& now, const std::string& option) {
  return std::any_of(now.begin(), now.end(), [&](const auto& given) { return given.first == option; });
}

// A kernel of the run whose files are not what they were; throws if they may just be others of that name.
std::string changed_kernel(const StoredRun& run, const SweepPlan& now, const PlannedKernel& kernel) {
  const auto planned = std::find_if(run.plan.kernels.begin(), run.plan.kernels.end(),
                                    [&](const PlannedKernel& known) { return known.name == kernel.name; });
  const bool is_new = planned == run.plan.kernels.end();
  const bool other_source = !is_new && kernel.source_hash != planned->source_hash;
  const bool other_space = !is_new && kernel.space_hash != planned->space_hash;
  if (!other_source && !other_space) {
    return {};
  }
  const std::string what = other_source && other_space ? "source and the search space"
                           : other_source              ? "source"
                                                       : "search space";
  OptionWords missing = paths_missing(run, now.paths, {"--kernels", "--spaces"});
  std::erase_if(missing, [&](const auto& path) { return is_given(now.paths, path.first); });
  if (!missing.empty()) {
    refuse_run(run, fmt::format("the {} of kernel '{}' found here are not those it was begun with, which lay in "
                                "folders of their own: {}; {}",
                                what, kernel.name, options_text(missing), asking(missing)));
  }
  return fmt::format("warning: the {} of kernel '{}' changed since the run was begun: {}", what, kernel.name,
                     other_source
                         ? "what it measured is kept, but does not count for the new source and is measured again"
                         : "what it measured still counts, and the search continues in the new space");
}

std::string problem_word(const Problem& problem) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : problem.dimensions) {
    settings.push_back(fmt::format("{}={}", name, value));
  }
  for (const auto& [name, type] : problem.types) {
    settings.push_back(fmt::format("{}={}", name, name_of(type)));
  }
  return fmt::format("{}", fmt::join(settings, ","));
}

}  // namespace

std::vector<std::string> resume_notes(const StoredRun& run, const SweepPlan& now) {
  std::vector<std::string> notes;
  for (const PlannedKernel& kernel : now.kernels) {
    if (std::string note = changed_kernel(run, now, kernel); !note.empty()) {
      notes.push_back(std::move(note));
    }
  }
  if (const OptionWords nvrtc = paths_missing(run, now.paths, {"--nvrtc"});
      !nvrtc.empty() && now.nvrtc.empty() && !is_given(now.paths, "--nvrtc")) {
    refuse_run(run, fmt::format("it was begun with {}, and what it measured does not count for another compiler; {}, "
                                "or give the version of an installed one",
                                options_text(nvrtc), asking(nvrtc)));
  }
  OptionWords missing = paths_missing(run, now.paths, {"--cache", "--log", "--sensors"});
  std::erase_if(missing, [&](const auto& path) { return is_given(now.paths, path.first); });
  if (!missing.empty()) {
    notes.push_back(
        fmt::format("the run was begun with {}, which is not used now; {}", options_text(missing), asking(missing)));
  }
  return notes;
}

std::string missing_folders(const StoredRun& run, const CLI::App& command) {
  OptionWords missing = paths_missing(run, {}, {"--kernels", "--spaces"});
  std::erase_if(missing, [&](const auto& path) { return command.count(path.first) > 0; });
  return missing.empty() ? "" : fmt::format("; the run was begun with {}. {}", options_text(missing), asking(missing));
}

std::string resumed_text(const StoredRun& run, const SweepPlan& now) {
  SweepOptions usual_options;
  usual_options.compile.memory_bytes = std::stoull(SweepCommandOptions{}.compile_memory) << 20U;
  const OptionWords standard = options_of(plan_of({}, {}, usual_options));
  std::string text = fmt::format("resuming session {}, started {}: pascaline sweep", fmt::join(run.sessions, ", "),
                                 utc_time(run.started_unix_ms));
  for (const auto& option : options_of(now)) {
    const bool usual = option.first != "--kernel" && option.first != "--devices" && option.first != "--jobs" &&
                       std::find(standard.begin(), standard.end(), option) != standard.end();
    if (!usual) {
      text += " " + option.first + (option.second.empty() ? "" : " " + shell_word(option.second));
    }
  }
  if (now.until_unix_s) {
    text += fmt::format(" --until '{:%Y-%m-%d %H:%M:%S}'", fmt::localtime(static_cast<std::time_t>(*now.until_unix_s)));
  }
  // Shapes can be given on a command line for one kernel only.
  std::vector<PlannedProblem> problems = now.problems;
  std::erase_if(problems, [](const PlannedProblem& problem) { return problem.count == 0; });  // shapes in between
  if (now.kernels.size() > 1) {
    text += fmt::format(" ({})", counted(problems.size(), "problem"));
  } else {
    for (std::size_t i = 0; i < std::min(problems.size(), kProblemsShown); ++i) {
      text += " --problem " + shell_word(problem_word(problems[i].problem));
    }
    if (problems.size() > kProblemsShown) {
      text += fmt::format(" (and {} more)", problems.size() - kProblemsShown);
    }
  }
  text += now.paths.empty() ? "" : " " + options_text(now.paths);
  return clean_line(text);
}

}  // namespace pascaline
