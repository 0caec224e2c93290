#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <span>
#include <sstream>
#include <vector>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/util/hash.hpp"
#include "core/util/interruption.hpp"
#include "core/util/paths.hpp"
#include "core/util/process.hpp"
#include "core/util/stop_check.hpp"
#include "runtime/device/emulator/emulated_device.hpp"
#include "runtime/device/emulator/emulated_device_info.hpp"
#include "runtime/device/emulator/kernel_text.hpp"
#include "runtime/device/emulator/parsed_headers.hpp"
#include "runtime/device/emulator/sanitizer_hooks.hpp"
#include "runtime/device/emulator/static_shared.hpp"
#include "runtime/device/launch_rules.hpp"
#include "runtime/device/source_folder.hpp"
#include "runtime/device/tunable_constants.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;
using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr std::chrono::minutes kCompileDeadline{5};

// No contraction: a result depends on the source alone, not on whether this processor has fused multiply-add.
// No strict aliasing: kernels read float arrays through float4 pointers. Unused kernels and their shared arrays
// are dropped by the linker. An object with unique symbols could never be unloaded.
constexpr const char* kFlags[] = {
    "-DPASCALINE_HOST_DEVICE=1", "-nostdinc",         "-march=native",        "-fPIC",
    "-fno-strict-aliasing",      "-ffp-contract=off", "-fno-math-errno",      "-fvisibility=hidden",
    "-ffunction-sections",       "-fdata-sections",   "-Wno-unknown-pragmas", "-Wno-attributes",
    "-fdiagnostics-color=never"};
constexpr const char* kFastFlags[] = {"-O2"};
constexpr const char* kSanitizerFlags[] = {"-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer",
                                           "-DPASCALINE_ADDRESS_SANITIZER=1"};

// The entries of PATH. An empty or relative one would be a place in whatever folder this was started in.
std::vector<std::string> absolute_path_entries() {
  const char* variable = std::getenv("PATH");
  std::string_view entries = variable != nullptr ? variable : "/usr/bin:/bin";
  std::vector<std::string> folders;
  while (!entries.empty()) {
    const std::size_t colon = std::min(entries.find(':'), entries.size());
    if (entries.front() == '/') {
      folders.emplace_back(entries.substr(0, colon));
    }
    entries.remove_prefix(std::min(colon + 1, entries.size()));
  }
  return folders;
}

// A preloaded AddressSanitizer is meant for this process, not for the compiler. The compiler looks for its assembler
// and linker along PATH, where an empty variable would mean the working directory. Headers of other folders than its
// own are no kernel's. Its own temporary files go into the
// folder of the compilation, as they would stay if it were killed.
Environment compiler_environment(const fs::path& scratch = {}) {
  const std::vector<std::string> folders = absolute_path_entries();
  Environment environment{{"LC_ALL", "C"},
                          {"CPATH", ""},
                          {"CPLUS_INCLUDE_PATH", ""},
                          {"PATH", folders.empty() ? "/usr/bin:/bin" : fmt::format("{}", fmt::join(folders, ":"))}};
  if (!scratch.empty()) {
    environment.emplace_back("TMPDIR", scratch.string());
  }
  if (sanitizer_hooks().present()) {
    environment.emplace_back("LD_PRELOAD", "");
  }
  return environment;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? name : std::string();
  }
  for (const std::string& folder : absolute_path_entries()) {
    if (const fs::path candidate = fs::path(folder) / name; ::access(candidate.c_str(), X_OK) == 0) {
      return candidate.string();
    }
  }
  return {};
}

std::optional<HostCompiler> describe(const std::string& program) {
  const ProcessResult result = run_process({program, "--version"}, std::chrono::seconds(30), compiler_environment());
  const std::string line = result.output.substr(0, result.output.find('\n'));
  std::smatch found;
  // GCC's own version ends the line; before it a distribution may name its package.
  static const std::regex pattern(R"(([0-9]+\.[0-9]+(\.[0-9]+)?)[^ ]*$)");
  if (result.exit_code != 0 || !std::regex_search(line, found, pattern)) {
    return std::nullopt;
  }
  return HostCompiler{program, line.find("clang") != std::string::npos ? "clang++" : "g++", found[1].str()};
}

