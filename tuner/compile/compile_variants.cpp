#include "tuner/compile/compile_variants.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "core/device/emulator_name.hpp"
#include "core/space/code_words.hpp"
#include "core/space/enumeration.hpp"
#include "tuner/measure/trial_setup.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {
namespace {

// Variants to compile: counted one by one only where a limit does not make that needless.
std::uint64_t number_wanted(const SearchDomain& domain, const BoundSpace& bound, std::uint64_t limit,
                            const StopCheck& check) {
  if (domain.exact()) {
    const auto valid = static_cast<std::uint64_t>(domain.combinations());
    return limit > 0 ? std::min(limit, valid) : valid;
  }
  return limit > 0 ? limit : Enumerator(bound, check).for_each([](auto) { return true; });
}

// Compiles `wanted` configurations, which `next` gives one after the other until it has no more.
void compile_each(const BoundSpace& bound, const VariantOptions& options, std::uint64_t wanted,
                  const std::function<std::optional<Config>()>& next,
                  const std::function<void(const VariantCount&)>& begin,
                  const std::function<void(const CompiledVariant&)>& each, const std::atomic<bool>& stop) {
  const CompilerChoice compilers = variant_compilers(options.architecture, options.nvrtc);
  const bool on_host = is_emulator_name(options.architecture);
  const KernelSource source =
      KernelSource::load(kernel_file(options.kernels, bound.space().kernel, ".cu"), bound.space());
  begin({compilers, wanted * compilers.found.size()});

  CompilePool pool({.workers = options.jobs,
                    .program = {},
                    .cache_folder = options.cache,
                    .architecture = options.architecture,
                    .nvrtc = on_host ? "" : compilers.found.front().path});
  std::map<std::uint64_t, std::pair<Config, const CompilerInfo*>> in_flight;
  std::uint64_t taken = 0;
  std::uint64_t submitted = 0;
  while (!stop) {
    while (taken < wanted && in_flight.size() < 2 * pool.workers()) {
      std::optional<Config> config;
      try {
        config = next();
      } catch (const StoppedError&) {
        return;  // what was compiled was told
      }
      if (!config) {
        wanted = taken;
        break;
      }
      ++taken;
      CompileRequest request = compile_request(
          bound, *config, source, on_host ? BinaryKind::host_object : BinaryKind::cubin, options.architecture);
      for (const CompilerInfo& compiler : compilers.found) {
        request.compiler = compiler.path;
        pool.submit(++submitted, request);
        in_flight.emplace(submitted, std::pair(*config, &compiler));
      }
    }
    if (in_flight.empty()) {
      return;
    }
    if (auto compiled = pool.wait(std::chrono::milliseconds(200))) {
      const auto job = in_flight.find(compiled->id);
      CompiledVariant variant = assess(bound, bound.space().launches, job->second.first, std::move(*compiled));
      variant.compiler = *job->second.second;
      each(variant);
      in_flight.erase(job);
    }
  }
}

}  // namespace

CompiledVariant assess(const BoundSpace& bound, std::span<const Launch> launches, const Config& config,
                       Compiled compiled) {
  CompiledVariant variant;
  variant.config = config;
  variant.status = compiled.status;
  variant.reason = compiled.result.reason;
  variant.binary = std::move(compiled.result.binary);
  if (variant.status != TrialStatus::ok) {
    return variant;
  }
  variant.occupancy = least_occupancy(bound, launches, config, variant.binary);
  if (const auto problem = exceeds_limits(bound, launches, config, variant.binary)) {
    variant.status = TrialStatus::rejected;
    variant.reason = *problem;
  }
  return variant;
}

CompilerChoice variant_compilers(const std::string& architecture, const std::string& nvrtc) {
  const bool on_host = is_emulator_name(architecture);
  return find_compilers({architecture, on_host ? BinaryKind::host_object : BinaryKind::cubin, {}}, {}, nvrtc);
}

void compile_variants(const BoundSpace& bound, const VariantOptions& options,
                      const std::function<void(const VariantCount&)>& begin,
                      const std::function<void(const CompiledVariant&)>& each, const std::atomic<bool>& stop) {
  const StopCheck check = stop_check(stop);
  const SearchDomain domain(bound, SearchDomain::kMaxTuples, check);
  SearchOptions search;
  search.seed = options.seed;
  const auto searcher = make_searcher(options.limit > 0 ? "random" : "exhaustive", domain, search);
  const auto next = [&]() -> std::optional<Config> {
    std::vector<Point> proposals = searcher->propose(1);
    while (proposals.empty() && searcher->looking() && !stop) {
      proposals = searcher->propose(1);
    }
    return proposals.empty() ? std::nullopt : std::optional(bound.space().config_at(proposals.front()));
  };
  compile_each(bound, options, number_wanted(domain, bound, options.limit, check), next, begin, each, stop);
}

void compile_variants(const BoundSpace& bound, const VariantOptions& options, const std::vector<Config>& configs,
                      const std::function<void(const CompiledVariant&)>& each, const std::atomic<bool>& stop) {
  std::size_t index = 0;
  const auto next = [&] { return index < configs.size() ? std::optional(configs[index++]) : std::nullopt; };
  compile_each(
      bound, options, configs.size(), next, [](const VariantCount&) {}, each, stop);
}

CompileRequest reference_request_of(const Space& space, CompileRequest default_request) {
  if (space.reference.kernel) {
    using Role = LaunchedArgument::Role;
    std::vector<LaunchedArgument> launched;
    for (const CompileRequest& function : requests_of_functions(default_request)) {
      launched.insert(launched.end(), function.arguments->begin(), function.arguments->end());
    }
    std::vector<LaunchedArgument> arguments;
    for (const std::size_t index : space.reference.kernel->arguments) {
      LaunchedArgument& argument =
          arguments.emplace_back(*std::ranges::find(launched, space.arguments[index].name, &LaunchedArgument::name));
      if (argument.role == Role::output) {
        argument = {argument.name, argument.role, ElementType::float64};
      }
    }
    default_request.function = space.reference.kernel->function;
    default_request.threads = 0;
    default_request.then.clear();
    default_request.defines.emplace_back("PASCALINE_REFERENCE=1");
    if (space.reference.workspace) {
      arguments.push_back({space.reference.workspace->name, Role::output, ElementType::float64});
    }
    if (!space.reference.slack.empty()) {
      arguments.push_back({"slack", Role::output, ElementType::float64});
    }
    default_request.arguments = std::move(arguments);
  }
  return default_request;
}

}  // namespace pascaline
