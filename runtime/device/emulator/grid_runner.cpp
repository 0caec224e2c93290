#include "runtime/device/emulator/grid_runner.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace pascaline {

GridRunner::GridRunner(unsigned workers, std::optional<std::uint64_t> shuffle)
    : workers_(std::clamp(workers, 1u, unsigned{WorkerPool::kMaxThreads})), shuffle_(shuffle) {}

std::optional<std::string> GridRunner::run(const EmulatedLaunch& launch) {
  launch_ = &launch;
  ++launches_;
  const auto [x, y, z] = launch.geometry.grid;
  blocks_ = static_cast<std::uint64_t>(x) * y * z;
  chunk_ = std::clamp<std::uint64_t>(blocks_ / (std::uint64_t{workers_} * 16), 1, 64);
  next_block_ = 0;
  failure_.reset();
  put_in_order();
  // Static shared arrays of code under AddressSanitizer exist once, not once a worker.
  if (workers_ == 1 || blocks_ == 1 || launch.entry->address_sanitizer) {
    work();
    return failure_;
  }
  if (!pool_) {
    pool_.emplace(static_cast<int>(workers_));
  }
  pool_->run(workers_, 1, [this](std::int64_t, std::int64_t) { work(); });
  return failure_;
}

void GridRunner::put_in_order() {
  if (shuffle_) {
    order_.resize(blocks_);
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(*shuffle_));
  }
}

BlockExecutor& GridRunner::executor_of_this_thread() {
  const std::lock_guard lock(mutex_);
  return executors_[std::this_thread::get_id()];
}

void GridRunner::work() {
  std::optional<std::string> failure;
  BlockExecutor& executor = executor_of_this_thread();
  executor.prepare(*launch_, launches_,
                   !shuffle_            ? WarpOrder::side_by_side
                   : *shuffle_ % 2 == 0 ? WarpOrder::lowest_ahead
                                        : WarpOrder::highest_ahead);
  while (!failure) {
    const std::uint64_t first = next_block_.fetch_add(chunk_);
    if (first >= blocks_) {
      return;
    }
    const std::uint64_t end = std::min(first + chunk_, blocks_);
    for (std::uint64_t block = first; block < end && !failure; ++block) {
      failure = executor.run(shuffle_ ? order_[block] : block);
    }
  }
  next_block_ = blocks_;
  const std::lock_guard lock(mutex_);
  if (!failure_) {
    failure_ = std::move(failure);
  }
}

}  // namespace pascaline