// Options of NVRTC that mean the same to a C++ compiler; the others steer GPU code only. The emulated device's own
// headers need C++17: code for an older standard is compiled as that.
std::vector<std::string> host_options(const std::vector<std::string>& options) {
  std::vector<std::string> out{"-std=c++17"};
  for (const std::string& option : options) {
    for (const std::string_view given : {"--std=", "-std="}) {
      if (option.starts_with(given) && !option.ends_with("03") && !option.ends_with("11") && !option.ends_with("14")) {
        out.push_back(fmt::format("-std={}", option.substr(given.size())));
      }
    }
  }
  return out;
}

// What becomes code, or a word for the compiler, is looked at again here, wherever the request came from.
void require_harmless(const CompileRequest& request) {
  const auto require = [&](const std::string& text, const std::optional<std::string>& why) {
    if (why) {
      throw EmulatorError(fmt::format("cannot compile {} for the emulated device: '{}' {}",
                                      request.source->file.filename().string(), text, *why));
    }
  };
  require(request.function, why_no_function(request.function));
  for (const std::string& define : request.defines) {
    require(define, why_no_define(define));
  }
  for (const std::string& option : request.options) {
    require(option, why_no_compiler_option(option));
  }
}

// Whose launch bounds are checked; no one's if the size of the blocks is not known.
std::string_view bounded_function(const CompileRequest& request) {
  return request.threads > 0 ? bare_function(request.function) : std::string_view();
}

// Names that lines of the launcher have in messages, so that a compiler's complaint about one tells what is wrong.
constexpr const char* kNoKernel = "pascaline_no_kernel";
constexpr const char* kNoBody = "pascaline_no_body";

// Names that the system's C library takes and CUDA does not. A kernel that has them gets others here.
constexpr const char* kFreeNames[] = {
    "basename", "bsearch", "canonicalize", "daylight", "difftime",  "div",      "drem",      "fadd",
    "fdiv",     "ffma",    "ffs",          "finite",   "fmaximum",  "fmaxmag",  "fminimum",  "fminmag",
    "fmul",     "fromfp",  "fsub",         "gamma",    "getline",   "index",    "initstate", "ldiv",
    "llogb",    "memmem",  "nextdown",     "nextup",   "qsort",     "rand",     "random",    "remove",
    "rename",   "rindex",  "roundeven",    "scalb",    "select",    "setstate", "signgam",   "significand",
    "strlen",   "system",  "time",         "timezone", "totalorder"};

// The C++ library asks for functions that are not inlined by a name that is CUDA's own macro for that.
std::vector<std::string> free_names() {
  std::vector<std::string> macros{"__noinline__=__attribute__((noinline))"};
  for (const char* name : kFreeNames) {
    macros.push_back(fmt::format("{0}=pascaline_free_{0}", name));
  }
  return macros;
}

// The folders of the C and C++ libraries' headers. Others that the compiler would look in have what NVRTC does not
// find, such as a toolkit's headers, which are not for the emulated device.
std::vector<fs::path> system_headers(const HostCompiler& compiler) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<fs::path>> known;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = known.try_emplace(compiler.program);
  if (is_new) {
    const ProcessResult run = run_process({compiler.program, "-x", "c++", "-E", "-v", "/dev/null"},
                                          std::chrono::seconds(30), compiler_environment());
    std::istringstream lines(run.output);
    for (std::string line; std::getline(lines, line);) {
      const fs::path folder = fs::path(line.substr(line.starts_with(' ') ? 1 : 0)).lexically_normal();
      std::error_code ignored;
      if (folder.is_absolute() && fs::is_directory(folder, ignored) && folder != "/usr/local/include") {
        entry->second.push_back(folder);
      }
    }
  }
  return entry->second;
}

