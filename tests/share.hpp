#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace pascaline::testing {

/// $PASCALINE_TEST_SHARE where that is a number above one: tests that do much the same many times take such a part of
/// it, as `scripts/test.sh --lean` wants. Otherwise 1: all of it.
inline std::size_t test_share() {
  const char* text = std::getenv("PASCALINE_TEST_SHARE");
  const int number = text != nullptr ? std::atoi(text) : 1;
  return number > 1 ? static_cast<std::size_t>(number) : 1;
}

/// The share of `whole`, rounded up; where it is not all, the test's output says so.
inline std::size_t shared_part(std::size_t whole, const char* what) {
  const std::size_t part = (whole + test_share() - 1) / test_share();
  if (part < whole) {
    std::printf("a share of the test: %zu of %zu %s (PASCALINE_TEST_SHARE)\n", part, whole, what);
  }
  return part;
}

}  // namespace pascaline::testing
