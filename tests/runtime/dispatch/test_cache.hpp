#pragma once

#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::testing {

inline DispatcherOptions with_test_cache() {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  return options;
}

}  // namespace pascaline::testing
