#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/compile/compile_variants.hpp"

namespace pascaline {

/// Says whether configurations that run on the emulated device could also run on an architecture: a worker process
/// compiles them for it, in their order, while the caller does something else.
class TargetVerdicts {
 public:
  /// Finds the compiler. `source` must outlive it.
  TargetVerdicts(std::string architecture, const KernelSource& source, const std::filesystem::path& cache);

  /// Begins with the configurations of a problem and the code of its reference. `bound` must outlive `refusal` of each
  /// of them, which comes before the next problem.
  void begin(const BoundSpace& bound, const std::vector<Config>& configs);

  /// Whether the configuration of that index is known by now to be refused. Never waits or throws.
  [[nodiscard]] bool refuses(std::size_t index) noexcept;
  /// The refused variant, waiting until it is known whether it is one; nothing if it is not, after `stop`, and where
  /// nothing is compiled.
  [[nodiscard]] std::optional<CompiledVariant> refusal(std::size_t index, const std::atomic<bool>& stop);

  /// Why not everything was compiled; empty if it was.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }

 private:
  void submit(const BoundSpace& bound);
  void look(std::chrono::milliseconds timeout) noexcept;
  [[nodiscard]] const CompiledVariant* refused(std::size_t index) const;
  void settle(Compiled compiled);

  static constexpr std::uint64_t kReference = 0;  // id of its compilation; those of the configurations follow

  std::string architecture_;
  const KernelSource& source_;
  CompilerInfo compiler_;
  std::optional<CompilePool> pool_;  ///< nothing where there is no compiler, or it failed
  std::string why_not_;
  const BoundSpace* bound_ = nullptr;
  std::vector<Config> configs_;
  std::map<std::uint64_t, CompiledVariant> variants_;  ///< by id
};

}  // namespace pascaline
