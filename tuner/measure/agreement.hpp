#pragma once

#include <cstddef>
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
  /// `agrees_with`: the first configuration with the same wrong result, or empty.
  void add(TrialStatus status, const std::string& agrees_with);
  /// A sentence where most configurations agree with each other and not with the reference; else empty.
  [[nodiscard]] std::string doubt(const Reference& reference) const;

 private:
  int all_ = 0;
  std::map<std::string, int> apart_;  ///< by the first configuration with a result
};

}  // namespace pascaline
