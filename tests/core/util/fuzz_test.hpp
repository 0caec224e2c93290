#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/core/util/mutator.hpp"

namespace pascaline::testing {

/// Gives a reader inputs until time is over, and counts which it takes.
class FuzzTest : public ::testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  struct Fewest {
    int refused = 50;
    int accepted = 0;
  };

  /// Calls `attempt`, which counts, for this part of the time and until there are so many of each.
  template <typename Attempt>
  void repeat(int parts, const Fewest& fewest, const Attempt& attempt) {
    const auto end = Clock::now() + fuzz_time(parts);
    while (Clock::now() < end || refused_ < fewest.refused || accepted_ < fewest.accepted) {
      ASSERT_NO_FATAL_FAILURE(attempt());
    }
    std::printf("%d accepted, %d refused\n", accepted_, refused_);
  }

  int accepted_ = 0;
  int refused_ = 0;
};

}  // namespace pascaline::testing
