#pragma once

#include <cstdint>

#include "runtime/device/cuda/driver_api.hpp"

namespace pascaline {

/// A device's primary context, retained, with a stream that its work goes through and an event pair for timing.
class CudaContext {
 public:
  /// Throws CudaError if the device cannot be used.
  explicit CudaContext(int ordinal);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();

  /// Makes it the calling thread's context; to be called before anything that works on the context.
  void make_current();
  /// The same in a thread whose context other libraries set, too: asks the driver which one is current, and returns it
  /// for `give_back`.
  [[nodiscard]] CuContext borrow_thread();
  /// Makes that context the calling thread's again. From then on nothing is taken for granted about the thread.
  void give_back(CuContext previous) noexcept;
  /// Lets work go to a stream of somebody else's, or to the context's own again.
  void use_stream(CuStream stream) noexcept { used_ = stream; }
  void use_own_stream() noexcept { used_ = stream_; }
  /// Destroys the context with everything in it and makes a new one; throws CudaError if the device stays broken.
  void reset();

  [[nodiscard]] const DriverApi& driver() const noexcept { return driver_; }
  [[nodiscard]] CuOrdinal device() const noexcept { return device_; }
  /// Where work goes: the context's own stream, or the one that was put in its place.
  [[nodiscard]] CuStream stream() const noexcept { return used_; }
  [[nodiscard]] CuEvent begin() const noexcept { return begin_; }
  [[nodiscard]] CuEvent start() const noexcept { return start_; }
  [[nodiscard]] CuEvent stop() const noexcept { return stop_; }

 private:
  void open();
  void close() noexcept;

  const DriverApi& driver_;
  CuOrdinal device_ = 0;
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  CuStream used_ = nullptr;
  CuEvent begin_ = nullptr;
  CuEvent start_ = nullptr;
  CuEvent stop_ = nullptr;
  std::uint64_t generation_ = 0;
};

}  // namespace pascaline
