#include "runtime/device/compile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <variant>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/hash.hpp"
#include "core/util/installation.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/device/cuda/jit_link.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/emulator/emulated_device.hpp"
#include "runtime/device/emulator/kernel_text.hpp"
#include "runtime/device/launch_rules.hpp"
#include "runtime/device/parameter_order.hpp"
#include "runtime/device/source_folder.hpp"
#include "runtime/device/tunable_constants.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// To be raised whenever the same request would give another Binary.
constexpr std::string_view kKeyVersion = "2";

// Small replacements of the standard headers that kernels use, which NVRTC lacks.
fs::path nvrtc_headers() { return data_folder("shim") / "nvrtc"; }

// Those that stand for CUDA's own.
std::vector<fs::path> instead_of_cuda() { return {nvrtc_headers() / "instead", shared_headers()}; }

const std::string& nvrtc_headers_hash() {
  static const std::string hash = folder_hash(nvrtc_headers()) + folder_hash(shared_headers());
  return hash;
}

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

std::vector<std::string> nvrtc_options(const CompileRequest& request, const std::vector<fs::path>& folders) {
  std::vector<std::string> options{"--gpu-architecture=" + request.architecture};
  if (std::none_of(request.options.begin(), request.options.end(),
                   [](const std::string& option) { return is_option(option, "std"); })) {
    options.emplace_back("--std=c++17");
  }
  for (const fs::path& folder : folders) {
    options.push_back("--include-path=" + folder.string());
  }
  std::remove_copy_if(request.options.begin(), request.options.end(), std::back_inserter(options), is_macro_option);
  return options;
}

// The expression by which NVRTC finds the function; empty for one that keeps its name, or that the source never
// mentions.
std::string name_expression(const CompileRequest& request) {
  const DeclaredKernel kernel = declared_kernel(*request.source, request.function);
  const bool mentioned = kernel.found || request.source->mentions(bare_function(request.function));
  return kernel.c_linkage || !mentioned ? std::string() : kernel.name;
}

