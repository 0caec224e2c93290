#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/compile.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// The system's C++ compiler as the emulated device uses it.
struct HostCompiler {
  std::string program;  ///< path
  std::string name;     ///< "g++" or "clang++"
  std::string version;  ///< "12.2.0"

  /// $PASCALINE_HOST_CXX (of several, separated by commas, the first), else c++, g++, clang++ on PATH; throws
  /// EmulatorError naming what was tried.
  static HostCompiler find();
  /// All of $PASCALINE_HOST_CXX, in that order and each version once, else what `find` gives; throws EmulatorError for
  /// a named one that does not work.
  static std::vector<HostCompiler> find_all();
  /// The one at this path, or of this name on PATH; throws EmulatorError if it does not work.
  static HostCompiler open(const std::string& name);
};

/// Compiles a kernel file into a shared object against the shim of CUDA's device language. Kernel source errors
/// give a result that is not ok; throws EmulatorError if the compiler cannot be run, or the request holds what
/// core/space/code_words.hpp does not let become code or a compiler's option.
[[nodiscard]] CompileResult compile_for_emulator(const HostCompiler& compiler, const CompileRequest& request);

/// Hash of everything besides the request that decides what `compile_for_emulator` gives (the shim's headers).
[[nodiscard]] std::string emulator_shim_hash();

[[nodiscard]] DeviceInfo emulated_device_info();
[[nodiscard]] std::unique_ptr<Device> open_emulated_device();

}  // namespace pascaline
