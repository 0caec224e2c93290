#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"
#include "tests/runtime/device/cuda/nvrtc_here.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace pascaline::testing {

/// A folder of the test's own that is gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pascaline_test.XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Writes a file, with its folders, and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    write_file_atomically(file, text);
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// A kernel source without a file.
inline KernelSource source_of(const std::string& text) {
  KernelSource source;
  source.file = "test.cu";
  source.text = text;
  source.hash = text;
  return source;
}

/// A request for `function` of `source`.
inline CompileRequest request_for(const KernelSource& source, const std::string& function,
                                  const std::string& architecture = "sm_61", std::vector<std::string> options = {}) {
  CompileRequest request;
  request.source = &source;
  request.function = function;
  request.architecture = architecture;
  request.options = std::move(options);
  return request;
}

/// Every compiler here that takes kernels: the NVRTCs for sm_61 and the emulated device's.
inline std::vector<Toolchain> every_toolchain() {
  std::vector<Toolchain> toolchains;
  for (const NvrtcInfo& info : nvrtc_for("sm_61")) {
    toolchains.push_back(Toolchain::find("sm_61", info.path));
  }
  toolchains.push_back(Toolchain::find("host"));
  return toolchains;
}

/// What one of them makes of `function`.
inline CompileResult compiled(const Toolchain& toolchain, const KernelSource& source, const std::string& function,
                              std::vector<std::string> defines = {}, std::int64_t threads = 0) {
  const bool native = toolchain.compiler() == "nvrtc";
  CompileRequest request = request_for(source, function, native ? "sm_61" : "host");
  request.kind = native ? BinaryKind::cubin : BinaryKind::host_object;
  request.defines = std::move(defines);
  request.threads = threads;
  return toolchain.compile(request);
}

}  // namespace pascaline::testing
