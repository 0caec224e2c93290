#include "tuner/sweep/tunable.hpp"

#include <algorithm>
#include <utility>

#include "core/space/code_words.hpp"
#include "model/fusion/site_space.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline {
namespace {

// Guesses for a site: each way to compute it, and its finals.
constexpr double kAlternativeSeconds = 1;
constexpr double kSiteSeconds = 2;

}  // namespace

std::variant<CompileRequest, Binary> KernelTunable::build(const BoundSpace& own_bound, const Config& config,
                                                          const CompileTarget& target) const {
  CompileRequest request =
      compile_request(own_bound, compilers->without(config), source, target.kind, target.architecture);
  request.translation = target.translation;
  if (compilers->several()) {
    request.compiler = compilers->compilers()[compilers->index_of(config)].path;
  }
  return request;
}

// The alternative's name stands for its code.
std::variant<CompileRequest, Binary> SiteTunable::build(const BoundSpace& own_bound, const Config& config,
                                                        const CompileTarget& target) const {
  Binary binary;
  binary.kind = BinaryKind::host_object;
  binary.target = target.architecture;
  binary.function = own_bound.space().kernel;
  binary.code = alternative_of(config);
  return binary;
}

bool SiteTunable::launches(const SweepProblem& own, const Problem& other) const {
  const std::vector<std::string> kernels = kernels_of_site(space->kernel);
  return own.launches.empty() ? std::ranges::find(kernels, other.kernel) != kernels.end()
                              : std::ranges::find(own.launches, other) != own.launches.end();
}

std::optional<double> SiteTunable::guessed_s(const PlannedWork& work) const {
  return work.trials * kAlternativeSeconds + work.problems * kSiteSeconds;
}

std::vector<std::unique_ptr<Tunable>> load_tunables(const std::vector<Space>& spaces, const SweepOptions& options,
                                                    const CompilerAxis& compilers, const CompilerAxis& first_compiler,
                                                    std::deque<Space>& searched) {
  std::vector<std::unique_ptr<Tunable>> tunables;
  for (const Space& space : spaces) {
    if (is_site(space.kernel)) {
      tunables.push_back(std::make_unique<SiteTunable>(space, space, first_compiler,
                                                       site_source(space.kernel, options.files.kernels)));
    } else {
      const Space& with_compiler = compilers.several() ? searched.emplace_back(compilers.searched(space)) : space;
      tunables.push_back(std::make_unique<KernelTunable>(
          space, with_compiler, compilers,
          KernelSource::load(kernel_file(options.files.kernels, space.kernel, ".cu"), space)));
    }
  }
  return tunables;
}

}  // namespace pascaline