std::string no_cuda_header_text(const std::string& header) {
  return fmt::format("the emulated device has no {}; leave it out where PASCALINE_HOST_DEVICE is defined", header);
}

std::vector<fs::path> own_headers() { return {data_folder("shim"), shared_headers()}; }

// A folder of the system's may have CUDA's headers among the C library's: before each stands one that refuses it.
void refuse_cuda_headers(const SourceFolder& folder, const KernelSource& source, const std::vector<fs::path>& system) {
  for (const std::string& name : source.other_headers()) {
    const auto is_in = [&](const std::vector<fs::path>& places) {
      return std::any_of(places.begin(), places.end(), [&](const fs::path& place) {
        std::error_code ignored;
        return fs::is_regular_file(place / name, ignored);
      });
    };
    if (is_cuda_header(name) && !is_in(own_headers()) && is_in(system)) {
      fs::create_directories((folder.hiding() / name).parent_path());
      write_file_atomically(folder.hiding() / name,
                            line_directive(name) + "#error " + no_cuda_header_text(name) + "\n");
    }
  }
}

// The macros come after what the source builds on and end before its launcher, which they must not change either.
std::string unit_text(const CompileRequest& request, const fs::path& parent) {
  const KernelSource& source = *request.source;
  const std::vector<std::string> macros = macros_of(request);
  std::string text = "#include <pascaline/unit.h>\n";
  text += fmt::format("#define PASCALINE_BLOCK_THREADS {}\n", request.threads);
  text += define_lines(free_names()) + define_lines(macros) + constant_lines(macros, source);
  text += line_directive(parent / source.file.filename());
  text += rewrite_for_emulator(source.text, bounded_function(request));
  const DeclaredKernel kernel = declared_kernel(source, request.function);
  text += fmt::format(
      "\n#line 1 \"{0}\"\nusing PascalineKernel = pascaline_host::Undefaulted<decltype({1})>::Type;\n"
      "#line 1 \"{0}\"\nstatic constexpr PascalineKernel* pascaline_kernel = &{1};\n",
      kNoKernel, kernel.name);
  text += undefine_lines(macros);
  // Declared once more as hidden, a function without a body does not link.
  if (!kernel.is_template) {
    const std::string scope = kernel.scope.empty() ? std::string() : fmt::format("namespace {} {{ ", kernel.scope);
    text += fmt::format("#line 1 \"{}\"\n{}__attribute__((visibility(\"hidden\"))) PascalineKernel {};{}\n", kNoBody,
                        scope, bare_function(request.function), scope.empty() ? "" : " }");
  }
  return text + "#line 1 \"pascaline_launcher\"\nPASCALINE_HOST_KERNEL(*pascaline_kernel)\n";
}

fs::path write_unit(const SourceFolder& folder, const CompileRequest& request, const fs::path& parent) {
  fs::path unit = folder.home() / "pascaline_unit.cpp";
  write_file_atomically(unit, unit_text(request, parent));
  return unit;
}

// The compiler and its options, as far as they are those of any kernel.
std::vector<std::string> command_start(const HostCompiler& compiler, const CompileRequest& request) {
  std::vector<std::string> command{compiler.program};
  command.insert(command.end(), std::begin(kFlags), std::end(kFlags));
  if (request.address_sanitizer) {
    command.insert(command.end(), std::begin(kSanitizerFlags), std::end(kSanitizerFlags));
  } else {
    command.insert(command.end(), std::begin(kFastFlags), std::end(kFastFlags));
  }
  command.push_back(compiler.name == "clang++" ? "-Wno-pass-failed" : "-fno-gnu-unique");
  for (const std::string& option : host_options(request.options)) {
    command.push_back(option);
  }
  return command;
}

void append_folders(std::vector<std::string>& command, const std::vector<fs::path>& folders) {
  for (const fs::path& searched : folders) {
    command.insert(command.end(), {"-isystem", searched.string()});
  }
}

