#include "runtime/dispatch/kernel_supply.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/bundle/bundle_check.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

std::filesystem::path folder_or(const std::filesystem::path& given, std::string_view name) {
  return given.empty() ? data_folder(name) : given;
}

std::string code_key(const std::string& source_hash, const std::string& function,
                     const std::vector<std::string>& defines, const std::vector<std::string>& options,
                     const ToolkitRow& toolkit) {
  FieldHash hash;
  hash.add(toolkit.compiler).add(toolkit.version);
  hash.add(source_hash).add(function).add(std::to_string(defines.size()));
  for (const std::string& define : defines) {
    hash.add(define);
  }
  for (const std::string& option : options) {
    hash.add(option);
  }
  return hash.hex();
}

void require_bundle_alone(const DispatcherOptions& options) {
  const char* other = options.database          ? "a database"
                      : !options.target.empty() ? "a target"
                      : !options.nvrtc.empty()  ? "an NVRTC"
                                                : nullptr;
  if (other != nullptr) {
    throw Error(
        fmt::format("bundle {} and {} are given: a bundle has its own winners, target and code; leave out one "
                    "of the two",
                    options.bundle->string(), other));
  }
}

std::variant<CompilerSupply, BundleSupply> open_supply(const DeviceInfo& device, const DispatcherOptions& options) {
  if (options.bundle) {
    return BundleSupply(device, options);
  }
  if (options.any_device) {
    throw Error("--any-device applies to bundles only, and no bundle is given");
  }
  return CompilerSupply(device, options);
}

}  // namespace

void check_bundle(const DispatcherOptions& options) {
  if (!options.bundle) {
    return;
  }
  require_bundle_alone(options);
  const Bundle bundle = load_bundle(*options.bundle);
  check_bundle_kernels(bundle, options.bundle->string(), folder_or(options.kernels, "kernel_templates"),
                       folder_or(options.spaces, "search_spaces"), bundle.limits);
}

CompilerSupply::CompilerSupply(const DeviceInfo& device, const DispatcherOptions& options)
    : database_(options.database),
      device_(device_row(device)),
      target_(compile_target(device, options.target)),
      compilers_(compilers_at_hand(target_, device.driver_version, options.nvrtc)),
      cache_(options.cache.empty() ? cache_folder() : options.cache) {
  for (const CompilerInfo& compiler : compilers_) {
    toolkits_.push_back(toolkit_row(compiler, target_, device));
  }
}

const Toolchain& CompilerSupply::toolchain_of(const ToolkitRow& toolkit) const {
  const auto index = std::find(toolkits_.begin(), toolkits_.end(), toolkit) - toolkits_.begin();
  const std::string& path = compilers_.at(static_cast<std::size_t>(index)).path;
  const std::lock_guard lock(opened_->mutex);
  const auto known = opened_->by_path.find(path);
  return known != opened_->by_path.end()
             ? known->second
             : opened_->by_path.emplace(path, Toolchain::open(target_.architecture, path)).first->second;
}

std::string CompilerSupply::key(const CompileRequest& request, const ToolkitRow& toolkit) const {
  std::string key;
  for (const CompileRequest& function : requests_of_functions(request)) {
    key += toolchain_of(toolkit).cache_key(function);
  }
  return key;
}

std::vector<Winner> CompilerSupply::winners_in(const std::optional<std::filesystem::path>& database) const {
  if (!database) {
    return {};
  }
  std::vector<Winner> winners = Store(*database, OpenMode::read_only).winners({}, &device_, std::nullopt);
  std::erase_if(winners, [&](const Winner& winner) { return !same_identity(winner.device, device_); });
  return winners;
}

Binary CompilerSupply::code(const CompileRequest& request, const ToolkitRow& toolkit) const {
  CompileResult result = cache_.get(toolchain_of(toolkit), request);
  if (!result.ok) {
    throw Error(fmt::format("it does not compile with {}: {}", describe(toolkit), result.reason));
  }
  return std::move(result.binary);
}

BundleSupply::BundleSupply(const DeviceInfo& device, const DispatcherOptions& options) : file_(*options.bundle) {
  require_bundle_alone(options);
  bundle_ = load_bundle(file_);
  target_ = check_bundle_device(bundle_, file_.string(), device, options.any_device);
  check_bundle_kernels(bundle_, file_.string(), folder_or(options.kernels, "kernel_templates"),
                       folder_or(options.spaces, "search_spaces"), target_.limits);
  toolkits_ = bundle_.toolkits;
  for (const BundleKernel& kernel : bundle_.kernels) {
    for (const BundleCode& code : kernel.codes) {
      codes_.emplace(code_key(kernel.source_hash, kernel.function, code.defines, code.options, toolkits_[code.toolkit]),
                     std::pair(&kernel, &code));
    }
  }
}

std::vector<Winner> BundleSupply::winners_in(const std::optional<std::filesystem::path>& database) const {
  throw Error(
      fmt::format("cannot use {} instead of the winners in bundle {}: it holds code for its own winners only; "
                  "open the device without a bundle",
                  database ? "the winners of " + database->string() : "no winners", file_.string()));
}

std::string BundleSupply::key(const CompileRequest& request, const ToolkitRow& toolkit) const {
  return code_key(request.source->hash, request.function, request.defines, request.options, toolkit);
}

Binary BundleSupply::code(const CompileRequest& request, const ToolkitRow& toolkit) const {
  const auto found = codes_.find(key(request, toolkit));
  if (found == codes_.end()) {
    throw MissingCodeError(
        fmt::format("bundle {} has no code for it; make one that has it, with pascaline bundle --workload and a "
                    "workload that has this problem (pascaline workload --model writes one)",
                    file_.string()));
  }
  const auto& [kernel, code] = found->second;
  Binary binary;
  binary.kind = bundle_.kind;
  binary.target = target_of(bundle_);
  binary.function = function_in(*kernel, *code);
  binary.code = code->code;
  binary.resources = code->resources;
  binary.from_cache = true;
  binary.max_registers = code->max_registers;
  return binary;
}

KernelSupply::KernelSupply(const DeviceInfo& device, const DispatcherOptions& options)
    : supply_(open_supply(device, options)) {}

const CompileTarget& KernelSupply::target() const noexcept {
  const auto* compiler = std::get_if<CompilerSupply>(&supply_);
  return compiler != nullptr ? compiler->target() : std::get_if<BundleSupply>(&supply_)->target();
}

const std::vector<ToolkitRow>& KernelSupply::toolkits() const noexcept {
  const auto* compiler = std::get_if<CompilerSupply>(&supply_);
  return compiler != nullptr ? compiler->toolkits() : std::get_if<BundleSupply>(&supply_)->toolkits();
}

std::vector<Winner> KernelSupply::winners() const {
  return std::visit([](const auto& supply) { return supply.winners(); }, supply_);
}

std::vector<Winner> KernelSupply::winners_in(const std::optional<std::filesystem::path>& database) const {
  return std::visit([&](const auto& supply) { return supply.winners_in(database); }, supply_);
}

std::string KernelSupply::key(const CompileRequest& request, const ToolkitRow& toolkit) const {
  return std::visit([&](const auto& supply) { return supply.key(request, toolkit); }, supply_);
}

Binary KernelSupply::code(const CompileRequest& request, const ToolkitRow& toolkit) const {
  return std::visit([&](const auto& supply) { return supply.code(request, toolkit); }, supply_);
}

}  // namespace pascaline
