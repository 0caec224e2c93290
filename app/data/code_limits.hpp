#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/space/space.hpp"
#include "report/limits.hpp"
#include "runtime/bundle/bundle.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/device/sm61/kernel_code.hpp"

namespace pascaline {

/// Where code comes from.
struct CodeLimitOptions {
  std::filesystem::path kernels;  ///< folder of kernel templates
  std::filesystem::path spaces;   ///< folder of search spaces
  std::filesystem::path cache;    ///< folder of compiled kernels
  std::filesystem::path bundle;   ///< whose code comes first; empty: none
  bool compiles = false;          ///< what is in neither; else it is left out
};

/// From these folders; for those that are empty the installed ones and the user's cache.
[[nodiscard]] CodeLimitOptions limit_options(const std::filesystem::path& kernels, const std::filesystem::path& spaces,
                                             const std::filesystem::path& cache);

/// Finds the code of configurations in a bundle or the cache, or compiles it, and estimates from it what limits them.
/// What is missing for that (a compiler, the source that was measured) becomes the estimate's `missing`; only a bundle
/// that cannot be read is thrown, as Error.
class CodeLimits {
 public:
  explicit CodeLimits(CodeLimitOptions options);

  [[nodiscard]] ReportLimit limit_of(const LimitRequest& request);

 private:
  struct Kernel {
    Space space;
    KernelSource source;
  };
  /// For a target, or why there is none.
  using Compiler = std::variant<Toolchain, std::string>;
  struct Code {
    sm61::KernelCode kernel;
    std::string compiler;  ///< "nvrtc 12.9"
  };

  [[nodiscard]] const Kernel& kernel_of(const std::string& name);
  [[nodiscard]] const Compiler& compiler_of(const std::string& architecture, const std::string& version);
  [[nodiscard]] std::optional<CompileResult> compiled(const Toolchain& toolchain, const CompileRequest& request);
  [[nodiscard]] std::optional<Code> bundled(const LimitRequest& request, const CompileRequest& compile) const;
  [[nodiscard]] std::variant<Code, std::string> code_of(const LimitRequest& request, const CompileRequest& compile);
  [[nodiscard]] std::string estimate(const LimitRequest& request, ReportLimit& limit);

  CodeLimitOptions options_;
  std::optional<Bundle> bundle_;
  std::optional<CubinCache> cache_;  // made when it is first needed
  std::map<std::string, Kernel> kernels_;
  std::map<std::pair<std::string, std::string>, Compiler> compilers_;
};

}  // namespace pascaline
