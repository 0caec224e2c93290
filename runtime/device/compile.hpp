#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/binary.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/signature.hpp"

namespace pascaline {

struct Space;

/// A kernel's source with every header that a compiler could read for it, without byte-order marks.
struct KernelSource {
  std::filesystem::path file;
  std::string text;
  /// Path relative to the kernel's folder and text of each file that an `#include` names in any branch, looked for
  /// beside the file that names it, in the kernel's folder and in `folders`; where it names one by macro, of each that
  /// any definition in the source and any value of a parameter would make it. Compilers see these and no other file of
  /// the kernel's. A name that ends in `/` is a folder from which a path goes up.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string hash;                    ///< of text, headers and folders, not of where they lie
  std::vector<std::string> folders{};  ///< in which headers are looked for after the kernel's, relative to that

  /// Reads `file` and, recursively, what it may include; throws Error for one that cannot be read. One that does not
  /// exist is left to the compiler, which may not ask for it. Throws SpaceError for a folder or a further source of the
  /// space that is not there.
  static KernelSource load(const std::filesystem::path& file, const Space& space);
  /// The same without the space's macros, for kernels that have none.
  static KernelSource load(const std::filesystem::path& file);

  /// Says if the word is somewhere in text and headers.
  [[nodiscard]] bool mentions(std::string_view word) const;
  /// Names in `#include`s that are none of `headers`: those of the system's headers are among them.
  [[nodiscard]] std::vector<std::string> other_headers() const;
  /// What to do about a header that is there and none of `headers`, to be read after a compiler's message; else empty.
  [[nodiscard]] std::string advice_for(const std::string& header) const;
};

/// How PTX becomes code for a newer GPU before the driver is asked to.
struct Translation {
  std::string architecture;  ///< "sm_90"; empty: it is left to the driver
  std::string library;       ///< path of an nvJitLink of the driver's CUDA version
  std::string version;       ///< that version, "13.0"
};

/// A function that a configuration launches.
struct LaunchedFunction {
  std::string function;  ///< as Launch::function, in which macros have their values
  std::optional<std::vector<LaunchedArgument>> arguments{};
  std::int64_t threads = 0;
};

/// Everything that decides what a compilation gives.
struct CompileRequest {
  const KernelSource* source = nullptr;
  std::string function;              ///< as Launch::function, in which macros have their values
  std::vector<std::string> defines;  ///< `NAME=value`
  std::vector<std::string> options;  ///< further compiler options, e.g. `--maxrregcount=64`
  BinaryKind kind = BinaryKind::cubin;
  std::string architecture;        ///< "sm_61": of the cubin, or of the code the PTX is made for; "host"
  bool address_sanitizer = false;  ///< emulator only
  /// Path of the compiler, for a pool of workers that may use several; empty: its first. A Toolchain takes no notice.
  std::string compiler{};
  Translation translation{};  ///< of PTX; where it fails, the binary has none and the driver says why
  /// Of the launches; a function that cannot take them does not compile. Nothing: any function does.
  std::optional<std::vector<LaunchedArgument>> arguments{};
  /// Of a launched block; a function whose launch bounds are less does not compile. 0: any function does.
  std::int64_t threads = 0;
  /// Where the emulated device's compiler keeps the headers that it has parsed; empty: nowhere.
  std::filesystem::path parsed_headers{};
  std::vector<LaunchedFunction> then{};  ///< of a pipeline: its further functions, which a CubinCache compiles, too
};

/// A request for each function of a pipeline alone, in their order; of any other the request itself.
[[nodiscard]] std::vector<CompileRequest> requests_of_functions(const CompileRequest& request);

/// A compiler for one target architecture: an NVRTC library or the system's C++ compiler.
class Toolchain {
 public:
  /// NVRTC for `architecture`: the newest library found that supports it. `nvrtc` (a path or a version such as
  /// "11.8"; empty: any) narrows the choice. For "emulator" (or "host") the C++ compiler ($PASCALINE_HOST_CXX, c++,
  /// g++, clang++). Throws NvrtcError or EmulatorError that names what was found and what to install.
  static Toolchain find(const std::string& architecture, const std::string& nvrtc = {});

  /// The one at this path, as `path()` tells it. Throws likewise.
  static Toolchain open(const std::string& architecture, const std::string& path);

  Toolchain(Toolchain&&) noexcept;
  Toolchain& operator=(Toolchain&&) noexcept;
  ~Toolchain();

  [[nodiscard]] const std::string& compiler() const noexcept;  ///< "nvrtc", "g++", "clang++"
  [[nodiscard]] const std::string& version() const noexcept;   ///< "12.9", "12.2.0"
  [[nodiscard]] const std::string& path() const noexcept;      ///< of the library or program

  /// Compiles `request.function`; a kernel that does not compile is an ordinary result. Throws NvrtcError or
  /// EmulatorError if the compiler itself is broken.
  [[nodiscard]] CompileResult compile(const CompileRequest& request) const;

  /// Key of the result in a cache: source with headers, defines, options, compiler and version, architecture, kind.
  [[nodiscard]] std::string cache_key(const CompileRequest& request) const;

 private:
  struct Impl;
  explicit Toolchain(std::unique_ptr<Impl> impl);
  [[nodiscard]] CompileResult compile_unchecked(const CompileRequest& request) const;
  std::unique_ptr<Impl> impl_;
};

/// An NVRTC library found on this machine.
struct NvrtcInfo {
  std::string path;
  std::string version;                     ///< "12.9"
  std::vector<std::string> architectures;  ///< "sm_61", …
};

/// NVRTC libraries found, newest first: $PASCALINE_NVRTC, `.toolkit/` of the build tree, an installation's own, the
/// dynamic loader's path, $CUDA_HOME and $CUDA_PATH, /usr/local/cuda*. Never those of the working directory.
[[nodiscard]] std::vector<NvrtcInfo> find_nvrtc();

/// What a device needs to run code for `target` ("" or its own: a native cubin; an older sm_XX: that
/// architecture's PTX, which the driver translates). Throws Error if the device is older than the target.
struct CompileTarget {
  std::string architecture;  ///< to compile for
  BinaryKind kind = BinaryKind::cubin;
  DeviceLimits limits;        ///< the device's, no looser than the target's
  Translation translation{};  ///< where the driver would translate, and a library that does it alike was found
};
[[nodiscard]] CompileTarget compile_target(const DeviceInfo& device, const std::string& target);

}  // namespace pascaline
