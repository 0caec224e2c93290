#include "runtime/device/emulator/block_executor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/error.hpp"

namespace pascaline {
namespace {

// AddressSanitizer's red zones on both sides of the dynamic shared memory.
constexpr std::size_t kFenceBytes = 1024;
const std::size_t kSharedBytes = static_cast<std::size_t>(DeviceLimits().max_shared_bytes_per_block);

char* allocate_shared() {
  void* memory = std::aligned_alloc(kFenceBytes, kSharedBytes + 2 * kFenceBytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return static_cast<char*>(memory);
}

using SpoiltWords = std::array<std::uint32_t, 4>;

// Words of unwritten shared memory: NaN, and very large and very small float32, since NaN is lost in minima and maxima;
// as int32 beyond any array on either side. They differ between launches, so that a kernel which reads them does not
// agree with itself, and begin elsewhere in each block, so that no variable holds the same in all of them.
SpoiltWords spoilt_words(std::uint64_t launch, std::uint64_t block) {
  constexpr std::uint64_t kMantissa = 0x7FFFFF;
  const std::uint64_t mixed = launch * 0x9E3779B97F4A7C15;
  SpoiltWords words{0x7FFFFFFF, static_cast<std::uint32_t>(0x7F000000 | (mixed >> 41)), 0xFFC1FFC1,
                    static_cast<std::uint32_t>(0xFF000000 | (mixed >> 18 & kMantissa))};
  std::rotate(words.begin(), words.begin() + static_cast<std::ptrdiff_t>((launch + block) % words.size()), words.end());
  return words;
}

void spoil(char* begin, std::size_t bytes, const SpoiltWords& words) {
  for (std::size_t at = 0; at < bytes; at += sizeof words) {
    std::memcpy(begin + at, words.data(), std::min(sizeof words, bytes - at));
  }
}

}  // namespace

void BlockExecutor::Queue::push(Thread& thread) noexcept {
  thread.next = nullptr;
  (last == nullptr ? first : last->next) = &thread;
  last = &thread;
}

void BlockExecutor::Queue::push_first(Thread& thread) noexcept {
  thread.next = first;
  first = &thread;
  last = last == nullptr ? first : last;
}

void BlockExecutor::Queue::splice(Queue& other) noexcept {
  if (other.first != nullptr) {
    (last == nullptr ? first : last->next) = other.first;
    last = other.last;
    other = {};
  }
}

BlockExecutor::Thread* BlockExecutor::Queue::pop() noexcept {
  Thread* thread = first;
  if (thread != nullptr) {
    first = thread->next;
    last = first == nullptr ? nullptr : last;
  }
  return thread;
}

BlockExecutor::BlockExecutor() : switch_(this), dynamic_shared_(allocate_shared(), &std::free) {
  block_.services = &services();
  block_.dynamic_shared = dynamic_shared_.get() + kFenceBytes;
  block_.owner = this;
  add_fiber();
}

BlockExecutor& BlockExecutor::of(const pascaline_host::ThreadView& thread) noexcept {
  return *static_cast<Block*>(thread.block)->owner;
}

void BlockExecutor::prepare(const EmulatedLaunch& launch, std::uint64_t number, WarpOrder order) {
  launch_ = &launch;
  launch_number_ = number;
  order_ = order;
  current_ = launch.entry->current();
  const auto [x, y, z] = launch.geometry.block;
  const auto [grid_x, grid_y, grid_z] = launch.geometry.grid;
  block_.grid_dim = {grid_x, grid_y, grid_z};
  block_.block_dim = {x, y, z};
  threads_.assign(launch.geometry.threads(), {});
  warps_.resize((threads_.size() + kWarpLanes - 1) / kWarpLanes);
  for (unsigned i = 0; i < threads_.size(); ++i) {
    threads_[i].index = {i % x, i / x % y, i / (x * y)};
    threads_[i].lane = i % kWarpLanes;
    threads_[i].block = &block_;
  }
  if (sanitizer_hooks().present()) {
    const SanitizerHooks& hooks = sanitizer_hooks();
    hooks.unpoison(dynamic_shared_.get(), kSharedBytes + 2 * kFenceBytes);
    hooks.poison(dynamic_shared_.get(), kFenceBytes);
    hooks.poison(block_.dynamic_shared + launch.geometry.shared_bytes,
                 kSharedBytes - launch.geometry.shared_bytes + kFenceBytes);
  }
}

void BlockExecutor::start_block(std::uint64_t block) {
  const std::uint64_t width = block_.grid_dim.x;
  const std::uint64_t height = block_.grid_dim.y;
  block_.block_index = {static_cast<unsigned>(block % width), static_cast<unsigned>(block / width % height),
                        static_cast<unsigned>(block / width / height)};
  const auto count = static_cast<unsigned>(threads_.size());
  for (unsigned warp = 0; warp < warps_.size(); ++warp) {
    warps_[warp].reset(count - warp * kWarpLanes);
  }
  started_ = 0;
  live_ = count;
  at_barrier_ = 0;
  votes_ = 0;
  ready_ = {};
  barrier_queue_ = {};
  failure_.reset();
  spoil_shared_memory(block);
}

void BlockExecutor::spoil_shared_memory(std::uint64_t block) const {
  const SpoiltWords words = spoilt_words(launch_number_, block);
  spoil(block_.dynamic_shared, launch_->geometry.shared_bytes, words);
  char* const variables = reinterpret_cast<char*>(current_);
  for (const SharedVariable& variable : launch_->shared) {
    spoil(variables + variable.offset, variable.bytes, words);
  }
}

std::optional<std::string> BlockExecutor::run(std::uint64_t block) {
  start_block(block);
  switch_.to(idle_fiber());
  if (failure_) {
    abandon();
  }
  return failure_;
}

void BlockExecutor::fiber_entry(boost::context::detail::transfer_t from) {
  auto* executor = static_cast<BlockExecutor*>(from.data);
  executor->switch_.arrived(from);
  executor->serve();
}

void BlockExecutor::serve() noexcept {
  for (;;) {
    while (started_ < threads_.size()) {
      Thread& thread = threads_[order_ == WarpOrder::highest_ahead ? threads_.size() - 1 - started_ : started_];
      ++started_;
      thread.fiber = &switch_.running();
      thread.state = State::running;
      *current_ = &thread;
      launch_->entry->run(launch_->arguments.data());
      exit(thread);
    }
    idle_.push_back(&switch_.running());
    run_others();
  }
}

void BlockExecutor::exit(Thread& thread) {
  thread.state = State::exited;
  --live_;
  const unsigned index = warp_of(thread);
  Warp& warp = warps_[index];
  warp.exit(thread.lane);
  for (unsigned left = warp.waiting(); left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if ((warp.waiting() >> lane & 1u) != 0) {
      make_ready(index, warp.complete(lane), nullptr);
    }
  }
  if (at_barrier_ != 0 && at_barrier_ == live_) {
    release_barrier();
  }
}

void BlockExecutor::run_others() {
  if (ready_.first == nullptr && started_ == threads_.size()) {
    release_active_masks();
  }
  if (Thread* thread = ready_.pop()) {
    thread->state = State::running;
    *current_ = thread;
    if (thread->fiber != &switch_.running()) {
      switch_.to(*thread->fiber);
    }
    return;
  }
  if (started_ < threads_.size()) {
    switch_.to(idle_fiber());
    return;
  }
  if (live_ != 0) {
    failure_ = deadlock();
  }
  switch_.to(switch_.home());
}

void BlockExecutor::barrier(Thread& thread, bool vote) {
  votes_ += vote ? 1 : 0;
  if (++at_barrier_ == live_) {
    release_barrier();
    return;
  }
  thread.state = State::at_barrier;
  barrier_queue_.push(thread);
  run_others();
}

void BlockExecutor::release_barrier() {
  block_.barrier_votes = votes_;
  block_.barrier_threads = at_barrier_;
  votes_ = 0;
  at_barrier_ = 0;
  ready_.splice(barrier_queue_);
}

std::uint64_t BlockExecutor::collective(Thread& thread, const LaneOffer& offer) {
  const unsigned index = warp_of(thread);
  Warp& warp = warps_[index];
  warp.arrive(thread.lane, offer);
  if (const unsigned lanes = warp.complete(thread.lane); lanes != 0) {
    make_ready(index, lanes, &thread);
  } else {
    thread.state = State::in_collective;
    run_others();
  }
  return warp.result(thread.lane);
}

void BlockExecutor::make_ready(unsigned warp, unsigned lanes, const Thread* but) {
  for (; lanes != 0; lanes &= lanes - 1) {
    Thread& thread = threads_[warp * kWarpLanes + static_cast<unsigned>(std::countr_zero(lanes))];
    if (&thread == but) {
      continue;
    }
    if (order_ == WarpOrder::side_by_side) {
      ready_.push(thread);
    } else {
      ready_.push_first(thread);
    }
  }
}

void BlockExecutor::release_active_masks() {
  for (unsigned warp = 0; warp < warps_.size() && ready_.first == nullptr; ++warp) {
    if (warps_[warp].waiting() != 0) {
      make_ready(warp, warps_[warp].complete_active_mask(), nullptr);
    }
  }
}

void BlockExecutor::add_fiber() {
  fibers_.push_back(std::make_unique<Fiber>(&BlockExecutor::fiber_entry, static_cast<int>(fibers_.size())));
  // A fiber must always find room for itself when it goes idle.
  idle_.reserve(fibers_.size());
  idle_.push_back(fibers_.back().get());
}

Fiber& BlockExecutor::idle_fiber() {
  if (idle_.empty()) {
    std::string problem;
    try {
      add_fiber();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (idle_.empty()) {
      fail(std::move(problem));
    }
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

void BlockExecutor::fail(std::string message) {
  failure_ = std::move(message);
  switch_.to(switch_.home());
  std::abort();
}

void BlockExecutor::abandon() {
  idle_.clear();
  for (const auto& fiber : fibers_) {
    fiber->rewind();
    idle_.push_back(fiber.get());
  }
}

}  // namespace pascaline
