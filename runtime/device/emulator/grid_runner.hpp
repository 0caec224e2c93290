#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/device/emulator/block_executor.hpp"

namespace pascaline {

/// Runs the blocks of a launch on the calling thread and on a pool's threads, which start with the first launch that
/// has use for them.
class GridRunner {
 public:
  /// `shuffle`: blocks begin in an order that follows from it, and a block's warps run far ahead of each other, the
  /// lowest first if it is even, else the highest; none: blocks begin in ascending order, and warps go side by side.
  explicit GridRunner(unsigned workers, std::optional<std::uint64_t> shuffle = std::nullopt);
  /// Runs every block and returns the first failure. After one, blocks that have not begun are left out.
  [[nodiscard]] std::optional<std::string> run(const EmulatedLaunch& launch);

 private:
  void put_in_order();
  [[nodiscard]] BlockExecutor& executor_of_this_thread();
  void work();

  const unsigned workers_;
  const std::optional<std::uint64_t> shuffle_;
  std::map<std::thread::id, BlockExecutor> executors_;  // their stacks stay with their threads
  std::optional<WorkerPool> pool_;
  std::mutex mutex_;  // of the executors and the failure
  std::optional<std::string> failure_;

  const EmulatedLaunch* launch_ = nullptr;
  std::uint64_t launches_ = 0;
  std::uint64_t blocks_ = 0;
  std::vector<std::uint64_t> order_;  // of the blocks, where it is shuffled
  std::uint64_t chunk_ = 1;
  std::atomic<std::uint64_t> next_block_{0};
};

}  // namespace pascaline
