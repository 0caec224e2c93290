#include "runtime/device/compile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <variant>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/device/cuda/jit_link.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/emulator/emulated_device.hpp"
#include "runtime/device/parameter_order.hpp"

namespace pascaline {
namespace {

// To be raised whenever the same request would give another Binary.
constexpr std::string_view kKeyVersion = "1";

std::unique_ptr<Nvrtc> find_nvrtc_for(const std::string& architecture, const std::string& nvrtc) {
  const std::string wish = nvrtc_wish(nvrtc);
  const std::vector<NvrtcInfo> found = wanted_nvrtc(wish);
  for (const NvrtcInfo& info : found) {
    if (compiles_for(info, architecture)) {
      return std::make_unique<Nvrtc>(info.path);
    }
  }
  throw_no_nvrtc(architecture, wish, found);
}

bool is_option(std::string_view option, std::string_view name) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  return option.starts_with(name) && (option.size() == name.size() || option[name.size()] == '=');
}

int register_cap(const std::vector<std::string>& options) {
  constexpr std::string_view kName = "maxrregcount";
  int cap = 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (is_option(options[i], kName)) {
      const std::size_t equals = options[i].find('=');
      const std::string number = equals != std::string::npos ? options[i].substr(equals + 1)
                                 : i + 1 < options.size()    ? options[i + 1]
                                                             : std::string();
      std::from_chars(number.data(), number.data() + number.size(), cap);
    }
  }
  return cap;
}

std::vector<std::string> nvrtc_options(const Nvrtc& nvrtc, const CompileRequest& request) {
  std::vector<std::string> options{"--gpu-architecture=" + request.architecture};
  if (std::none_of(request.options.begin(), request.options.end(),
                   [](const std::string& option) { return is_option(option, "std"); })) {
    options.emplace_back("--std=c++17");
  }
  for (const std::string& define : request.defines) {
    options.push_back("-D" + define);
  }
  if (!nvrtc.include_folder().empty()) {
    options.push_back("--include-path=" + nvrtc.include_folder().string());
  }
  options.insert(options.end(), request.options.begin(), request.options.end());
  return options;
}

// The log's first line that tells an error, as `file(line): error: …`. Warnings (12.9 has one for every architecture
// before sm_75) do not count.
std::string first_error(const std::string& log) {
  std::string first;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty() || line.find("warning") != std::string::npos) {
      continue;
    }
    if (line.find("error") != std::string::npos) {
      return line;
    }
    first = first.empty() ? line : first;
  }
  return first.empty() ? "the compiler gave no reason" : first;
}

// A source without the kernel compiles; that is as much the candidate's fault as an error in it.
CompileResult result_of(const CompileRequest& request, NvrtcOutput output) {
  CompileResult result;
  if (!output.ok) {
    result.reason = first_error(output.log);
    result.log = std::move(output.log);
    return result;
  }
  const std::vector<std::string> kernels = cubin_kernels(output.cubin);
  if (std::find(kernels.begin(), kernels.end(), request.function) == kernels.end()) {
    result.reason = fmt::format("{}: error: it has no extern \"C\" __global__ function {}; its kernels are: {}",
                                request.source->file.filename().string(), request.function, fmt::join(kernels, ", "));
    result.log = std::move(output.log);
    return result;
  }
  const bool ptx = request.kind == BinaryKind::ptx;
  Binary& binary = result.binary;
  binary.kind = request.kind;
  binary.target = ptx ? "compute" + request.architecture.substr(request.architecture.find('_')) : request.architecture;
  binary.function = request.function;
  binary.resources = cubin_resources(output.cubin, request.function);
  binary.code = std::move(ptx ? output.ptx : output.cubin);
  binary.log = std::move(output.log);
  binary.max_registers = register_cap(request.options);
  result.ok = true;
  return result;
}

// Faults of NVRTC that one source brings about, while another compiles.
constexpr int kNvrtcOutOfMemory = 1;
constexpr int kNvrtcInternalError = 11;

