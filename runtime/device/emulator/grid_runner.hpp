#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/emulator/block_executor.hpp"

namespace pascaline {

/// Runs the blocks of a launch on the calling thread and on threads that are kept between launches, one for each
/// hardware thread in all.
class GridRunner {
 public:
  /// `shuffle`: blocks begin in an order that follows from it, and a block's warps run far ahead of each other, the
  /// lowest first if it is even, else the highest; none: blocks begin in ascending order, and warps go side by side.
  explicit GridRunner(unsigned workers, std::optional<std::uint64_t> shuffle = std::nullopt);
  GridRunner(const GridRunner&) = delete;
  GridRunner& operator=(const GridRunner&) = delete;
  ~GridRunner();

  /// Runs every block and returns the first failure. After one, blocks that have not begun are left out.
  [[nodiscard]] std::optional<std::string> run(const EmulatedLaunch& launch);

 private:
  void put_in_order();
  void start_threads();
  void serve();
  void work(BlockExecutor& executor);

  const unsigned workers_;
  const std::optional<std::uint64_t> shuffle_;
  BlockExecutor own_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable begin_;
  std::condition_variable done_;
  std::uint64_t generation_ = 0;
  unsigned busy_ = 0;
  bool stopping_ = false;
  std::optional<std::string> failure_;

  const EmulatedLaunch* launch_ = nullptr;
  std::uint64_t blocks_ = 0;
  std::vector<std::uint64_t> order_;  // of the blocks, where it is shuffled
  std::uint64_t chunk_ = 1;
  std::atomic<std::uint64_t> next_block_{0};
};

}  // namespace pascaline
