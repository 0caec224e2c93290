#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/binary.hpp"
#include "runtime/device/compile.hpp"

namespace pascaline {

/// A compiler found on this machine: an NVRTC library or a C++ compiler for the emulated device.
struct CompilerInfo {
  std::string compiler;  ///< "nvrtc", "g++", "clang++"
  std::string version;   ///< "12.9"
  std::string path;      ///< for Toolchain::open
  /// Without spaces, "nvrtc-12.9": its value among the parameters of a search.
  [[nodiscard]] std::string name() const { return compiler + "-" + version; }
  /// "nvrtc 12.9": for people.
  [[nodiscard]] std::string text() const { return compiler + " " + version; }
  friend bool operator==(const CompilerInfo&, const CompilerInfo&) = default;
};

/// Compilers for one target, and which of those that were asked for are not among them.
struct CompilerChoice {
  std::vector<CompilerInfo> found;    ///< at least one, newest first (C++ compilers as named), no version twice
  std::vector<std::string> left_out;  ///< a line each, with the reason
};

/// What is done about a compiler that was named and is not there.
enum class MissingCompiler : std::uint8_t {
  fault,     ///< it is the user's present wish: NvrtcError
  left_out,  ///< it was there once: the others do, if there are any
};

/// "12.9" of a driver's "575.57 (CUDA 12.9)" and of "12.9".
[[nodiscard]] std::string cuda_of_driver(const std::string& driver_version);

/// Whether `--nvrtc` asks for a choice of compilers: "all", or versions separated by commas.
[[nodiscard]] bool asks_for_compilers(std::string_view wish);

/// Whether it may be stored and asked for again: "all", a version, or versions separated by commas.
[[nodiscard]] bool is_compiler_wish(std::string_view wish);

/// Compilers for `target` whose code a driver of this version can load (empty: any; "575.57 (CUDA 12.9)" or "12.9").
/// PTX may be no newer than the driver's CUDA, machine code of no newer major version (NVIDIA, "CUDA Compatibility").
///
/// `wish` is "all"; versions separated by commas; or as for `Toolchain::find`, which gives one: where any will do, the
/// newest that the driver takes. On the emulated device "all" are the C++ compilers that HostCompiler::find_all
/// finds, and anything else its usual one. Throws NvrtcError or EmulatorError that names what was found and what to
/// install.
[[nodiscard]] CompilerChoice find_compilers(const CompileTarget& target, const std::string& driver_version,
                                            const std::string& wish, MissingCompiler missing = MissingCompiler::fault);

/// What builds code where nobody said what is to: all compilers for the target, the one that `find_compilers` gives
/// without a wish first. Where there is a wish (`nvrtc` or $PASCALINE_NVRTC), what it leaves. Throws likewise.
[[nodiscard]] std::vector<CompilerInfo> compilers_at_hand(const CompileTarget& target,
                                                          const std::string& driver_version, const std::string& nvrtc);

/// Why a driver of that version cannot load what NVRTC of this version makes; empty if it can.
[[nodiscard]] std::string why_driver_refuses(const std::string& nvrtc_version, BinaryKind kind,
                                             const std::string& driver_version);

/// How to get a compiler that is not here: a command, or what to install.
[[nodiscard]] std::string how_to_get(std::string_view compiler, std::string_view version);

}  // namespace pascaline
