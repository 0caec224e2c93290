#include "runtime/device/emulator/sanitized_run.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "core/error.hpp"
#include "core/util/process.hpp"
#include "runtime/device/emulator/sanitizer_hooks.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// The runtime that code of this compiler needs.
std::string runtime_library(const HostCompiler& compiler) {
  const std::string name = compiler.name == "clang++" ? "libclang_rt.asan-x86_64.so" : "libasan.so";
  const ProcessResult result = run_process({compiler.program, "-print-file-name=" + name}, std::chrono::seconds(30));
  const std::string path = result.output.substr(0, result.output.find('\n'));
  if (result.exit_code != 0 || !fs::path(path).is_absolute() || !fs::exists(path)) {
    throw EmulatorError(fmt::format("{} has no AddressSanitizer runtime ({}); install its package (libasan for g++)",
                                    compiler.program, name));
  }
  return fs::canonical(path).string();
}

std::vector<std::pair<std::string, std::string>> environment_for(const HostCompiler& compiler) {
  std::vector<std::pair<std::string, std::string>> environment{
      {"ASAN_OPTIONS", fmt::format("detect_leaks=0:abort_on_error=0:halt_on_error=1:exitcode={}:color=never:"
                                   "detect_stack_use_after_return=0:symbolize=1",
                                   kSanitizerExitCode)}};
  if (!sanitizer_hooks().present()) {
    const char* others = std::getenv("LD_PRELOAD");
    const std::string library = runtime_library(compiler);
    environment.emplace_back("LD_PRELOAD", others != nullptr && *others != '\0' ? library + ":" + others : library);
  }
  return environment;
}

// `#1 0x7f… in name /path/file.cu:12:5`: the first frame that has a line and is not the shim's.
void find_frame(const std::string& text, SanitizerReport& report) {
  static const std::regex frame_pattern(R"(#[0-9]+ 0x[0-9a-f]+ in (.+?) (/.*/)([^/\n:]+):([0-9]+)(:[0-9]+)?)");
  for (std::sregex_iterator frame(text.begin(), text.end(), frame_pattern), end; frame != end; ++frame) {
    const std::string folder = (*frame)[2].str();
    const std::string file = (*frame)[3].str();
    if (folder.find("/device/shim/") == std::string::npos && folder.find("/pascaline/shim/") == std::string::npos &&
        folder.find("/libsanitizer/") == std::string::npos) {
      report.location = file + ":" + (*frame)[4].str();
      report.function = (*frame)[1].str();
      return;
    }
  }
}

}  // namespace

std::optional<SanitizerReport> parse_sanitizer_report(std::string_view output) {
  constexpr std::string_view kTitle = "ERROR: AddressSanitizer: ";
  const std::size_t title = output.find(kTitle);
  if (title == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string text(output.substr(title + kTitle.size()));
  SanitizerReport report;
  report.kind = text.substr(0, text.find_first_of(" \n"));
  static const std::regex access_pattern(R"((READ|WRITE) (of size [0-9]+|memory access))");
  std::smatch access;
  if (std::regex_search(text, access, access_pattern)) {
    report.access = access.str();
  }
  // The first paragraph is the access's own stack; later ones tell where the memory came from.
  find_frame(text.substr(0, text.find("\n\n")), report);
  return report;
}

SanitizedRun run_sanitized(const HostCompiler& compiler, const std::vector<std::string>& command,
                           std::chrono::milliseconds deadline, const std::function<bool()>& stop) {
  ProcessResult result = run_session(command, deadline, environment_for(compiler), stop);
  SanitizedRun run;
  run.exit_code = result.exit_code;
  run.timed_out = result.timed_out;
  run.stopped = result.stopped;
  run.report = parse_sanitizer_report(result.output);
  run.output = std::move(result.output);
  return run;
}

}  // namespace pascaline
