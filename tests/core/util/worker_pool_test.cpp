#include "core/util/worker_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"

namespace pascaline {
namespace {

// How often each of `count` elements was visited, by slices of `grain`.
std::vector<int> visits(WorkerPool& pool, std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
  pool.run(count, grain, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_LT(begin, end);
    EXPECT_LE(end, count);
    for (std::int64_t i = begin; i < end; ++i) {
      ++seen[static_cast<std::size_t>(i)];
    }
  });
  return {seen.begin(), seen.end()};
}

TEST(WorkerPoolTest, VisitsEveryElementOnce) {
  for (const int threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t count : {0, 1, 2, 63, 64, 1000}) {
      for (const std::int64_t grain : {0, 1, 7, 64, 5000}) {
        EXPECT_EQ(visits(pool, count, grain), std::vector<int>(static_cast<std::size_t>(count), 1))
            << threads << " threads, " << count << " by " << grain;
      }
    }
  }
}

TEST(WorkerPoolTest, AGrainBeyondEverythingIsOneCall) {
  WorkerPool pool(3);
  std::atomic<int> calls{0};
  pool.run(10, std::numeric_limits<std::int64_t>::max(), [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(WorkerPoolTest, ManySmallJobsFollowEachOther) {
  WorkerPool pool(4);
  std::int64_t expected = 0;
  std::atomic<std::int64_t> sum{0};
  for (std::int64_t job = 0; job < 5000; ++job) {
    pool.run(8, 1, [&](std::int64_t begin, std::int64_t) { sum += begin + job; });
    expected += 28 + 8 * job;
  }
  EXPECT_EQ(sum, expected);
}

// Both slices wait for each other: a second thread must have come, from its sleep too.
TEST(WorkerPoolTest, SlicesRunAtTheSameTime) {
  WorkerPool pool(2);
  for (const int rest_ms : {0, 50}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
    std::atomic<int> present{0};
    std::atomic<bool> met{true};
    pool.run(2, 1, [&](std::int64_t, std::int64_t) {
      ++present;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (present < 2 && met) {
        met = std::chrono::steady_clock::now() < deadline;
        std::this_thread::yield();
      }
    });
    EXPECT_TRUE(met) << "after a rest of " << rest_ms << " ms";
  }
}

TEST(WorkerPoolTest, TheFirstExceptionIsThrownAndThePoolGoesOn) {
  WorkerPool pool(3);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> calls{0};
    EXPECT_THROW(pool.run(1000, 1,
                          [&](std::int64_t begin, std::int64_t) {
                            ++calls;
                            if (begin == 3) {
                              throw std::out_of_range("three");
                            }
                          }),
                 std::out_of_range);
    EXPECT_GE(calls, 1);
    EXPECT_EQ(visits(pool, 100, 3), std::vector<int>(100, 1));
  }
  WorkerPool alone(1);
  EXPECT_THROW(alone.run(5, 1, [](std::int64_t, std::int64_t) { throw std::out_of_range("alone"); }),
               std::out_of_range);
}

TEST(WorkerPoolTest, ACallWithinACallIsDoneByItsThread) {
  WorkerPool pool(3);
  std::atomic<int> inner{0};
  pool.run(6, 1, [&](std::int64_t, std::int64_t) {
    const auto self = std::this_thread::get_id();
    pool.run(10, 1, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(inner, 60);
}

TEST(WorkerPoolTest, SeveralThreadsMayCallIt) {
  WorkerPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> sum{0};
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int job = 0; job < 500; ++job) {
        pool.run(16, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
      }
    });
  }
  for (int threads = 1; threads < 5; ++threads) {
    pool.resize(threads);
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(sum, 4 * 500 * 16);
}

TEST(WorkerPoolTest, ThreadsAreCountedFromOneToTheMost) {
  for (const int threads : {0, -1, WorkerPool::kMaxThreads + 1}) {
    EXPECT_THROW(WorkerPool pool(threads), Error);
    WorkerPool pool(2);
    EXPECT_THROW(pool.resize(threads), Error);
    EXPECT_EQ(visits(pool, 10, 1), std::vector<int>(10, 1)) << "it still works";
  }
  EXPECT_GE(worker_pool().threads(), 1);
}

}  // namespace
}  // namespace pascaline
