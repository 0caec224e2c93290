#pragma once

#include <cstddef>
#include <memory>

#include <boost/context/detail/fcontext.hpp>

#include "runtime/device/emulator/sanitizer_hooks.hpp"

namespace pascaline {

/// A stack to run on and, while it does not run, where it stopped. The default one stands for the stack of the
/// operating system's thread itself.
class Fiber {
 public:
  using Entry = void (*)(boost::context::detail::transfer_t);

  Fiber() = default;
  /// A fiber with a stack of its own that starts in `entry`; `number` spreads the stacks' tops over the cache's
  /// sets. Throws EmulatorError if there is no memory.
  Fiber(Entry entry, int number);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Forgets where it stopped and starts over at the next switch; what ran on it is not unwound.
  void rewind() noexcept;

 private:
  friend class FiberSwitch;

  boost::context::detail::fcontext_t context_ = nullptr;
  const void* bottom_ = nullptr;  ///< of the usable stack, for AddressSanitizer
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
  Entry entry_ = nullptr;
  void* mapping_ = nullptr;
};

/// Which fiber runs on a thread, and the way from one to another. `Entry` gets the pointer given here as data and
/// must call `arrived` first.
class FiberSwitch {
 public:
  explicit FiberSwitch(void* data) : data_(data) {}

  [[nodiscard]] Fiber& running() noexcept { return *running_; }

  /// Stops the running fiber and resumes `to`; returns when something switches back.
  void to(Fiber& next) {
    Fiber& self = *running_;
    previous_ = &self;
    running_ = &next;
    if (hooks_.present()) {
      hooks_.start_switch(&self.fake_stack_, next.bottom_, next.bytes_);
    }
    arrived(boost::context::detail::jump_fcontext(next.context_, data_));
  }

  /// Notes where the fiber before this one stopped.
  void arrived(boost::context::detail::transfer_t from) {
    previous_->context_ = from.fctx;
    if (hooks_.present()) {
      hooks_.finish_switch(running_->fake_stack_, &previous_->bottom_, &previous_->bytes_);
    }
  }

  /// The thread's own stack.
  Fiber& home() noexcept { return home_; }

 private:
  Fiber home_;
  Fiber* running_ = &home_;
  Fiber* previous_ = nullptr;
  void* data_;
  const SanitizerHooks& hooks_ = sanitizer_hooks();
};

}  // namespace pascaline
