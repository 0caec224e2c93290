#include "cli/tune/rank_against.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "app/measured_compiler.hpp"
#include "cli/command.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/counted.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/static_model/rank_check.hpp"

namespace pascaline::cli {
namespace {

using nlohmann::json;

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

json check_json(const RankCheck& check) {
  json out{{"device", check.device.name},
           {"sm_count", check.device.sm_count},
           {"target", check.toolkit.target},
           {"compiler", check.toolkit.compiler},
           {"version", check.toolkit.version},
           {"problem", check.problem},
           {"trials", check.trials},
           {"skipped", check.skipped},
           {"correlation", check.correlation},
           {"compiled_correlation", check.compiled_correlation},
           {"found", check.found},
           {"compiled_found", check.compiled_found}};
  if (check.code) {
    out["code"] = {
        {"trials", check.code->trials},
        {"correlation", check.code->correlation},
        {"least_correlation", check.code->least},
        {"most_correlation", check.code->most},
        {"compiled_correlation", check.code->compiled_correlation},
        {"measured_conflict", check.code->measured_conflict ? json(*check.code->measured_conflict) : json(nullptr)}};
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
  std::map<std::string, double> measured;  // by device, clocks of a register bank conflict
  for (const RankCheck& check : checks) {
    if (check.code) {
      fmt::print("{:>7} {:>7.3f} {:>7.3f} {:>7.3f} {:>9.3f}  {}\n", check.code->trials, check.code->correlation,
                 check.code->least, check.code->most, check.code->compiled_correlation, clean_line(check.problem));
      if (check.code->measured_conflict) {
        measured[fmt::format("{} with {} SMs", clean_line(check.device.name), check.device.sm_count)] =
            *check.code->measured_conflict;
      }
    }
  }
  for (const auto& [device, slots] : measured) {
    fmt::print("{}: least and most take the {:.2f} issue slots that a register bank conflict was measured to cost.\n",
               device, slots);
  }
}

void print_checks(const std::vector<RankCheck>& checks) {
  std::string device;
  for (const RankCheck& check : checks) {
    const std::string heading = fmt::format("{} with {} SMs, code for {} by {} {}", clean_line(check.device.name),
                                            check.device.sm_count, clean_line(check.toolkit.target),
                                            clean_line(check.toolkit.compiler), clean_line(check.toolkit.version));
    if (heading != device) {
      device = heading;
      fmt::print("{}\n{:>7} {:>7} {:>9} {:>6} {:>11}  {}\n", device, "trials", "rho", "compiled", "found",
                 "found comp.", "problem");
    }
    fmt::print("{:>7} {:>7.3f} {:>9.3f} {:>5.0f}% {:>10.0f}%  {}\n", check.trials, check.correlation,
               check.compiled_correlation, 100 * check.found, 100 * check.compiled_found, clean_line(check.problem));
  }
  fmt::print("Means\n{:>9} {:>7} {:>7} {:>9} {:>6} {:>11}  {}\n", "problems", "trials", "rho", "compiled", "found",
             "found comp.", "kernel");
  for (const auto& [kernel, mean] : means_of(checks)) {
    fmt::print("{:>9} {:>7} {:>7.3f} {:>9.3f} {:>5.0f}% {:>10.0f}%  {}\n", mean.problems, mean.trials, mean.correlation,
               mean.compiled_correlation, 100 * mean.found, 100 * mean.compiled_found, kernel);
  }
}

// A line for each target that nothing here compiles for.
void print_left_out(const std::vector<RankCheck>& checks) {
  std::map<std::pair<std::string, std::string>, std::size_t> left_out;
  for (const RankCheck& check : checks) {
    if (!check.code_missing.empty()) {
      ++left_out[{check.toolkit.target, check.code_missing}];
    }
  }
  for (const auto& [what, problems] : left_out) {
    fmt::print(stderr, "pascaline: estimates from code for {} are left out ({}): {}\n", clean_line(what.first),
               counted(problems, "problem"), clean_line(what.second));
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

}  // namespace

int rank_against(const RankCommandOptions& options, bool one_kernel) {
  RankCheckOptions wanted;
  wanted.min_trials = options.min_trials;
  wanted.kernel = one_kernel ? options.kernel.kernel : "";
  if (one_kernel) {
    (void)options.kernel.load_space();  // a kernel that is not there is a mistake
  }
  wanted.load_space = [&](const std::string& kernel) { return space_if_there(options.kernel, kernel); };
  wanted.compile = options.compile;
  std::set<std::string> replaced;  // compilers that measured and are not here
  wanted.compiler = [&](const BoundSpace& bound, const ToolkitRow& measured, const std::vector<Config>& configs,
                        const std::function<void(const Config&, const Binary&)>& each) {
    VariantOptions variants = options.variants;
    variants.architecture = architecture_of_target(measured.target);
    if (variants.nvrtc.empty() || asks_for_compilers(variants.nvrtc)) {
      variants.nvrtc = wish_of_measured(variants.architecture, measured.version);
    }
    compile_variants(
        bound, variants, configs,
        [&](const CompiledVariant& variant) {
          if (variant.status == TrialStatus::ok) {
            each(variant.config, variant.binary);
          }
          if (variant.compiler.version != measured.version) {
            replaced.insert(fmt::format("estimates from code by {}, in place of {} {}, which measured",
                                        variant.compiler.text(), measured.compiler, measured.version));
          }
        },
        interrupted());
  };
  wanted.adjust = [&](DeviceRates& rates) { options.adjust(rates); };
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
  print_left_out(checks);
  for (const std::string& line : replaced) {
    fmt::print(stderr, "pascaline: {}\n", clean_line(line));
  }
  if (!options.as_json) {
    print_checks(checks);
    print_code_checks(checks);
    return kSuccess;
  }
  json problems = json::array();
  for (const RankCheck& check : checks) {
    problems.push_back(check_json(check));
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

}  // namespace pascaline::cli