// NVRTC gets the macros as lines before the source, not as options: those would change its own headers too. It looks
// for quoted includes in the folder of the source's name, so that is never the one this was started in.
NvrtcOutput compile_in_folder(const Nvrtc& nvrtc, const CompileRequest& request) {
  const std::vector<std::string> macros = macros_of(request);
  const fs::path name = request.source->file.filename();
  const std::string function = name_expression(request);
  const std::string text =
      define_lines(macros) + constant_lines(macros, *request.source) + line_directive(name) + request.source->text;
  std::vector<fs::path> folders = instead_of_cuda();
  folders.insert(folders.end(), nvrtc.include_folders().begin(), nvrtc.include_folders().end());
  folders.push_back(nvrtc_headers());
  if (request.source->headers.empty() && request.source->other_headers().empty()) {
    const fs::path nowhere = "/dev/null";  // a folder without files
    NvrtcOutput output = nvrtc.compile(text, nowhere / name, nvrtc_options(request, folders), function);
    output.log = without_folder(std::move(output.log), nowhere);
    return output;
  }
  const SourceFolder folder(*request.source, {}, [](const std::string& header) { return header; });
  folder.hide(macros, *request.source, folders);
  const std::vector<fs::path> own = folder.searched();
  folders.insert(folders.end() - 1, own.begin(), own.end());
  folders.insert(folders.begin(), folder.hiding());
  NvrtcOutput output = nvrtc.compile(text, folder.home() / name, nvrtc_options(request, folders), function);
  output.log = without_folder(std::move(output.log), folder.home());
  return output;
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

// What to do about a header that NVRTC did not find.
std::string with_advice(std::string reason, const KernelSource& source, const Nvrtc& nvrtc) {
  constexpr std::string_view kOpen = "open source file \"";
  const std::size_t at = reason.find(kOpen);
  if (at == std::string::npos) {
    return reason;
  }
  const std::string_view rest = std::string_view(reason).substr(at + kOpen.size());
  const std::string header(rest.substr(0, rest.find('"')));
  if (const std::string advice = source.advice_for(header); !advice.empty()) {
    return reason + advice;
  }
  if (!is_cuda_header(header)) {
    return reason + fmt::format(
                        "; neither the kernel's folder nor NVRTC has {}: leave it out where __CUDACC_RTC__ is "
                        "defined, or put a header of that name beside the kernel",
                        header);
  }
  const std::string& version = nvrtc.info().version;
  if (!nvrtc.include_folders().empty()) {
    return reason + fmt::format("; the headers of CUDA {} in {} lack it: set CUDA_HOME to a toolkit {}", version,
                                nvrtc.include_folders().front().string(), version);
  }
  const bool brought = version == "11.8" || version == "12.9";
  const std::string setup = brought ? setup_command("--nvrtc-" + version) : std::string();
  return reason + fmt::format("; no headers of CUDA {0} are here: {1}set CUDA_HOME to a toolkit {0}", version,
                              setup.empty() ? std::string() : fmt::format("run {}, or ", setup));
}

// Why the kernel, which the code calls `entry`, cannot be launched from it, or nothing.
std::optional<std::string> kernel_fault(const CompileRequest& request, const std::string& cubin,
                                        const std::string& entry) {
  const std::string file = request.source->file.filename().string();
  const std::vector<std::string> kernels = cubin_kernels(cubin);
  if (std::find(kernels.begin(), kernels.end(), entry) == kernels.end()) {
    return no_kernel_text(file, request.function, kernels);
  }
  const std::int64_t bounds = cubin_launch_bounds(cubin, entry);
  return bounds != 0 && request.threads > bounds
             ? std::optional(launch_bounds_text(file, request.function, bounds, request.threads))
             : std::nullopt;
}

// The file that NVRTC's messages about a name expression are about.
constexpr const char* kNameFile = "__nv_name_map";

// A source without the kernel compiles; that is as much the candidate's fault as an error in it.
CompileResult result_of(const Nvrtc& nvrtc, const CompileRequest& request, NvrtcOutput output) {
  CompileResult result;
  if (!output.ok) {
    const std::string error = first_error(output.log);
    result.reason = error.starts_with(kNameFile)
                        ? wrong_name_text(request.source->file.filename().string(), request.function,
                                          declared_kernel(*request.source, request.function).is_template, error)
                        : with_advice(error, *request.source, nvrtc);
    result.log = std::move(output.log);
    return result;
  }
  const std::string& entry = output.lowered.empty() ? request.function : output.lowered;
  if (auto fault = kernel_fault(request, output.cubin, entry)) {
    result.reason = std::move(*fault);
    result.log = std::move(output.log);
    return result;
  }
  const bool ptx = request.kind == BinaryKind::ptx;
  Binary& binary = result.binary;
  binary.kind = request.kind;
  binary.target = ptx ? "compute" + request.architecture.substr(request.architecture.find('_')) : request.architecture;
  binary.function = entry;
  binary.resources = cubin_resources(output.cubin, entry);
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
    result = result_of(nvrtc, request, compile_in_folder(nvrtc, request));
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

std::vector<CompileRequest> requests_of_functions(const CompileRequest& request) {
  std::vector<CompileRequest> requests{request};
  requests.front().then.clear();
  for (const LaunchedFunction& function : request.then) {
    CompileRequest& next = requests.emplace_back(requests.front());
    next.function = function.function;
    next.arguments = function.arguments;
    next.threads = function.threads;
  }
  return requests;
}

// A function that the check does not find is left to the compilation without it, which says what there is instead.
CompileResult Toolchain::compile(const CompileRequest& request) const {
  if (request.source == nullptr) {
    throw Error("cannot compile without a source");
  }
  if (!request.arguments) {
    return compile_unchecked(request);
  }
  const DeclaredKernel kernel = declared_kernel(*request.source, request.function);
  KernelSource checked = *request.source;
  checked.text += signature_check(kernel.name, *request.arguments);
  CompileRequest with_check = request;
  with_check.source = &checked;
  CompileResult result = compile_unchecked(with_check);
  if (!result.ok && !is_of_signature_check(result.reason)) {
    return result;
  }
  const auto fault = result.ok ? parameter_order_fault(kernel.found ? kernel.text : request.source->text,
                                                       std::string(bare_function(request.function)), *request.arguments)
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
  hash.add(std::to_string(request.threads));
  if (const auto* nvrtc = std::get_if<std::unique_ptr<Nvrtc>>(&impl_->tool)) {
    hash.add(nvrtc_headers_hash()).add(std::to_string((*nvrtc)->include_folders().size()));
  } else {
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