std::vector<std::string> command_for(std::vector<std::string> start, const SourceFolder& folder,
                                     const std::vector<fs::path>& system, const ParsedHeaders& parsed,
                                     const fs::path& unit, const fs::path& object) {
  if (!parsed.folder().empty()) {
    append_folders(start, {parsed.folder()});
  }
  append_folders(start, {folder.hiding()});
  append_folders(start, system);
  for (const fs::path& searched : folder.searched()) {
    start.insert(start.end(), {"-iquote", searched.string(), "-idirafter", searched.string()});
  }
  start.insert(start.end(), {"-shared", "-Wl,--gc-sections", "-x", "c++", unit.string(), "-o", object.string()});
  return start;
}

bool has_shared_variables(const KernelSource& source) {
  const auto has = [](const std::string& text) { return text.find("__shared__") != std::string::npos; };
  return has(source.text) || std::any_of(source.headers.begin(), source.headers.end(),
                                         [&](const auto& header) { return has(header.second); });
}

// Why the kernel cannot be launched, if that is what the compiler found; nothing if it is something else.
std::optional<std::string> fault_in_kernel(const CompileRequest& request, const std::string& log) {
  const std::string file = request.source->file.filename().string();
  static const std::regex bounds("PascalineLaunchBounds<([0-9]+)");
  if (std::smatch found; std::regex_search(log, found, bounds)) {
    return launch_bounds_text(file, request.function, std::stoll(found.str(1)), request.threads);
  }
  const std::size_t error = log.find("error:");
  const std::size_t begin = error == std::string::npos ? error : log.rfind('\n', error) + 1;
  if (begin != std::string::npos && log.compare(begin, std::string_view(kNoKernel).size(), kNoKernel) == 0) {
    return wrong_name_text(file, request.function, declared_kernel(*request.source, request.function).is_template,
                           log.substr(begin, log.find('\n', begin) - begin));
  }
  if (log.find(kNoBody) != std::string::npos || log.find("hidden symbol") != std::string::npos) {
    return no_kernel_text(file, request.function, {});
  }
  if (log.find("Assembler messages:") != std::string::npos) {
    return fmt::format(
        "{}: error: it has PTX in asm statements, which only a GPU runs; leave them out where "
        "PASCALINE_HOST_DEVICE is defined",
        file);
  }
  return std::nullopt;
}

// What to do about a header that the compiler did not find.
std::string missing_header_advice(const KernelSource& source, const std::string& error) {
  static const std::regex missing("error: '?([^':]+)(: No such file|' file not found)");
  std::smatch found;
  if (!std::regex_search(error, found, missing)) {
    return {};
  }
  const std::string header = found.str(1);
  const std::string advice = source.advice_for(header);
  return !advice.empty() || !is_cuda_header(header) ? advice : "; " + no_cuda_header_text(header);
}

// The first line that tells an error, its file named without the folder.
std::string first_error(const std::string& log, const fs::path& folder) {
  std::size_t at = log.find("error:");
  at = at == std::string::npos ? log.find("undefined") : at;
  const std::size_t begin = at == std::string::npos ? 0 : log.rfind('\n', at) + 1;
  std::string line = log.substr(begin, log.find('\n', begin) - begin);
  const std::string prefix = folder.string() + "/";
  if (line.starts_with(prefix)) {
    line.erase(0, prefix.size());
  }
  return line.empty() ? "the compiler failed without a message" : line;
}

CompileResult failed(std::string reason, std::string log) {
  CompileResult result;
  result.reason = std::move(reason);
  result.log = std::move(log);
  return result;
}

CompileResult crashed(std::string reason, std::string log) {
  CompileResult result = failed(std::move(reason), std::move(log));
  result.crashed = true;
  return result;
}

// The first line of `log` in which one of `phrases` stands.
std::optional<std::string> line_with(const std::string& log, std::initializer_list<const char*> phrases) {
  for (const char* phrase : phrases) {
    if (const std::size_t at = log.find(phrase); at != std::string::npos) {
      const std::size_t begin = at == 0 ? 0 : log.rfind('\n', at - 1) + 1;
      return log.substr(begin, log.find('\n', at) - begin);
    }
  }
  return std::nullopt;
}

