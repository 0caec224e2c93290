#pragma once

#include "runtime/device/cuda/cuda_context.hpp"
#include "runtime/device/stream_scope.hpp"

namespace pascaline {

/// What a device does for a StreamScope. For the thread that uses the device.
class BorrowedStream {
 public:
  /// `context` must outlive it.
  explicit BorrowedStream(CudaContext& context) noexcept : context_(context) {}
  BorrowedStream(const BorrowedStream&) = delete;
  BorrowedStream& operator=(const BorrowedStream&) = delete;
  ~BorrowedStream() { drop(); }

  /// Null: the context's own stream. Throws CudaError, and has changed nothing then.
  void enter(const ForeignStream* stream);
  void leave() noexcept;
  [[nodiscard]] bool captured() const noexcept { return captured_; }
  void wait_for(ForeignStream other);
  void begin_shared();
  void end_shared();
  /// Forgets its events, of a context that is about to go; needs the context to be current.
  void drop() noexcept;

 private:
  void look_at_capture();
  void make_events();

  CudaContext& context_;
  CuContext previous_ = nullptr;    // the thread's, while a scope lives
  bool captured_ = false;           // the stream in use
  unsigned long long capture_ = 0;  // its number; 0: none is known
  CuEvent shared_ = nullptr;        // behind the last launch that shares memory
  CuStream shared_on_ = nullptr;    // the stream of it
  CuEvent in_capture_ = nullptr;    // the same of captured ones
  unsigned long long last_capture_ = 0;
  CuEvent joined_ = nullptr;  // for wait_for
};

}  // namespace pascaline
