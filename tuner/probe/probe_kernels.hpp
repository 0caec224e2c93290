#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/compile.hpp"
#include "runtime/device/cubin_cache.hpp"

namespace pascaline {

/// Compiles the kernels of `kernel_templates/probe/` for one target.
class ProbeKernels {
 public:
  /// `folder`: where they are; `cache`: for what was compiled. Throws NvrtcError or EmulatorError if no compiler
  /// supports the target.
  ProbeKernels(CompileTarget target, const std::string& nvrtc, std::filesystem::path folder,
               const std::filesystem::path& cache);

  /// `file` without its ending; throws Error with the compiler's first error if it does not compile.
  [[nodiscard]] Binary compile(const std::string& file, const std::string& function,
                               const std::vector<std::string>& defines = {});
  [[nodiscard]] const CompileTarget& target() const noexcept { return target_; }
  [[nodiscard]] const Toolchain& toolchain() const noexcept { return toolchain_; }

 private:
  CompileTarget target_;
  Toolchain toolchain_;
  std::filesystem::path folder_;
  CubinCache cache_;
  std::map<std::string, KernelSource> sources_;
};

}  // namespace pascaline
