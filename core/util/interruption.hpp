#pragma once

#include <atomic>

namespace pascaline {

/// Set once this process is to end, by the program's signal handler. A program that uses the library may set it, too:
/// what may take long and can be stopped at any time looks at it, such as compilers and searches for a configuration.
[[nodiscard]] inline std::atomic<bool>& interruption() noexcept {
  static std::atomic<bool> set{false};
  return set;
}

}  // namespace pascaline
