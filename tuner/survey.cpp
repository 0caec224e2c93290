#include "tuner/survey.hpp"

#include <map>

#include "core/enumeration.hpp"
#include "tuner/candidate.hpp"
#include "tuner/searcher.hpp"

namespace pascaline {
namespace {

SurveyedVariant assess(const BoundSpace& bound, const Config& config, Compiled compiled) {
  SurveyedVariant variant;
  variant.config = config;
  variant.status = compiled.status;
  variant.reason = compiled.result.reason;
  variant.binary = std::move(compiled.result.binary);
  if (variant.status != TrialStatus::ok) {
    return variant;
  }
  const Geometry geometry = bound.geometry(bound.space().launch, config);
  const Resources& resources = variant.binary.resources;
  variant.occupancy = occupancy(bound.limits(), static_cast<int>(geometry.threads()), resources.registers,
                                std::int64_t{resources.static_shared_bytes} + geometry.shared_bytes);
  if (const auto problem = exceeds_limits(resources, geometry, bound.limits())) {
    variant.status = TrialStatus::rejected;
    variant.reason = *problem;
  }
  return variant;
}

}  // namespace

CompileRequest compile_request(const BoundSpace& bound, const Config& config, const KernelSource& source,
                               BinaryKind kind, const std::string& architecture) {
  CompileRequest request;
  request.source = &source;
  request.function = bound.space().launch.function;
  request.defines = bound.defines(config);
  request.options = bound.options(config);
  request.kind = kind;
  request.architecture = architecture;
  return request;
}

void survey(const BoundSpace& bound, const SurveyOptions& options, const std::function<void(const SurveyPlan&)>& begin,
            const std::function<void(const SurveyedVariant&)>& each, const std::atomic<bool>& stop) {
  const Toolchain toolchain = Toolchain::find(options.architecture, options.nvrtc);
  const bool on_host = options.architecture == "host";
  const KernelSource source = KernelSource::load(options.kernels / (bound.space().kernel + ".cu"));
  const auto searcher = make_searcher(options.limit > 0 ? "random" : "exhaustive", bound, options.seed);
  const std::uint64_t valid = Enumerator(bound).for_each([](auto) { return true; });
  const std::uint64_t wanted = options.limit > 0 ? std::min(options.limit, valid) : valid;
  begin({toolchain.compiler(), toolchain.version(), wanted});

  CompilePool pool({.workers = options.jobs,
                    .program = {},
                    .cache_folder = options.cache,
                    .architecture = options.architecture,
                    .nvrtc = on_host ? "" : toolchain.path()});
  std::map<std::uint64_t, Config> in_flight;
  std::uint64_t submitted = 0;
  while (!stop) {
    while (submitted < wanted && in_flight.size() < 2 * pool.workers()) {
      const std::vector<Config> proposals = searcher->propose(1);
      in_flight.emplace(++submitted, proposals.front());
      pool.submit(submitted,
                  compile_request(bound, proposals.front(), source,
                                  on_host ? BinaryKind::host_object : BinaryKind::cubin, options.architecture));
    }
    if (in_flight.empty()) {
      return;
    }
    if (auto compiled = pool.wait(std::chrono::milliseconds(200))) {
      const auto job = in_flight.find(compiled->id);
      each(assess(bound, job->second, std::move(*compiled)));
      in_flight.erase(job);
    }
  }
}

}  // namespace pascaline
