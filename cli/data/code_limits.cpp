#include "cli/data/code_limits.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/sm61/heaviest_path.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/static_model/code_estimate.hpp"

namespace pascaline::cli {
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

CodeLimits::CodeLimits(std::filesystem::path spaces, std::filesystem::path cache, bool compiles)
    : spaces_(std::move(spaces)), cache_folder_(std::move(cache)), compiles_(compiles) {}

const CodeLimits::Kernel& CodeLimits::kernel_of(const std::string& name) {
  if (const auto known = kernels_.find(name); known != kernels_.end()) {
    return known->second;
  }
  const std::filesystem::path spaces = spaces_.empty() ? data_folder("search_spaces") : spaces_;
  Kernel kernel{Space::load(kernel_file(spaces, name, ".json")),
                KernelSource::load(kernel_file(data_folder("kernel_templates"), name, ".cu"))};
  return kernels_.emplace(name, std::move(kernel)).first->second;
}

// Of that version if it is here, else any.
const CodeLimits::Compiler& CodeLimits::compiler_of(const std::string& architecture, const std::string& version) {
  const std::pair key(architecture, version);
  if (const auto known = compilers_.find(key); known != compilers_.end()) {
    return known->second;
  }
  for (const std::string& wanted : {version, std::string()}) {
    try {
      return compilers_.emplace(key, Toolchain::find(architecture, wanted)).first->second;
    } catch (const Error& error) {
      if (wanted.empty()) {
        return compilers_.emplace(key, clean_line(error.what())).first->second;
      }
    }
  }
  return compilers_.at(key);
}

// From the cache, or made; a folder that is only looked into is not made.
std::optional<CompileResult> CodeLimits::compiled(const Toolchain& toolchain, const CompileRequest& request) {
  std::error_code unseen;
  if (!compiles_ && !std::filesystem::is_directory(cache_folder_, unseen)) {
    return std::nullopt;
  }
  if (!cache_) {
    cache_.emplace(cache_folder_);
  }
  std::optional<CompileResult> result = cache_->find(toolchain.cache_key(request));
  if (!result && compiles_) {
    result = cache_->get(toolchain, request);
  }
  return result;
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
  const Compiler& compiler = compiler_of(architecture, request.toolkit.version);
  if (const auto* missing = std::get_if<std::string>(&compiler)) {
    return fmt::format("No estimate: its code cannot be compiled here. {}", *missing);
  }
  const auto& toolchain = std::get<Toolchain>(compiler);
  const DeviceRates rates = rates_of(request, architecture);
  const BoundSpace bound(kernel.space, request.problem, rates.limits);
  const CompileRequest compile = compile_request(bound, limit.config, kernel.source, BinaryKind::cubin, architecture);
  const std::optional<CompileResult> result = compiled(toolchain, compile);
  if (!result) {
    return "No estimate: its code is not in the cache, and --no-compile forbids to compile it.";
  }
  if (!result->ok) {
    return fmt::format("No estimate: it does not compile for {}: {}", architecture, clean_line(result->reason));
  }
  const sm61::KernelCode code = sm61::read_kernel(result->binary.code, result->binary.function);
  const LaunchWork work = launch_work(bound, limit.config);
  const auto found = estimate_from_code(code, work, rates, sm61::sm_rates(request.measured));
  if (!found) {
    return "No estimate: no block fits a multiprocessor, or the work does not tell how often its loop runs.";
  }
  limit.compiler = fmt::format("{} {} for {}", toolchain.compiler(), toolchain.version(), architecture);
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

}  // namespace pascaline::cli
