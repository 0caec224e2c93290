#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/binary.hpp"
#include "core/config.hpp"
#include "core/device/device_limits.hpp"
#include "core/problem.hpp"
#include "core/trial.hpp"
#include "db/store.hpp"

namespace pascaline {

/// The configuration a problem is run with, as it was measured.
struct BundleWinner {
  Problem problem;
  Config config;
  TimeSummary time;
  double confidence = 0;  ///< that it is not slower than the default
  ToolkitRow toolkit;     ///< that it was measured with; of the bundle's target
};

/// Code of one kernel function for certain macros and compiler options.
struct BundleCode {
  std::vector<std::string> defines;  ///< `NAME=value`, as BoundSpace::defines gives them
  std::vector<std::string> options;  ///< likewise
  Resources resources;
  int max_registers = 0;    ///< as in Binary
  std::size_t toolkit = 0;  ///< that made it: index in the bundle's toolkits
  std::string code;         ///< of the bundle's kind
  std::string function{};   ///< the kernel's function in it, where that is not called as the search space names it
};

/// What a bundle holds of one kernel.
struct BundleKernel {
  std::string name;
  std::string source_hash;  ///< of the version that winners and code are of
  std::string space_hash;
  std::string function;  ///< as the search space names it
  std::vector<BundleWinner> winners;
  std::vector<BundleCode> codes;
};

/// Name of the kernel's function in one of its codes.
[[nodiscard]] inline const std::string& function_in(const BundleKernel& kernel, const BundleCode& code) {
  return code.function.empty() ? kernel.function : code.function;
}

/// Winners and code for one architecture: all that a program needs to run tuned kernels where there is no compiler.
struct Bundle {
  std::string program_version;  ///< of the program that made it
  std::string architecture;     ///< "sm_61": of the code, or that the PTX is made for; "host"
  BinaryKind kind = BinaryKind::cubin;
  std::vector<ToolkitRow> toolkits;  ///< that made code, first that of what is not tuned; never empty in a file
  DeviceLimits limits;               ///< that configurations were chosen under
  std::optional<DeviceRow> device;   ///< the winners', its `limits_json` empty; without winners there may be none
  std::vector<BundleKernel> kernels;
};

/// The bundle as a file's bytes (docs/design.md has the format). Throws Error if a text in it is not UTF-8.
[[nodiscard]] std::string encode_bundle(const Bundle& bundle);

/// Reads what `encode_bundle` wrote: every byte is accounted for, by a hash or by its only possible value. Throws Error
/// naming `file` if the bytes are damaged, of another format, or do not make sense by themselves.
[[nodiscard]] Bundle parse_bundle(std::string_view bytes, const std::string& file);

/// `parse_bundle` of a file; one that is no bundle is refused before it is read whole.
[[nodiscard]] Bundle load_bundle(const std::filesystem::path& file);

/// The winners as a database would give them. The bundle has a device if it has winners.
[[nodiscard]] std::vector<Winner> winners_of(const Bundle& bundle);

/// Target of the toolkit that makes such code: "sm_61", "compute_61", "host".
[[nodiscard]] std::string target_of(const Bundle& bundle);

}  // namespace pascaline
