#include "app/sweep/sweep_work.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "app/model/model_observation.hpp"
#include "app/model/model_workload.hpp"
#include "app/sweep/small_shape.hpp"
#include "core/argument_error.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/counted.hpp"
#include "core/workload.hpp"
#include "model/fusion/site_space.hpp"
#include "tuner/sweep/shapes_between.hpp"

namespace pascaline {
namespace {

// A name that nothing has would narrow nothing down, and a typing error tune everything.
void check_symbols(const Workload& workload, const std::vector<std::string>& wanted) {
  std::set<std::string> known;
  for (const WorkloadPhase& phase : workload.phases) {
    for (const auto& [name, values] : phase.symbols) {
      known.insert(name);
    }
  }
  for (const std::string& text : wanted) {
    for (const auto& [name, value] : split_settings(text)) {
      if (!known.contains(name)) {
        throw Error(fmt::format("--symbol {}: {} has no symbol '{}' (it has: {})", text, workload.file, name,
                                known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
      }
    }
  }
}

// A type that no problem has would leave only the kernels without that variable, seldom what is meant.
void check_type_values(const std::vector<std::vector<WorkloadProblem>>& kernels,
                       const std::vector<std::string>& wanted) {
  for (const std::string& text : wanted) {
    for (const auto& [name, value] : split_settings(text)) {
      std::set<std::string> known;
      for (const std::vector<WorkloadProblem>& entries : kernels) {
        for (const WorkloadProblem& entry : entries) {
          for (const auto& [variable, type] : entry.problem.types) {
            if (variable == name) {
              known.insert(std::string(name_of(type)));
            }
          }
        }
      }
      if (!known.empty() && !known.contains(value)) {
        throw Error(fmt::format("--type {}: no problem has {} for {} (there is: {})", text, value, name,
                                fmt::join(known, ", ")));
      }
    }
  }
}

void check_types(const std::vector<Space>& spaces, const std::vector<std::string>& wanted) {
  std::set<std::string> known;
  for (const Space& space : spaces) {
    for (const TypeVariable& variable : space.types) {
      known.insert(variable.name);
    }
  }
  for (const std::string& text : wanted) {
    for (const auto& [name, value] : split_settings(text)) {
      if (!known.contains(name)) {
        throw Error(fmt::format("--type {}: none of the kernels has an element type '{}' (there are: {})", text, name,
                                known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
      }
    }
  }
}

// Of a kernel without that type variable, or a phase without that symbol, all is wanted.
bool has_wanted_types(const WorkloadProblem& problem, const SweepCommandOptions& options) {
  for (const std::string& text : options.types) {
    for (const auto& [name, value] : split_settings(text)) {
      const auto& types = problem.problem.types;
      const auto type =
          std::find_if(types.begin(), types.end(), [&key = name](const auto& entry) { return entry.first == key; });
      if (type != types.end() && name_of(type->second) != value) {
        return false;
      }
    }
  }
  return true;
}

bool is_wanted_value(const std::string& symbol, std::int64_t value, const SweepCommandOptions& options) {
  for (const std::string& text : options.symbols) {
    for (const auto& [name, wanted] : split_settings(text)) {
      if (name == symbol && std::to_string(value) != wanted) {
        return false;
      }
    }
  }
  return true;
}

bool matches(const WorkloadProblem& problem, const SweepCommandOptions& options) {
  return has_wanted_types(problem, options) &&
         std::all_of(problem.symbols.begin(), problem.symbols.end(),
                     [&](const auto& symbol) { return is_wanted_value(symbol.first, symbol.second, options); });
}

void add_calls(SweepProblem& problem, const WorkloadProblem& entry) {
  problem.count += entry.count;
  problem.label += (problem.label.empty() ? "" : "; ") + entry.phase + ": " + entry.names;
  const auto phase = std::find_if(problem.phases.begin(), problem.phases.end(),
                                  [&](const PhaseCalls& known) { return known.phase == entry.phase; });
  if (phase == problem.phases.end()) {
    problem.phases.push_back({entry.phase, entry.count});
  } else {
    phase->count += entry.count;
  }
}

// Each problem once: equal shapes of several phases are tuned together.
void add_problems(const std::vector<WorkloadProblem>& entries, const SweepCommandOptions& options,
                  std::vector<SweepProblem>& problems) {
  std::unordered_map<std::string, std::size_t> known;  // index by text
  for (const WorkloadProblem& entry : entries) {
    if (!matches(entry, options)) {
      continue;
    }
    const auto [twin, is_new] = known.try_emplace(entry.problem.text(), problems.size());
    if (is_new) {
      problems.push_back({entry.problem, 0, ""});
    }
    add_calls(problems[twin->second], entry);
  }
}

std::vector<std::string> kernels_of(const Workload& workload) {
  std::vector<std::string> kernels;
  for (const WorkloadEntry& entry : workload.entries) {
    if (std::find(kernels.begin(), kernels.end(), entry.kernel) == kernels.end()) {
      kernels.push_back(entry.kernel);
    }
  }
  return kernels;
}

// Those asked for, which the workload must have, or all of the workload that can be tuned.
std::vector<Space> spaces_of(const Workload& workload, const SweepCommandOptions& options,
                             std::vector<std::string>& notes) {
  const std::vector<std::string> all = kernels_of(workload);
  std::vector<Space> spaces;
  for (const std::string& kernel : options.kernels) {
    spaces.push_back(options.kernel.load_space(kernel));
    if (std::find(all.begin(), all.end(), kernel) == all.end()) {
      throw Error(
          fmt::format("{} has no problem of kernel '{}' (it has: {})", workload.file, kernel, fmt::join(all, ", ")));
    }
  }
  if (!options.kernels.empty()) {
    return spaces;
  }
  for (const std::string& kernel : all) {
    if (std::filesystem::exists(kernel_file(options.kernel.spaces(), kernel, ".json"))) {
      spaces.push_back(options.kernel.load_space(kernel));
    } else {
      notes.push_back(fmt::format("kernel '{}' of {} has no search space in {}: it is not tuned", kernel, workload.file,
                                  options.kernel.spaces().string()));
    }
  }
  return spaces;
}

// The workload's problems of one phase with one symbol at that value, the others at those that are wanted.
void add_at(const Workload& workload, std::size_t phase, std::size_t symbol, const ValueBetween& between,
            const SweepCommandOptions& options, SweepWork& work) {
  Workload at = workload;
  for (auto& [name, values] : at.phases[phase].symbols) {
    std::erase_if(values,
                  [&key = name, &options](std::int64_t value) { return !is_wanted_value(key, value, options); });
  }
  auto& [name, values] = at.phases[phase].symbols[symbol];
  values = {between.value};
  for (const Space& space : work.spaces) {
    std::vector<WorkloadProblem> entries;
    try {
      entries = expand(at, space, {{at.phases[phase].name}, true});
    } catch (const SpaceError&) {
      continue;  // its shapes exist at the values that the workload names only
    }
    for (WorkloadProblem& entry : entries) {
      if (has_wanted_types(entry, options)) {
        add_between(space, std::move(entry.problem),
                    fmt::format("between {0}={1} and {0}={2}; {3}: {4}", name, between.low, between.high, entry.phase,
                                entry.names),
                    work.problems);
      }
    }
  }
}

// What varies from call to call is what a phase's symbols stand for.
void add_between_symbols(const Workload& workload, const SweepCommandOptions& options, SweepWork& work) {
  for (std::size_t phase = 0; phase < workload.phases.size(); ++phase) {
    const WorkloadPhase& of = workload.phases[phase];
    if (!options.phases.empty() &&
        std::find(options.phases.begin(), options.phases.end(), of.name) == options.phases.end()) {
      continue;
    }
    for (std::size_t symbol = 0; symbol < of.symbols.size(); ++symbol) {
      std::vector<std::int64_t> values = of.symbols[symbol].second;
      std::erase_if(values,
                    [&](std::int64_t value) { return !is_wanted_value(of.symbols[symbol].first, value, options); });
      for (const ValueBetween& between : values_between(std::move(values), kMaxBetween)) {
        add_at(workload, phase, symbol, between, options, work);
      }
    }
  }
}

SweepWork from_workload(const Workload& workload, const SweepCommandOptions& options) {
  SweepWork work;
  check_symbols(workload, options.symbols);
  std::vector<Space> spaces = spaces_of(workload, options, work.notes);
  check_types(spaces, options.types);
  std::vector<std::vector<WorkloadProblem>> entries;  // of each space
  for (const Space& space : spaces) {
    entries.push_back(expand(workload, space, {options.phases, true}));
  }
  check_type_values(entries, options.types);
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    Space& space = spaces[i];
    const std::size_t before = work.problems.size();
    add_problems(entries[i], options, work.problems);
    if (work.problems.size() > before) {
      work.spaces.push_back(std::move(space));
    } else if (!options.kernels.empty()) {
      throw Error(fmt::format("{} has no problem of kernel '{}' that fits --phase, --type and --symbol", workload.file,
                              space.kernel));
    }
  }
  if (work.problems.empty()) {
    throw Error(
        fmt::format("{} has no problem of any kernel here that fits --phase, --type and --symbol", workload.file));
  }
  if (deepens(options.sweep)) {
    add_between_symbols(workload, options, work);
  }
  return work;
}

// Sites are wanted unless only kernels were asked for, or some types or sizes.
bool wants_sites(const SweepCommandOptions& options) {
  return options.types.empty() && options.symbols.empty() &&
         (options.kernels.empty() || std::any_of(options.kernels.begin(), options.kernels.end(),
                                                 [](const std::string& kernel) { return is_site(kernel); }));
}

bool is_wanted(const SweepCommandOptions& options, const std::string& kernel) {
  return options.kernels.empty() ||
         std::find(options.kernels.begin(), options.kernels.end(), kernel) != options.kernels.end();
}

// The problem of the work, added if it is not there; nothing where its kernel is not wanted or has no space.
SweepProblem* wanted_problem(SweepWork& work, const SweepCommandOptions& options, const Problem& problem) {
  const auto known = std::find_if(work.problems.begin(), work.problems.end(),
                                  [&](const SweepProblem& one) { return one.problem == problem; });
  if (known != work.problems.end()) {
    return &*known;
  }
  const bool has_space =
      is_site(problem.kernel) || std::filesystem::exists(kernel_file(options.kernel.spaces(), problem.kernel, ".json"));
  if (!is_wanted(options, problem.kernel) || !has_space) {
    return nullptr;
  }
  if (std::none_of(work.spaces.begin(), work.spaces.end(),
                   [&](const Space& space) { return space.kernel == problem.kernel; })) {
    work.spaces.push_back(options.kernel.load_space(problem.kernel));
  }
  return &work.problems.emplace_back(SweepProblem{problem, 0, ""});
}

bool is_known(const SweepWork& work, const Problem& problem) {
  return std::any_of(work.problems.begin(), work.problems.end(),
                     [&](const SweepProblem& one) { return one.problem == problem; });
}

// Each way to compute a site needs its kernels tuned to be compared. What the model launches as nothing is measured is
// in the work already; these count for its sites and in no phase.
void add_alternatives(SweepWork& work, const SweepCommandOptions& options, const ObservedSite& site) {
  std::map<std::string, std::pair<Problem, std::int64_t>> added;  // launches of one site, by text
  for (const SiteCandidate& candidate : site.candidates) {
    std::map<std::string, std::int64_t> launches;
    for (const Executor::UnrunLaunch& launch : candidate.launches) {
      const Problem problem = launch.problem.named();
      auto& [kept, count] = added[problem.text()];
      kept = problem;
      count = std::max(count, ++launches[problem.text()]);
    }
  }
  for (const auto& [text, entry] : added) {
    const auto& [problem, count] = entry;
    const bool is_new = !is_known(work, problem);
    SweepProblem* const wanted = wanted_problem(work, options, problem);
    if (wanted != nullptr && (is_new || wanted->phases.empty())) {
      wanted->count += static_cast<double>(site.uses * count);
      wanted->label = "in another way to compute a site";
    }
  }
}

// Each problem once.
void add_launches(SweepProblem& of_site, const ObservedSite& site) {
  for (const SiteCandidate& candidate : site.candidates) {
    for (const Executor::UnrunLaunch& launch : candidate.launches) {
      Problem problem = launch.problem.named();
      if (std::ranges::find(of_site.launches, problem) == of_site.launches.end()) {
        of_site.launches.push_back(std::move(problem));
      }
    }
  }
}

void add_sites(SweepWork& work, const SweepCommandOptions& options, const ModelCommandOptions& model) {
  const ObservedModel observed = open_observed(model, options.sizes);
  std::vector<ObservedSite> sites;
  for (const ModelPass& pass : observed.passes) {
    if (!options.phases.empty() &&
        std::find(options.phases.begin(), options.phases.end(), phase_of(pass)) == options.phases.end()) {
      continue;
    }
    for (const ObservedSite& site : observe_sites(*observed.session, pass).sites) {
      if (site.candidates.size() > 1) {
        add_alternatives(work, options, site);
        sites.push_back(site);
      }
    }
  }
  for (const ObservedSite& site : sites) {  // behind all kernels
    if (SweepProblem* const wanted = wanted_problem(work, options, site.key.named())) {
      wanted->count += static_cast<double>(site.uses);
      wanted->label = site.what;
      add_launches(*wanted, site);
    }
  }
}

// What the model launches for a prompt of so many tokens beside those it is tuned for, of which the longest are left
// out where the context has no room for them; nothing if it has none for that one either.
std::optional<ModelWorkload> observe_with(const ModelCommandOptions& model, PassCommandOptions sizes,
                                          std::int64_t tokens) {
  std::sort(sizes.prompts.begin(), sizes.prompts.end());
  for (;;) {
    PassCommandOptions with = sizes;
    with.prompts.push_back(tokens);
    try {
      return observe_workload(model, with, "model");
    } catch (const Error&) {
      if (sizes.prompts.empty() || sizes.prompts.back() < tokens) {
        return std::nullopt;
      }
      sizes.prompts.pop_back();
    }
  }
}

// Of a model what varies is the number of a prompt's tokens: its shapes in between are those that it launches there.
void add_between_prompts(const ModelCommandOptions& model, const SweepCommandOptions& options, SweepWork& work) {
  PassCommandOptions sizes = options.sizes;
  if (sizes.prompts.empty()) {
    sizes.prompts = sizes.usual_prompts;
  }
  for (const ValueBetween& between : values_between(sizes.prompts, kMaxBetween)) {
    const auto observed = observe_with(model, sizes, between.value);
    if (!observed) {
      continue;
    }
    const Workload workload = Workload::parse(observed->text, "the workload of " + model_name(model.folder));
    for (const Space& space : work.spaces) {
      if (is_site(space.kernel)) {
        continue;
      }
      for (WorkloadProblem& entry : expand(workload, space, {options.phases, true})) {
        if (has_wanted_types(entry, options)) {
          add_between(space, std::move(entry.problem),
                      fmt::format("between prompts of {} and {} tokens; {}", between.low, between.high, entry.phase),
                      work.problems);
        }
      }
    }
  }
}

// Asking what the model launches takes neither its weights nor the device.
SweepWork from_model(const SweepCommandOptions& given, const std::string& device) {
  SweepCommandOptions options = given;
  std::erase_if(options.kernels, [](const std::string& kernel) { return is_site(kernel); });
  const bool only_sites = options.kernels.empty() && !given.kernels.empty();
  ModelCommandOptions model = options.model;
  model.device = device;
  model.untuned = true;  // what is launched does not depend on winners
  const ModelWorkload observed = observe_workload(model, options.sizes, "model");
  const Workload workload = Workload::parse(observed.text, "the workload of " + model_name(model.folder));
  SweepWork work = only_sites ? SweepWork() : from_workload(workload, options);
  if (wants_sites(given)) {
    add_sites(work, given, model);
  }
  if (deepens(options.sweep) && !only_sites) {
    add_between_prompts(model, options, work);
  }
  if (work.problems.empty()) {
    throw Error(fmt::format("{} has no site with several ways to compute it that fits --kernel and --phase",
                            model_name(model.folder)));
  }
  const auto to_tune = static_cast<std::size_t>(
      std::ranges::count_if(work.problems, [](const SweepProblem& problem) { return !problem.between; }));
  std::vector<std::string> notes{
      fmt::format("{}, on {}: {} to tune", model.folder, observed.device, counted(to_tune, "problem"))};
  for (const WorkloadPhase& phase : workload.phases) {
    const auto& wanted = options.phases;
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), phase.name) != wanted.end()) {
      notes.push_back(fmt::format("phase {}: {}", phase.name, phase.per));
    }
  }
  work.notes.insert(work.notes.begin(), notes.begin(), notes.end());
  return work;
}

SweepWork from_problems(const SweepCommandOptions& options, const std::string& device) {
  SweepWork work;
  const std::vector<std::string> kernels =
      options.kernels.empty() ? std::vector<std::string>{options.kernel.kernel} : options.kernels;
  for (const std::string& kernel : kernels) {
    work.spaces.push_back(options.kernel.load_space(kernel));
    if (options.kernel.problems.empty() && is_emulator_name(device)) {
      if (auto warning = emulated_shape_warning(work.spaces.back())) {
        work.notes.push_back(std::move(*warning));
      }
    }
    for (Problem& problem : options.kernel.load_problems(work.spaces.back())) {
      const auto twin = std::find_if(work.problems.begin(), work.problems.end(),
                                     [&](const SweepProblem& known) { return known.problem == problem; });
      if (twin == work.problems.end()) {
        work.problems.push_back({std::move(problem), 1, ""});
      } else {
        ++twin->count;
      }
    }
  }
  return work;
}

}  // namespace

SweepWork work_of(const SweepCommandOptions& options, const std::string& device) {
  if (!options.model.folder.empty()) {
    return from_model(options, device);
  }
  return options.workload.empty() ? from_problems(options, device)
                                  : from_workload(Workload::load(options.workload), options);
}

void give_contents(SweepWork& work, const GivenFiles& files, bool is_resumed) {
  for (SweepProblem& wanted : work.problems) {
    const std::string before = std::exchange(wanted.problem.data, "");
    if (!files.empty()) {
      const auto space = std::ranges::find(work.spaces, wanted.problem.kernel, &Space::kernel);
      wanted.problem.data = GivenData(files, BoundSpace(*space, wanted.problem, DeviceLimits())).hash();
      wanted.given = files;
    }
    if ((is_resumed || !before.empty()) && before != wanted.problem.data) {
      throw ArgumentError(fmt::format("{}: measured with {}", wanted.problem.text(),
                                      before.empty()
                                          ? "random contents; leave out --input and --answer"
                                          : "other contents; give the original files with --input and --answer"));
    }
  }
}

void add_shapes_between(SweepWork& work, const SweepOptions& sweep) {
  if (!deepens(sweep) || std::ranges::any_of(work.problems, [](const SweepProblem& problem) {
        return problem.between || !problem.given.empty();
      })) {
    return;
  }
  for (const Space& space : work.spaces) {
    if (!is_site(space.kernel)) {
      std::ranges::move(shapes_between(space, work.problems), std::back_inserter(work.problems));
    }
  }
}

}  // namespace pascaline
