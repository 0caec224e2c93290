#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/space/space.hpp"
#include "report/limits.hpp"
#include "runtime/device/cubin_cache.hpp"

namespace pascaline::cli {

/// Finds the code of configurations in the cache or compiles it, and estimates from it what limits them. What is
/// missing for that (a compiler, the source that was measured) becomes the estimate's `missing`; nothing is thrown.
class CodeLimits {
 public:
  /// `spaces`: empty for the installed ones. Without `compiles` only code in the cache is used.
  CodeLimits(std::filesystem::path spaces, std::filesystem::path cache, bool compiles);

  [[nodiscard]] ReportLimit limit_of(const LimitRequest& request);

 private:
  struct Kernel {
    Space space;
    KernelSource source;
  };
  /// Code for a target, or why there is none.
  using Compiler = std::variant<Toolchain, std::string>;

  [[nodiscard]] const Kernel& kernel_of(const std::string& name);
  [[nodiscard]] const Compiler& compiler_of(const std::string& architecture, const std::string& version);
  [[nodiscard]] std::optional<CompileResult> compiled(const Toolchain& toolchain, const CompileRequest& request);
  [[nodiscard]] std::string estimate(const LimitRequest& request, ReportLimit& limit);

  std::filesystem::path spaces_;
  std::filesystem::path cache_folder_;
  std::optional<CubinCache> cache_;  // made when it is first needed
  bool compiles_;
  std::map<std::string, Kernel> kernels_;
  std::map<std::pair<std::string, std::string>, Compiler> compilers_;
};

}  // namespace pascaline::cli