// What GCC, its linker driver and Clang say when a part of theirs was ended by a signal or failed, which is no verdict
// on the source.
std::optional<std::string> crash_line(const std::string& log) {
  return line_with(
      log, {"internal compiler error", "signal terminated program", "terminated with signal", "failed due to signal"});
}

// Whether a compiler that failed was short of memory. Most say so; one whose stack cannot grow within the cap on its
// address space ends by a segmentation fault instead, when code and unused pages take up to half of the cap.
bool ran_out_of_memory(const ProcessResult& run) {
  if (line_with(run.output, {"out of memory", "memory exhausted", "Cannot allocate memory", "std::bad_alloc"})) {
    return true;
  }
  rlimit limit{};
  const bool capped = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return capped && run.peak_resident_bytes >= limit.rlim_cur / 2 && (run.signal != 0 || crash_line(run.output));
}

constexpr std::array<const char*, 3> kUsualCompilers{"c++", "g++", "clang++"};

// What the user names, in that order; nothing where nothing is named.
std::vector<std::string> chosen_compilers() {
  const char* variable = std::getenv("PASCALINE_HOST_CXX");
  std::vector<std::string> names;
  for (std::string_view rest = variable != nullptr ? variable : ""; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma > 0) {
      names.emplace_back(rest.substr(0, comma));
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

std::optional<HostCompiler> working_compiler(const std::string& name) {
  const std::string program = find_program(name);
  return program.empty() ? std::nullopt : describe(program);
}

[[noreturn]] void fail_to_find(const std::string& tried) {
  throw EmulatorError(
      fmt::format("no working C++ compiler for the emulated device (tried {}); install g++ or set "
                  "PASCALINE_HOST_CXX to one",
                  tried));
}

}  // namespace

HostCompiler HostCompiler::find() {
  const std::vector<std::string> chosen = chosen_compilers();
  if (!chosen.empty()) {
    return open(chosen.front());
  }
  for (const char* name : kUsualCompilers) {
    if (std::optional<HostCompiler> compiler = working_compiler(name)) {
      return *compiler;
    }
  }
  fail_to_find(fmt::format("{}", fmt::join(kUsualCompilers, ", ")));
}

std::vector<HostCompiler> HostCompiler::find_all() {
  std::vector<HostCompiler> found;
  const auto add = [&](HostCompiler compiler) {
    if (std::none_of(found.begin(), found.end(), [&](const HostCompiler& known) {
          return known.name == compiler.name && known.version == compiler.version;
        })) {
      found.push_back(std::move(compiler));
    }
  };
  for (const std::string& name : chosen_compilers()) {
    add(open(name));
  }
  return found.empty() ? std::vector<HostCompiler>{find()} : found;
}

HostCompiler HostCompiler::open(const std::string& name) {
  std::optional<HostCompiler> compiler = working_compiler(name);
  if (!compiler) {
    fail_to_find(name);
  }
  return std::move(*compiler);
}

CompileResult compile_for_emulator(const HostCompiler& compiler, const CompileRequest& request) {
  require_harmless(request);
  if (!declared_kernel(*request.source, request.function).global) {
    return failed(no_kernel_text(request.source->file.filename().string(), request.function, {}), {});
  }
  const fs::path parent = fs::absolute(request.source->file).lexically_normal().parent_path();
  const SourceFolder folder(*request.source, parent, [&](const std::string& header) {
    return rewrite_for_emulator(header, bounded_function(request));
  });
  const fs::path& scratch = folder.path();
  const fs::path object = scratch / "kernel.so";
  const fs::path unit = write_unit(folder, request, parent);
  std::vector<std::string> macros = free_names();
  const std::vector<fs::path> system = system_headers(compiler);
  std::vector<fs::path> searched = own_headers();
  searched.insert(searched.end(), system.begin(), system.end());
  for (std::string& macro : macros_of(request)) {
    std::erase_if(macros, [&](const std::string& other) { return macro_name(other) == macro_name(macro); });
    macros.push_back(std::move(macro));
  }
  folder.hide(macros, *request.source, searched);
  refuse_cuda_headers(folder, *request.source, system);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string> start = command_start(compiler, request);
  std::vector<std::string> of_headers = start;
  append_folders(of_headers, searched);
  const ParsedHeaders parsed(request.parsed_headers, compiler, of_headers);
  const auto run_compiler = [&](const std::vector<std::string>& command) {
    return run_process(command, kCompileDeadline, compiler_environment(scratch), [] { return interruption().load(); });
  };
  ProcessResult run = run_compiler(command_for(start, folder, searched, parsed, unit, object));
  if (run.exit_code != 0 && !run.stopped && parsed.given_up_after(run.output)) {
    run = run_compiler(command_for(start, folder, searched, parsed, unit, object));
  }
  if (run.stopped) {
    throw StoppedError("interrupted while a kernel was compiled");
  }
  if (run.timed_out) {
    return crashed(fmt::format("the compiler took longer than {} minutes", kCompileDeadline.count()), run.output);
  }
  if (run.exit_code != 0) {
    if (ran_out_of_memory(run)) {
      return crashed(fmt::format("{} ran out of memory on {}", compiler.name, request.source->file.filename().string()),
                     run.output);
    }
    if (run.signal != 0) {
      return crashed(
          fmt::format("{} was ended by signal {} ({})", compiler.program, run.signal, ::strsignal(run.signal)),
          run.output);
    }
    if (auto line = crash_line(run.output)) {
      return crashed(std::move(*line), run.output);
    }
    auto fault = fault_in_kernel(request, run.output);
    const std::string error = fault ? std::move(*fault) : first_error(run.output, parent);
    return failed(error + missing_header_advice(*request.source, error), run.output);
  }
  CompileResult result;
  result.binary.kind = BinaryKind::host_object;
  result.binary.target = kStoredEmulatorName;
  result.binary.function = request.function;
  result.binary.code = read_file(object);
  result.binary.log = run.output;
  result.binary.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  result.binary.resources.static_shared_bytes = static_shared_bytes(result.binary.code);
  // AddressSanitizer makes shared variables like any others: their size is that of the same code without it.
  if (request.address_sanitizer && has_shared_variables(*request.source)) {
    CompileRequest without = request;
    without.address_sanitizer = false;
    const CompileResult plain = compile_for_emulator(compiler, without);
    if (!plain.ok) {
      return plain;
    }
    result.binary.resources.static_shared_bytes = plain.binary.resources.static_shared_bytes;
  }
  const std::int64_t most = DeviceLimits().max_shared_bytes_per_block;
  if (result.binary.resources.static_shared_bytes > most) {
    return failed(fmt::format("{} has {} bytes of static shared memory, a block may have {}", request.function,
                              result.binary.resources.static_shared_bytes, most),
                  run.output);
  }
  parsed.make(data_folder("shim") / "pascaline" / "unit.h", [&](const std::vector<std::string>& command) {
    const ProcessResult made = run_compiler(command);
    if (made.stopped) {
      throw StoppedError("interrupted while headers were compiled");
    }
    return made.exit_code == 0;
  });
  result.ok = true;
  return result;
}

std::string emulator_shim_hash() {
  static const std::string shim_hash = [] {
    FieldHash hash;
    hash.add(processor_identity());
    for (const std::span<const char* const> flags :
         {std::span<const char* const>(kFlags), std::span<const char* const>(kFastFlags),
          std::span<const char* const>(kSanitizerFlags)}) {
      for (const char* flag : flags) {
        hash.add(flag);
      }
    }
    return hash.add(folder_hash(data_folder("shim"))).hex();
  }();
  return shim_hash;
}

}  // namespace pascaline
