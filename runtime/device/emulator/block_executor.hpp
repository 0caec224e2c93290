#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/device/emulator/fiber.hpp"
#include "runtime/device/emulator/static_shared.hpp"
#include "runtime/device/emulator/warp.hpp"
#include "runtime/device/shim/pascaline/abi.h"

namespace pascaline {

/// A kernel with its geometry and arguments, which must outlive the launch.
struct EmulatedLaunch {
  const pascaline_host::KernelEntry* entry = nullptr;
  std::span<const SharedVariable> shared;
  Geometry geometry;
  std::span<void* const> arguments;
};

/// How a block's warps go on: side by side from one meeting of lanes to the next, or each as far as the next barrier
/// before others do, the lowest or the highest first. No GPU promises any of them.
enum class WarpOrder : std::uint8_t { side_by_side, lowest_ahead, highest_ahead };

/// Runs blocks one after another on the calling thread. CUDA threads run to their end in order on one fiber; one
/// that has to wait keeps its fiber, and the next starts on another. So a kernel that never waits is a plain loop,
/// and a barrier costs one switch of stacks a thread.
class BlockExecutor {
 public:
  BlockExecutor();

  /// Makes ready for the blocks of a launch, on the thread that is going to run them. What shared memory holds before
  /// it is written depends on the launch's `number`.
  void prepare(const EmulatedLaunch& launch, std::uint64_t number, WarpOrder order);
  /// Runs one block of the launch; returns why it failed, if it did. Threads of a failed block are abandoned: what
  /// they held is not destroyed.
  [[nodiscard]] std::optional<std::string> run(std::uint64_t block);

 private:
  enum class State : std::uint8_t { running, at_barrier, in_collective, exited };

  struct Thread : pascaline_host::ThreadView {
    Fiber* fiber = nullptr;
    Thread* next = nullptr;
    State state = State::exited;
  };

  struct Block : pascaline_host::BlockView {
    BlockExecutor* owner = nullptr;
  };

  /// Threads in the order they go on in, linked through `next`.
  struct Queue {
    Thread* first = nullptr;
    Thread* last = nullptr;
    void push(Thread& thread) noexcept;
    void push_first(Thread& thread) noexcept;
    void splice(Queue& other) noexcept;
    Thread* pop() noexcept;
  };

  struct Calls;

  static const pascaline_host::Services& services() noexcept;
  static BlockExecutor& of(const pascaline_host::ThreadView& thread) noexcept;

  static void fiber_entry(boost::context::detail::transfer_t from);
  void start_block(std::uint64_t block);
  /// A GPU's shared memory holds whatever was there before: numbers that no kernel can take for its own.
  void spoil_shared_memory(std::uint64_t block) const;
  [[noreturn]] void serve() noexcept;
  void exit(Thread& thread);
  /// Leaves the running fiber for a thread that can go on, or for home if there is none.
  void run_others();

  void barrier(Thread& thread, bool vote);
  void release_barrier();
  std::uint64_t collective(Thread& thread, const LaneOffer& offer);
  void release_active_masks();
  void make_ready(unsigned warp, unsigned lanes, const Thread* but);

  [[noreturn]] void fail(std::string message);
  void abandon();
  [[nodiscard]] std::string deadlock() const;
  void add_fiber();
  [[nodiscard]] Fiber& idle_fiber();
  [[nodiscard]] unsigned warp_of(const Thread& thread) const noexcept {
    return static_cast<unsigned>(&thread - threads_.data()) / kWarpLanes;
  }

  FiberSwitch switch_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::unique_ptr<char, void (*)(void*)> dynamic_shared_;

  const EmulatedLaunch* launch_ = nullptr;
  std::uint64_t launch_number_ = 0;
  pascaline_host::ThreadView** current_ = nullptr;
  Block block_{};
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;

  WarpOrder order_ = WarpOrder::side_by_side;
  unsigned started_ = 0;
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  unsigned votes_ = 0;
  Queue ready_;
  Queue barrier_queue_;
  std::optional<std::string> failure_;
};

}  // namespace pascaline
