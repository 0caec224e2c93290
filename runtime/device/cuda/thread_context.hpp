#pragma once

namespace pascaline {

/// Keeps which CUDA context is current in the calling thread: makes it so again when it goes. Does nothing where there
/// is no driver.
class ThreadContext {
 public:
  ThreadContext() noexcept;
  ThreadContext(const ThreadContext&) = delete;
  ThreadContext& operator=(const ThreadContext&) = delete;
  ~ThreadContext();

 private:
  void* context_ = nullptr;
  bool known_ = false;
};

}  // namespace pascaline
