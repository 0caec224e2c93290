#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"
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

/// Every NVRTC of this machine that compiles for the architecture.
inline std::vector<NvrtcInfo> nvrtc_for(const std::string& architecture) {
  std::vector<NvrtcInfo> found;
  for (const NvrtcInfo& info : find_nvrtc()) {
    for (const std::string& supported : info.architectures) {
      if (supported == architecture) {
        found.push_back(info);
      }
    }
  }
  return found;
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

}  // namespace pascaline::testing

/// Skips the test if `list` is empty.
#define PASCALINE_NEED_NVRTC(list) \
  if ((list).empty()) GTEST_SKIP() << "no NVRTC that compiles for it; run ./scripts/setup.sh"
