#include "runtime/device/emulator/grid_runner.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <random>

namespace pascaline {

GridRunner::GridRunner(unsigned workers, std::optional<std::uint64_t> shuffle)
    : workers_(std::max(1u, workers)), shuffle_(shuffle) {}

GridRunner::~GridRunner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begin_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

std::optional<std::string> GridRunner::run(const EmulatedLaunch& launch) {
  launch_ = &launch;
  const auto [x, y, z] = launch.geometry.grid;
  blocks_ = static_cast<std::uint64_t>(x) * y * z;
  chunk_ = std::clamp<std::uint64_t>(blocks_ / (std::uint64_t{workers_} * 16), 1, 64);
  next_block_ = 0;
  failure_.reset();
  put_in_order();
  // Static shared arrays of code under AddressSanitizer exist once, not once a worker.
  if (workers_ == 1 || blocks_ == 1 || launch.entry->address_sanitizer) {
    work(own_);
    return failure_;
  }
  start_threads();
  {
    const std::lock_guard lock(mutex_);
    ++generation_;
    busy_ = static_cast<unsigned>(threads_.size());
  }
  begin_.notify_all();
  work(own_);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  return failure_;
}

void GridRunner::put_in_order() {
  if (shuffle_) {
    order_.resize(blocks_);
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(*shuffle_));
  }
}

void GridRunner::start_threads() {
  while (threads_.size() + 1 < workers_) {
    threads_.emplace_back([this] { serve(); });
  }
}

void GridRunner::serve() {
  BlockExecutor executor;
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begin_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_) {
      return;
    }
    seen = generation_;
    lock.unlock();
    work(executor);
    lock.lock();
    if (--busy_ == 0) {
      done_.notify_one();
    }
  }
}

void GridRunner::work(BlockExecutor& executor) {
  std::optional<std::string> failure;
  executor.prepare(*launch_, !shuffle_            ? WarpOrder::side_by_side
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
