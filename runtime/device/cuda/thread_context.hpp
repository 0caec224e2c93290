#pragma once

namespace pascaline {

class DriverApi;

/// Keeps which CUDA context is current in the calling thread: makes it so again when it goes. Does nothing where there
/// is no driver.
class ThreadContext {
 public:
  ThreadContext() noexcept;
  ThreadContext(const ThreadContext&) = delete;
  ThreadContext& operator=(const ThreadContext&) = delete;
  ~ThreadContext();

 private:
  const DriverApi* driver_ = nullptr;  // null: not known what was current
  void* context_ = nullptr;
};

}  // namespace pascaline
