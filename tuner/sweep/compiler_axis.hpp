#pragma once

#include <cstddef>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/device/compilers.hpp"

namespace pascaline {

/// The parameter of a search whose values are compilers, where there are several to choose among.
inline constexpr const char* kCompilerParameter = "COMPILER";

/// The compilers of a sweep as one more dimension of its search: a configuration of the search is one of the kernel's
/// and, in the parameter COMPILER, the compiler that builds it. With one compiler nothing is added. What is stored is
/// the kernel's own configuration, under the compiler's toolkit.
class CompilerAxis {
 public:
  /// `compilers`: at least one; the first is what an untuned program uses.
  explicit CompilerAxis(std::vector<CompilerInfo> compilers) : compilers_(std::move(compilers)) {}

  [[nodiscard]] const std::vector<CompilerInfo>& compilers() const noexcept { return compilers_; }
  [[nodiscard]] std::size_t count() const noexcept { return compilers_.size(); }
  [[nodiscard]] bool several() const noexcept { return compilers_.size() > 1; }

  /// The space to search: with the further parameter, behind the others, if there are several compilers. Throws
  /// SpaceError if the space has a name COMPILER of its own.
  [[nodiscard]] Space searched(const Space& space) const;
  /// The kernel's own configuration, built by the compiler of that index.
  [[nodiscard]] Config with(const Config& config, std::size_t compiler) const;
  /// The kernel's own configuration.
  [[nodiscard]] Config without(const Config& config) const;
  /// Index of the compiler; throws Error if it names none of them.
  [[nodiscard]] std::size_t index_of(const Config& config) const;

 private:
  std::vector<CompilerInfo> compilers_;
};

}  // namespace pascaline
