#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/compile.hpp"
#include "runtime/device/dynamic_library.hpp"

namespace pascaline {

/// What one NVRTC compilation gave: native code and PTX of the same source.
struct NvrtcOutput {
  bool ok = false;
  std::string cubin;
  std::string ptx;
  std::string log;
  std::string lowered;  ///< the function's name in cubin and PTX, if one was asked for
};

/// One NVRTC library, loaded at run time. Several versions may be loaded at once; compiling is thread-safe.
class Nvrtc {
 public:
  /// Loads the library from a file or a name for the loader; throws NvrtcError if it is broken or older than 11.2.
  explicit Nvrtc(const std::string& path);

  [[nodiscard]] const NvrtcInfo& info() const noexcept { return info_; }
  /// Folders with CUDA's own headers (cuda_fp16.h) of this library's version; none if there are none here.
  [[nodiscard]] const std::vector<std::filesystem::path>& include_folders() const noexcept { return include_folders_; }

  /// Compiles for a real architecture ("sm_61"). `file` names the source; quoted includes are looked for in its folder.
  /// `function`, if it is not empty, is an expression such as "app::kernel<TILE>" with macros of the text, whose
  /// function is compiled and looked up. An output that is not ok has the reason in its log; throws NvrtcError if the
  /// library itself fails.
  [[nodiscard]] NvrtcOutput compile(const std::string& text, const std::filesystem::path& file,
                                    const std::vector<std::string>& options, const std::string& function = {}) const;

 private:
  struct Functions;
  using Program = void*;

  void load_builtins();
  void read_architectures();
  void check(const char* symbol, int result) const;
  [[nodiscard]] std::string text_of(Program program, const char* size_symbol, const char* text_symbol) const;
  [[nodiscard]] NvrtcOutput compile_once(const std::string& text, const std::filesystem::path& file,
                                         const std::vector<std::string>& options, const std::string& function,
                                         int& result) const;

  // The builtins are kept loaded as long as the library, which looks them up by name at each compilation.
  std::vector<DynamicLibrary> builtins_;
  DynamicLibrary library_;
  NvrtcInfo info_;
  std::vector<std::filesystem::path> include_folders_;
  mutable std::atomic<bool> no_cache_{false};
};

/// Whether `wish`, of the user, is a version such as 11.8; else it is a library's path or a folder's. A file or folder
/// of the working directory that is named like a version is no library.
[[nodiscard]] bool is_nvrtc_version(const std::string& wish);

/// Folders with the headers of CUDA `version` ("12.9"): beside the library, of the toolkits that the user names, of
/// those installed. Folders of other versions do not count, as their headers need another NVRTC.
[[nodiscard]] std::vector<std::filesystem::path> find_cuda_headers(const std::filesystem::path& library,
                                                                   const std::string& version);

/// What a user wants: `nvrtc` if it is not empty, else $PASCALINE_NVRTC; empty: any will do.
[[nodiscard]] std::string nvrtc_wish(const std::string& nvrtc);

/// The libraries that a wish leaves, newest first: a choice that was made is never replaced silently by another one.
[[nodiscard]] std::vector<NvrtcInfo> wanted_nvrtc(const std::string& wish);

/// Whether the library is of that version, or of one that it begins ("12" of 12.9).
[[nodiscard]] bool has_version(const NvrtcInfo& info, const std::string& version);

[[nodiscard]] bool compiles_for(const NvrtcInfo& info, const std::string& architecture);

/// Less than 0, 0 or more as version `a` is older than `b`, the same or newer; by major and minor number.
[[nodiscard]] int compare_versions(const std::string& a, const std::string& b);

/// Throws NvrtcError that names what was found and what to install.
[[noreturn]] void throw_no_nvrtc(const std::string& architecture, const std::string& wish,
                                 const std::vector<NvrtcInfo>& found);

/// Files that may be NVRTC libraries, in the order of preference, each once: those `wish` (a file or folder) holds,
/// or, if it is empty, those of all places that `find_nvrtc` looks at.
[[nodiscard]] std::vector<std::string> nvrtc_candidates(const std::filesystem::path& wish);

/// Files that may be nvJitLink libraries, in all places that `find_nvrtc` looks at and in the folders of NVIDIA's
/// wheels beside them.
[[nodiscard]] std::vector<std::string> jit_link_candidates();

/// The candidates that load, newest first.
[[nodiscard]] std::vector<NvrtcInfo> probe_nvrtc(const std::vector<std::string>& candidates);

}  // namespace pascaline