CompileResult compile_with(const Nvrtc& nvrtc, const CompileRequest& request) {
  if (request.kind == BinaryKind::host_object || !request.architecture.starts_with("sm_")) {
    throw NvrtcError(fmt::format("NVRTC cannot compile {} for '{}'; it takes architectures like sm_61",
                                 request.function, request.architecture));
  }
  const auto begin = std::chrono::steady_clock::now();
  CompileResult result;
  try {
    result = result_of(request, nvrtc.compile(*request.source, nvrtc_options(nvrtc, request)));
  } catch (const NvrtcError& error) {
    if (error.code() != kNvrtcOutOfMemory && error.code() != kNvrtcInternalError) {
      throw;
    }
    result.crashed = true;
    result.reason = fmt::format("NVRTC {} {} on {}", nvrtc.info().version,
                                error.code() == kNvrtcOutOfMemory ? "ran out of memory" : "failed internally",
                                request.source->file.filename().string());
    result.log = error.log();
  }
  result.binary.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::string translated(const Binary& binary, const Translation& translation) {
  try {
    return JitLink(translation.library).cubin(binary.code, translation.architecture, binary.max_registers);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

struct Toolchain::Impl {
  std::variant<std::unique_ptr<Nvrtc>, HostCompiler> tool;
  std::string compiler;
  std::string version;
  std::string path;
};

Toolchain::Toolchain(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Toolchain::Toolchain(Toolchain&&) noexcept = default;
Toolchain& Toolchain::operator=(Toolchain&&) noexcept = default;
Toolchain::~Toolchain() = default;

Toolchain Toolchain::find(const std::string& architecture, const std::string& nvrtc) {
  if (is_emulator_name(architecture)) {
    HostCompiler host = HostCompiler::find();
    return Toolchain(std::make_unique<Impl>(Impl{host, host.name, host.version, host.program}));
  }
  std::unique_ptr<Nvrtc> found = find_nvrtc_for(architecture, nvrtc);
  const NvrtcInfo info = found->info();
  return Toolchain(std::make_unique<Impl>(Impl{std::move(found), "nvrtc", info.version, info.path}));
}

Toolchain Toolchain::open(const std::string& architecture, const std::string& path) {
  if (is_emulator_name(architecture)) {
    HostCompiler host = HostCompiler::open(path);
    return Toolchain(std::make_unique<Impl>(Impl{host, host.name, host.version, host.program}));
  }
  return find(architecture, path);
}

const std::string& Toolchain::compiler() const noexcept { return impl_->compiler; }
const std::string& Toolchain::version() const noexcept { return impl_->version; }
const std::string& Toolchain::path() const noexcept { return impl_->path; }

// A function that the check does not find is left to the compilation without it, which tells what there is instead.
CompileResult Toolchain::compile(const CompileRequest& request) const {
  if (request.source == nullptr) {
    throw Error("cannot compile without a source");
  }
  if (!request.arguments) {
    return compile_unchecked(request);
  }
  KernelSource checked = *request.source;
  checked.text += signature_check(request.function, *request.arguments);
  CompileRequest with_check = request;
  with_check.source = &checked;
  CompileResult result = compile_unchecked(with_check);
  if (!result.ok && !is_of_signature_check(result.reason)) {
    return result;
  }
  const auto fault = result.ok ? parameter_order_fault(request.source->text, request.function, *request.arguments)
                               : signature_fault(result.reason, request.function, *request.arguments);
  if (fault) {
    CompileResult refused;
    refused.reason = fmt::format("{}: error: {}", request.source->file.filename().string(), *fault);
    refused.log = std::move(result.log);
    return refused;
  }
  return result.ok ? result : compile_unchecked(request);
}

CompileResult Toolchain::compile_unchecked(const CompileRequest& request) const {
  if (const HostCompiler* host = std::get_if<HostCompiler>(&impl_->tool)) {
    return compile_for_emulator(*host, request);
  }
  CompileResult result = compile_with(*std::get<std::unique_ptr<Nvrtc>>(impl_->tool), request);
  if (result.ok && request.kind == BinaryKind::ptx && !request.translation.architecture.empty()) {
    result.binary.translated = translated(result.binary, request.translation);
  }
  return result;
}

std::string Toolchain::cache_key(const CompileRequest& request) const {
  std::vector<std::string> defines = request.defines;
  std::sort(defines.begin(), defines.end());
  FieldHash hash;
  hash.add(kKeyVersion).add(impl_->compiler).add(impl_->version).add(request.architecture);
  hash.add(std::to_string(static_cast<int>(request.kind))).add(request.function);
  hash.add(request.address_sanitizer ? "asan" : "").add(request.source->hash);
  hash.add(std::to_string(defines.size()));
  for (const std::string& define : defines) {
    hash.add(define);
  }
  for (const std::string& option : request.options) {
    hash.add(option);
  }
  if (std::holds_alternative<HostCompiler>(impl_->tool)) {
    hash.add(emulator_shim_hash());
  }
  if (!request.translation.architecture.empty()) {
    hash.add(request.translation.architecture).add(request.translation.version);
  }
  if (request.arguments) {
    hash.add(signature_check(request.function, *request.arguments));
    for (const LaunchedArgument& argument : *request.arguments) {
      hash.add(argument.name);
    }
  }
  return hash.hex();
}

}  // namespace pascaline
