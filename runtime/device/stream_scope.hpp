#pragma once

#include <cstdint>

namespace pascaline {

class Device;

/// A stream of another library in this process, by the driver's handle: 0 or 1 is the legacy default stream, 2 that of
/// the calling thread. A handle that is none cannot be recognised.
struct ForeignStream {
  std::uintptr_t handle = 0;
};

/// Whether it is being captured into a graph. Throws CudaError, also where there is no driver.
[[nodiscard]] bool is_captured(ForeignStream stream);

/// For a caller in whose thread other libraries use the device, too. While it lives, what the device is given goes to
/// that caller's stream, or to the device's own; and when it ends, the thread's current context is what it was. Not
/// nested; on the emulated device, which does all at once, it changes nothing.
class StreamScope {
 public:
  /// On the device's own stream. Both throw CudaError.
  explicit StreamScope(Device& device);
  StreamScope(Device& device, ForeignStream stream);
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope();

  /// Whether the stream is being captured into a graph, by whoever it belongs to: nothing may be allocated, loaded or
  /// waited for then, and launches are recorded instead of started.
  [[nodiscard]] bool captured() const noexcept;
  /// Lets the stream's next work wait for all that the other one was given so far; not while it is captured, when only
  /// what was captured can be waited for.
  void wait_for(ForeignStream other);
  /// Around launches that use memory which the device's launches on all streams share: lets them wait for the last ones
  /// that did, on whatever stream, and is waited for by the next. Among captured launches it orders those of one
  /// capture; what a graph does when it is launched is up to whoever launches it.
  void begin_shared();
  void end_shared();

 private:
  Device& device_;
};

}  // namespace pascaline
