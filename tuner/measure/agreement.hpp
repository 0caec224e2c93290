#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/space/space.hpp"
#include "core/trial.hpp"

namespace pascaline {

/// Wrong results of a problem that are told apart.
inline constexpr std::size_t kMaxWrongResults = 4;

/// Counts which configurations of a problem agree with the reference and which only with each other.
class Agreement {
 public:
  /// `trial`: a number of its own. `agrees_with`: the first configuration with the same wrong result, or empty.
  void add(std::int64_t trial, TrialStatus status, const std::string& agrees_with);
  /// A configuration that runs the same code as that of `trial` counts as that one did.
  void add_same(std::int64_t trial);
  /// A sentence where most configurations agree with each other and not with the reference; else empty.
  [[nodiscard]] std::string doubt(const Reference& reference) const;

 private:
  struct Result {
    TrialStatus status = TrialStatus::ok;
    std::string agrees_with;
  };

  void count(const Result& result);

  int all_ = 0;
  std::map<std::int64_t, Result> results_;  ///< by trial
  std::map<std::string, int> apart_;        ///< by the first configuration with a result
};

}  // namespace pascaline
