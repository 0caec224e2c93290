#include "tuner/bundle/bundle_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/counted.hpp"
#include "core/version.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/bundle/bundle_plan.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> kernel_names(const fs::path& spaces) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(spaces, error)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  if (error || names.empty()) {
    throw Error(fmt::format("there are no search spaces in {}: {}; give their folder with --spaces", spaces.string(),
                            error ? error.message() : "no .json file"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Makes one bundle.
class BundleMaker {
 public:
  BundleMaker(const BundleTarget& target, const BundleMakerOptions& options)
      : target_(target),
        options_(options),
        compilers_(compilers_at_hand({target.architecture, target.kind, target.limits}, target.driver_version,
                                     options.nvrtc)) {
    Bundle& bundle = made_.bundle;
    bundle.program_version = kVersion;
    bundle.architecture = target.architecture;
    bundle.kind = target.kind;
    bundle.limits = target.limits;
    bundle.device = target.device;
    DeviceInfo device;
    device.driver_version = target.driver_version;
    for (const CompilerInfo& compiler : compilers_) {
      here_.push_back(toolkit_row(compiler, {target.architecture, target.kind, target.limits}, device));
    }
    bundle.toolkits = {here_.front()};
  }

  void plan() {
    const std::vector<std::string> names = kernel_names(options_.spaces);
    check_workloads(names);
    kernels_.reserve(names.size());
    for (const std::string& name : names) {
      kernels_.push_back(load_kernel(name));
    }
    std::vector<std::vector<Problem>> problems;
    for (const TunedKernel& kernel : kernels_) {
      problems.push_back(problems_of(kernel));
    }
    share(problems);
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      plan_kernel(kernels_[i], problems[i]);
    }
    const auto sites = std::count_if(target_.winners.begin(), target_.winners.end(),
                                     [](const Winner& winner) { return is_site(winner.kernel.name); });
    if (sites > 0) {
      warn(
          fmt::format("the winners of {} of models are left out: a bundle has kernels only, and with it sites are "
                      "computed as is estimated, or as --fusion FILE says",
                      counted(sites, "site")));
    }
    for (const Winner& winner : target_.winners) {
      if (is_site(winner.kernel.name)) {
        continue;
      }
      if (!std::binary_search(names.begin(), names.end(), winner.kernel.name)) {
        warn(fmt::format("the winner of {} is left out: its kernel is not in {}", winner.trial.problem.text(),
                         options_.spaces.string()));
      }
    }
  }

  void compile(const std::function<void(std::size_t, std::size_t)>& progress, const std::atomic<bool>& stop) {
    CompilePool pool({.workers = std::min(options_.jobs, std::max<std::size_t>(1, requests_.size())),
                      .program = {},
                      .cache_folder = options_.cache,
                      .architecture = target_.architecture,
                      .nvrtc = target_.kind == BinaryKind::host_object ? "" : compilers_.front().path});
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      pool.submit(i, requests_[i].request);
    }
    std::vector<CompileResult> results(requests_.size());
    std::size_t done = 0;
    while (pool.pending() > 0 && !stop) {
      progress(requests_.size(), done);
      if (auto compiled = pool.wait(std::chrono::milliseconds(200))) {
        results[compiled->id] = std::move(compiled->result);
        ++done;
      }
    }
    progress(requests_.size(), done);
    made_.stopped = done < requests_.size();
    for (std::size_t i = 0; i < results.size() && !made_.stopped; ++i) {
      keep(requests_[i], std::move(results[i]));
    }
  }

  [[nodiscard]] MadeBundle take() {
    std::vector<BundleKernel>& kernels = made_.bundle.kernels;
    const bool nothing_fits = kernels.empty();
    std::erase_if(kernels, [](const BundleKernel& kernel) { return kernel.codes.empty() && kernel.winners.empty(); });
    const auto has_code = [](const BundleKernel& kernel) { return !kernel.codes.empty(); };
    if (!made_.stopped && std::none_of(kernels.begin(), kernels.end(), has_code)) {
      throw Error(fmt::format("there is nothing to bundle{}{}",
                              made_.warnings.empty() ? "" : ": " + made_.warnings.front(),
                              nothing_fits ? "" : "; give winners (--db) or problems (--workload)"));
    }
    return std::move(made_);
  }

 private:
  struct Request {
    std::size_t kernel;  // index in the bundle
    Problem problem;
    CompileRequest request;
    std::size_t toolkit;  // index in the bundle's
  };

  void warn(std::string text) { made_.warnings.push_back(std::move(text)); }

  void check_workloads(const std::vector<std::string>& names) const {
    for (const Workload& workload : options_.workloads) {
      for (const WorkloadEntry& entry : workload.entries) {
        if (!std::binary_search(names.begin(), names.end(), entry.kernel)) {
          throw Error(
              fmt::format("{} names kernel '{}', which is not in {}; give its folders with --kernels and "
                          "--spaces",
                          workload.file, entry.kernel, options_.spaces.string()));
        }
      }
    }
  }

  // One winner a problem: the first that is valid, as a dispatcher takes them.
  void sort_winners(TunedKernel& kernel) {
    std::vector<Winner> kept;
    for (Winner& winner : kernel.winners) {
      if (!kept.empty() && same_shape(kept.back().trial.problem, winner.trial.problem)) {
        continue;
      }
      try {
        const BoundSpace bound(kernel.space, winner.trial.problem, target_.limits);
        if (const auto why = bound.why_invalid(winner.trial.config)) {
          throw Error(*why);
        }
        kept.push_back(std::move(winner));
      } catch (const Error& error) {
        warn(fmt::format("the winner of {} is left out: {}", winner.trial.problem.text(), error.what()));
      }
    }
    kernel.winners = std::move(kept);
    for (const RefusedWinner& refused : kernel.refused) {
      const bool has_another = std::any_of(kernel.winners.begin(), kernel.winners.end(), [&](const Winner& winner) {
        return same_shape(winner.trial.problem, refused.problem);
      });
      if (!has_another) {
        warn(fmt::format("the winner of {} is left out: {}", refused.problem.text(), refused.why));
      }
    }
    kernel.refused.clear();
  }

  [[nodiscard]] TunedKernel load_kernel(const std::string& name) {
    std::vector<Winner> winners;
    std::copy_if(target_.winners.begin(), target_.winners.end(), std::back_inserter(winners),
                 [&](const Winner& winner) { return winner.kernel.name == name; });
    const Space space = Space::load(kernel_file(options_.spaces, name, ".json"));
    TunedKernel kernel = make_tuned_kernel(space, KernelSource::load(kernel_file(options_.kernels, name, ".cu"), space),
                                           std::move(winners), here_);
    sort_winners(kernel);
    return kernel;
  }

  [[nodiscard]] std::vector<Problem> problems_of(const TunedKernel& kernel) const {
    std::vector<Problem> problems;
    for (const Winner& winner : kernel.winners) {
      problems.push_back(winner.trial.problem);
    }
    for (const Workload& workload : options_.workloads) {
      for (WorkloadProblem& known : expand(workload, kernel.space, {{}, true})) {
        problems.push_back(std::move(known.problem));
      }
    }
    return problems;
  }

  // Between matmul and matvec, if these are the kernels that the operations launch.
  void share(std::vector<std::vector<Problem>>& problems) const {
    const auto index_of = [&](std::string_view name) {
      const auto found = std::find_if(kernels_.begin(), kernels_.end(),
                                      [&](const TunedKernel& kernel) { return kernel.space.kernel == name; });
      return static_cast<std::size_t>(found - kernels_.begin());
    };
    const std::size_t matmul = index_of("matmul");
    const std::size_t matvec = index_of("matvec");
    if (options_.listed_only || matmul == kernels_.size() || matvec == kernels_.size()) {
      return;
    }
    const auto names_of = [](const Space& space) {
      std::vector<std::string> names;
      for (const Dimension& dimension : space.dimensions) {
        names.push_back(dimension.name);
      }
      return names;
    };
    const Space& few_rows = kernels_[matvec].space;
    if (names_of(few_rows) == names_of(kernels_[matmul].space) && names_of(few_rows).front() == "M") {
      share_products(problems[matmul], problems[matvec], few_rows);
    }
  }

  void plan_kernel(const TunedKernel& kernel, const std::vector<Problem>& problems) {
    if (kernel.space.launches.size() > 1) {
      warn(fmt::format("kernel '{}' is left out: a bundle has no pipelines", kernel.space.kernel));
      return;
    }
    if (std::ranges::any_of(kernel.space.arguments,
                            [](const Argument& argument) { return argument.texture.has_value(); })) {
      warn(fmt::format("kernel '{}' is left out: bundles cannot hold kernels with textures", kernel.space.kernel));
      return;
    }
    PlannedCodes planned = plan_codes(kernel, here_, target_.limits, problems, !options_.listed_only);
    if (problems.empty() && !options_.listed_only) {
      const std::vector<Problem> example{kernel.space.example_problem()};
      planned = plan_codes(kernel, here_, target_.limits, example, false);
    }
    for (const std::string& why : planned.unplanned) {
      warn(why);
    }
    made_.problems += planned.problems;
    BundleKernel& entry = made_.bundle.kernels.emplace_back();
    entry.name = kernel.space.kernel;
    entry.source_hash = kernel.source.hash;
    entry.space_hash = kernel.space.hash;
    entry.function = kernel.space.launches.front().function;
    for (const Winner& winner : kernel.winners) {
      entry.winners.push_back({winner.trial.problem, winner.trial.config, winner.trial.time.value_or(TimeSummary{}),
                               winner.confidence, winner.toolkit});
    }
    for (const PlannedCode& code : planned.codes) {
      const BoundSpace bound(kernel.space, code.problem, target_.limits);
      CompileRequest request = compile_request(bound, code.config, kernel.source, target_.kind, target_.architecture);
      const auto compiler = std::find(here_.begin(), here_.end(), code.toolkit) - here_.begin();
      request.compiler = compilers_[static_cast<std::size_t>(compiler)].path;
      requests_.push_back(
          {made_.bundle.kernels.size() - 1, code.problem, std::move(request), index_in_bundle(code.toolkit)});
    }
  }

  // A toolkit is named in the bundle once code of it is.
  std::size_t index_in_bundle(const ToolkitRow& toolkit) {
    std::vector<ToolkitRow>& named = made_.bundle.toolkits;
    const auto index = static_cast<std::size_t>(std::find(named.begin(), named.end(), toolkit) - named.begin());
    if (index == named.size()) {
      named.push_back(toolkit);
    }
    return index;
  }

  void keep(Request& request, CompileResult result) {
    if (!result.ok) {
      warn(fmt::format("code for {} is left out: {}", request.problem.text(), result.reason));
      return;
    }
    BundleKernel& kernel = made_.bundle.kernels[request.kernel];
    const bool is_renamed = result.binary.function != kernel.function;
    kernel.codes.push_back({std::move(request.request.defines), std::move(request.request.options),
                            result.binary.resources, result.binary.max_registers, request.toolkit,
                            std::move(result.binary.code),
                            is_renamed ? std::move(result.binary.function) : std::string()});
  }

  const BundleTarget& target_;
  const BundleMakerOptions& options_;
  std::vector<CompilerInfo> compilers_;
  std::vector<ToolkitRow> here_;      // what these make
  std::vector<TunedKernel> kernels_;  // never grows beyond what was reserved: requests point to the sources
  std::vector<Request> requests_;
  MadeBundle made_;
};

}  // namespace

MadeBundle make_bundle(const BundleTarget& target, const BundleMakerOptions& options,
                       const std::function<void(std::size_t all, std::size_t done)>& progress,
                       const std::atomic<bool>& stop) {
  BundleMaker maker(target, options);
  maker.plan();
  maker.compile(progress, stop);
  return maker.take();
}

}  // namespace pascaline
