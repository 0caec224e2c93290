#include "app/data/code_limits.hpp"

#include <fmt/format.h>

#include "app/measured_compiler.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/sm61/heaviest_path.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/static_model/code_estimate.hpp"

namespace pascaline {
namespace {

// The card's own, and no looser than those of the code's architecture, so that blocks are placed as there.
DeviceRates rates_of(const LimitRequest& request, const std::string& architecture) {
  const DeviceLimits card = stored_limits(request.device, DeviceLimits{});
  const DeviceLimits limits = tighter(card, limits_of_architecture(architecture).value_or(card));
  DeviceRates rates = typical_rates(request.device.compute_capability, card)
                          .value_or(typical_rates(architecture, card).value_or(DeviceRates{}));
  use_measured(rates, request.measured);
  rates.limits = limits;
  return rates;
}

std::string compiler_text(const ToolkitRow& toolkit) { return fmt::format("{} {}", toolkit.compiler, toolkit.version); }

void set_loop(const sm61::KernelCode& kernel, ReportLimit& limit) {
  limit.has_loop = kernel.hottest.has_value();
  limit.registers = kernel.registers;
  if (!kernel.hottest) {
    return;
  }
  const sm61::IssueCost cost = sm61::cost_of(kernel, sm61::heaviest_path(kernel, kernel.hottest));
  limit.instructions = cost.instructions;
  limit.ffma = cost.of(sm61::Kind::ffma);
  limit.dp4a = cost.of(sm61::Kind::dp4a);
  limit.conflicts = cost.conflicts_per_arithmetic();
}

void set_estimate(const CodeEstimate& estimate, ReportLimit& limit) {
  limit.blocks = estimate.resident_blocks;
  limit.blocks_limit = name_of(estimate.residency);
  limit.waves = estimate.waves;
  limit.least_us = estimate.least.time_us;
  limit.most_us = estimate.most.time_us;
  limit.least_limit = name_of(estimate.least.limit);
  limit.most_limit = name_of(estimate.most.limit);
  limit.measured_conflict = estimate.measured_conflict;
}

}  // namespace

CodeLimitOptions limit_options(const std::filesystem::path& kernels, const std::filesystem::path& spaces,
                               const std::filesystem::path& cache) {
  return {kernels.empty() ? data_folder("kernel_templates") : kernels,
          spaces.empty() ? data_folder("search_spaces") : spaces,
          cache.empty() ? cache_folder() : cache,
          {},
          false};
}

CodeLimits::CodeLimits(CodeLimitOptions options) : options_(std::move(options)) {
  if (!options_.bundle.empty()) {
    bundle_ = load_bundle(options_.bundle);
  }
}

const CodeLimits::Kernel& CodeLimits::kernel_of(const std::string& name) {
  if (const auto known = kernels_.find(name); known != kernels_.end()) {
    return known->second;
  }
  Kernel kernel{Space::load(kernel_file(options_.spaces, name, ".json")), {}};
  kernel.source = KernelSource::load(kernel_file(options_.kernels, name, ".cu"), kernel.space);
  return kernels_.emplace(name, std::move(kernel)).first->second;
}

const CodeLimits::Compiler& CodeLimits::compiler_of(const std::string& architecture, const std::string& version) {
  const std::pair key(architecture, version);
  if (const auto known = compilers_.find(key); known != compilers_.end()) {
    return known->second;
  }
  try {
    return compilers_.emplace(key, Toolchain::find(architecture, wish_of_measured(architecture, version)))
        .first->second;
  } catch (const Error& error) {
    return compilers_.emplace(key, clean_line(error.what())).first->second;
  }
}

// From the cache, or made; a folder that is only looked into is not made.
std::optional<CompileResult> CodeLimits::compiled(const Toolchain& toolchain, const CompileRequest& request) {
  std::error_code unseen;
  if (!options_.compiles && !std::filesystem::is_directory(options_.cache, unseen)) {
    return std::nullopt;
  }
  if (!cache_) {
    cache_.emplace(options_.cache);
  }
  std::optional<CompileResult> result = cache_->find(toolchain.cache_key(request));
  if (!result && options_.compiles) {
    result = cache_->get(toolchain, request);
  }
  return result;
}

// Code that the bundle has for this configuration of this version of the kernel.
std::optional<CodeLimits::Code> CodeLimits::bundled(const LimitRequest& request, const CompileRequest& compile) const {
  if (!bundle_ || bundle_->kind != BinaryKind::cubin || bundle_->architecture != compile.architecture) {
    return std::nullopt;
  }
  const std::vector<ToolkitRow> toolkits = bundle_->toolkits;
  for (const BundleKernel& kernel : bundle_->kernels) {
    if (kernel.name != request.problem.kernel || kernel.source_hash != request.source_hash) {
      continue;
    }
    for (const BundleCode& code : kernel.codes) {
      if (code.defines == compile.defines && code.options == compile.options &&
          same_compiler(toolkits.at(code.toolkit), request.toolkit)) {
        return Code{sm61::read_kernel(code.code, function_in(kernel, code)), compiler_text(request.toolkit)};
      }
    }
  }
  return std::nullopt;
}

// The code, or why there is none.
std::variant<CodeLimits::Code, std::string> CodeLimits::code_of(const LimitRequest& request,
                                                                const CompileRequest& compile) {
  if (auto code = bundled(request, compile)) {
    return std::move(*code);
  }
  const Compiler& compiler = compiler_of(compile.architecture, request.toolkit.version);
  if (const auto* missing = std::get_if<std::string>(&compiler)) {
    return fmt::format("No estimate: its code cannot be compiled here. {}", *missing);
  }
  const auto& toolchain = std::get<Toolchain>(compiler);
  const std::optional<CompileResult> result = compiled(toolchain, compile);
  if (!result) {
    return "No estimate: its code is not in the cache, and nothing is compiled for this (--no-compile, or serve).";
  }
  if (!result->ok) {
    return fmt::format("No estimate: it does not compile for {}: {}", compile.architecture, clean_line(result->reason));
  }
  return Code{sm61::read_kernel(result->binary.code, result->binary.function),
              fmt::format("{} {}", toolchain.compiler(), toolchain.version())};
}

// Why there is no estimate; empty if there is.
std::string CodeLimits::estimate(const LimitRequest& request, ReportLimit& limit) {
  const Kernel& kernel = kernel_of(request.problem.kernel);
  const std::string architecture = architecture_of_target(request.toolkit.target);
  const DeviceLimits target = limits_of_architecture(architecture).value_or(DeviceLimits{});
  limit.config = request.config.value_or(kernel.space.default_config(target));
  if (kernel.source.hash != request.source_hash) {
    return "No estimate: the kernel's source has changed since it was measured.";
  }
  if (kernel.space.launches.size() > 1) {
    return "No estimate: it is a pipeline, whose time is not estimated from code.";
  }
  const DeviceRates rates = rates_of(request, architecture);
  const BoundSpace bound(kernel.space, request.problem, rates.limits);
  if (!request.config) {
    limit.config = BoundSpace(kernel.space, request.problem, target).default_config();
  }
  const auto found_code =
      code_of(request, compile_request(bound, limit.config, kernel.source, BinaryKind::cubin, architecture));
  if (const auto* missing = std::get_if<std::string>(&found_code)) {
    return *missing;
  }
  const auto& [code, compiler] = std::get<Code>(found_code);
  const LaunchWork work = launch_work(bound, limit.config);
  const auto found = estimate_from_code(code, work, rates, sm61::sm_rates(request.measured));
  if (!found) {
    return "No estimate: no block fits a multiprocessor, or the work does not tell how often its loop runs.";
  }
  limit.compiler = fmt::format("{} for {}", compiler, architecture);
  const std::string measured = compiler_text(request.toolkit);
  limit.measured_compiler = measured == compiler ? std::string() : measured;
  limit.threads = work.threads;
  set_loop(code, limit);
  set_estimate(*found, limit);
  return {};
}

ReportLimit CodeLimits::limit_of(const LimitRequest& request) {
  ReportLimit limit;
  limit.config = request.config.value_or(Config{});
  try {
    limit.missing = estimate(request, limit);
  } catch (const Error& error) {
    limit.missing = fmt::format("No estimate: {}", clean_line(error.what()));
  }
  return limit;
}

}  // namespace pascaline
