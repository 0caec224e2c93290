#include "core/util/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <vector>

namespace pascaline {
namespace {

TEST(ParallelForTest, CoversEveryIndexOnce) {
  for (const std::size_t count : {0U, 1U, 2U, 63U, 64U, 1000U}) {
    for (const std::size_t grain : {0U, 1U, 7U, 64U, 5000U}) {
      std::vector<std::atomic<int>> seen(count);
      parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
        ASSERT_LT(begin, end);
        ASSERT_LE(end, count);
        for (std::size_t i = begin; i < end; ++i) {
          ++seen[i];
        }
      });
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(seen[i], 1) << count << " by " << grain << " at " << i;
      }
    }
  }
}

TEST(ParallelForTest, SlicesAreNoShorterThanTheGrain) {
  std::atomic<int> shorter{0};
  parallel_for(1003, 10, [&](std::size_t begin, std::size_t end) { shorter += end - begin < 10 ? 1 : 0; });
  EXPECT_LE(shorter, 1);
}

TEST(ParallelForTest, AGrainBeyondEverythingIsOneSlice) {
  std::atomic<int> calls{0};
  parallel_for(10, std::numeric_limits<std::size_t>::max(), [&](std::size_t begin, std::size_t end) {
    ++calls;
    EXPECT_EQ(end - begin, 10U);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelForTest, RethrowsAndStopsEarly) {
  std::atomic<int> calls{0};
  const auto body = [&](std::size_t begin, std::size_t /*end*/) {
    ++calls;
    if (begin == 3) {
      throw std::runtime_error("slice 3");
    }
  };
  try {
    parallel_for(1'000'000, 1, body);
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "slice 3");
  }
  EXPECT_LT(calls, 1'000'000);
}

TEST(ParallelForTest, EveryoneThrowingGivesOneException) {
  EXPECT_THROW(parallel_for(100, 1, [](std::size_t, std::size_t) { throw std::logic_error("all"); }), std::logic_error);
}

}  // namespace
}  // namespace pascaline
