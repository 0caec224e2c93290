#include "runtime/device/cuda/nvrtc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr int kInvalidOption = 5;
constexpr int kCompilationFailed = 6;

DynamicLibrary open_library(const std::string& path) {
  std::string why;
  // Each unloading of an NVRTC loses some 100 KB, and it is looked for and opened again and again.
  std::optional<DynamicLibrary> library = DynamicLibrary::try_open(path, &why, true);
  if (!library) {
    throw NvrtcError(fmt::format("cannot load NVRTC {}: {}", path, why));
  }
  return std::move(*library);
}

}  // namespace

Nvrtc::Nvrtc(const std::string& path) : library_(open_library(path)) {
  try {
    int major = 0;
    int minor = 0;
    check("nvrtcVersion", library_.function<int (*)(int*, int*)>("nvrtcVersion")(&major, &minor));
    info_.path = library_.path();
    info_.version = fmt::format("{}.{}", major, minor);
    no_cache_ = major > 12 || (major == 12 && minor >= 9);
    read_architectures();
    load_builtins();
  } catch (const NvrtcError&) {
    throw;
  } catch (const Error& error) {
    throw NvrtcError(fmt::format("{}; NVRTC 11.2 or newer is needed", error.what()));
  }
  include_folders_ = find_cuda_headers(library_.path(), info_.version);
}

void Nvrtc::read_architectures() {
  int count = 0;
  check("nvrtcGetNumSupportedArchs", library_.function<int (*)(int*)>("nvrtcGetNumSupportedArchs")(&count));
  std::vector<int> numbers(static_cast<std::size_t>(count));
  check("nvrtcGetSupportedArchs", library_.function<int (*)(int*)>("nvrtcGetSupportedArchs")(numbers.data()));
  for (const int number : numbers) {
    info_.architectures.push_back(fmt::format("sm_{}", number));
  }
}

// A library without a RUNPATH (Debian's, the toolkit's) finds its builtins only on the loader's path. Opening them by
// their full path first makes them known under the name it will ask for.
void Nvrtc::load_builtins() {
  std::error_code ignored;
  const fs::path given = fs::path(info_.path).parent_path();
  const fs::path real = fs::canonical(info_.path, ignored).parent_path();
  for (const fs::path& folder : {given, real}) {
    const fs::path file = folder / ("libnvrtc-builtins.so." + info_.version);
    if (folder.empty() || !fs::exists(file, ignored)) {
      continue;
    }
    if (std::optional<DynamicLibrary> builtins = DynamicLibrary::try_open(file.string())) {
      builtins_.push_back(std::move(*builtins));
      return;
    }
  }
}

void Nvrtc::check(const char* symbol, int result) const {
  if (result == 0) {
    return;
  }
  const auto describe = reinterpret_cast<const char* (*)(int)>(library_.find("nvrtcGetErrorString"));
  throw NvrtcError(
      fmt::format("{} of {} failed: {} ({}); is the library complete, with its libnvrtc-builtins beside it?", symbol,
                  library_.path(), describe != nullptr ? describe(result) : "?", result),
      result);
}

std::string Nvrtc::text_of(Program program, const char* size_symbol, const char* text_symbol) const {
  std::size_t bytes = 0;
  check(size_symbol, library_.function<int (*)(Program, std::size_t*)>(size_symbol)(program, &bytes));
  std::string text(bytes, '\0');
  if (bytes > 0) {
    check(text_symbol, library_.function<int (*)(Program, char*)>(text_symbol)(program, text.data()));
  }
  return text;
}

NvrtcOutput Nvrtc::compile_once(const std::string& text, const fs::path& file, const std::vector<std::string>& options,
                                const std::string& function, int& result) const {
  std::vector<const char*> arguments;
  for (const std::string& option : options) {
    arguments.push_back(option.c_str());
  }
  using Create = int (*)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  const auto destroy = library_.function<int (*)(Program*)>("nvrtcDestroyProgram");
  Program created = nullptr;
  check("nvrtcCreateProgram",
        library_.function<Create>("nvrtcCreateProgram")(&created, text.c_str(), file.c_str(), 0, nullptr, nullptr));
  const auto destroy_program = [destroy](Program program) { destroy(&program); };
  const std::unique_ptr<void, decltype(destroy_program)> program(created, destroy_program);

  if (!function.empty()) {
    using Add = int (*)(Program, const char*);
    check("nvrtcAddNameExpression", library_.function<Add>("nvrtcAddNameExpression")(program.get(), function.c_str()));
  }
  using Compile = int (*)(Program, int, const char* const*);
  result = library_.function<Compile>("nvrtcCompileProgram")(program.get(), static_cast<int>(arguments.size()),
                                                             arguments.data());
  NvrtcOutput output;
  output.ok = result == 0;
  output.log = text_of(program.get(), "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
  output.log.resize(output.log.find_last_not_of(std::string_view("\0\n", 2)) + 1);
  if (output.ok) {
    output.cubin = text_of(program.get(), "nvrtcGetCUBINSize", "nvrtcGetCUBIN");
    output.ptx = text_of(program.get(), "nvrtcGetPTXSize", "nvrtcGetPTX");
    output.ptx.resize(output.ptx.find_last_not_of('\0') + 1);
    if (!function.empty()) {
      using Lowered = int (*)(Program, const char*, const char**);
      const char* name = nullptr;
      check("nvrtcGetLoweredName",
            library_.function<Lowered>("nvrtcGetLoweredName")(program.get(), function.c_str(), &name));
      output.lowered = name;
    }
  }
  return output;
}

NvrtcOutput Nvrtc::compile(const std::string& text, const fs::path& file, const std::vector<std::string>& options,
                           const std::string& function) const {
  int result = 0;
  NvrtcOutput output;
  if (no_cache_) {
    // NVRTC 12.9 keeps a cache of its own, which would make compile times meaningless.
    std::vector<std::string> with_no_cache = options;
    with_no_cache.emplace_back("--no-cache");
    output = compile_once(text, file, with_no_cache, function, result);
    if (result == kInvalidOption && output.log.find("no-cache") != std::string::npos) {
      no_cache_ = false;
    }
  }
  if (!no_cache_) {
    output = compile_once(text, file, options, function, result);
  }
  if (result != 0 && result != kCompilationFailed && result != kInvalidOption) {
    throw NvrtcError(
        fmt::format("NVRTC {} ({}) failed with {} on {}: {}; is libnvrtc-builtins.so.{} beside it?", info_.version,
                    info_.path, result, file.filename().string(), output.log, info_.version),
        result, output.log);
  }
  return output;
}

}  // namespace pascaline
