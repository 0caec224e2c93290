#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/binary.hpp"
#include "core/device/device_limits.hpp"
#include "core/element_limits.hpp"
#include "core/error.hpp"
#include "core/space/space.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/device/handles.hpp"
#include "runtime/device/stream_scope.hpp"

namespace pascaline {

enum class DeviceKind : std::uint8_t { cuda, emulator };

/// What a device is.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::emulator;
  std::string id;              ///< "cuda:0", "emulator"
  std::string name;            ///< marketing name, or the processor's model
  std::string architecture;    ///< "sm_90"; "host", which `shown_architecture` names for users
  std::string uuid;            ///< "GPU-…"; for the emulator a hash of machine-id and processor
  std::string driver_version;  ///< "580.82.07 (CUDA 13.0)", or "13.0" if only that is known; empty on the emulator
  std::uint64_t memory_bytes = 0;
  DeviceLimits limits;
};

/// Readings beside a measurement; a card may lack any of them.
struct Sensors {
  std::optional<double> temperature_c;
  std::optional<double> temperature_limit_c;  ///< where the card begins to slow down
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> power_w;                  ///< taken now; some cards tell only an average of up to a second
  std::optional<std::uint64_t> throttle_reasons;  ///< NVML's bit mask
  std::optional<double> sm_clock_limit_mhz{};     ///< the highest that the card has
};

/// The elements that a texture object reads, and how.
struct TextureLayout {
  TextureUse use;
  ElementType type = ElementType::float32;  ///< of one channel of an element
  int channels = 1;
  std::size_t width = 0;   ///< elements of a row
  std::size_t height = 0;  ///< rows; 0: one row, which tex1Dfetch reads
};

/// A device that runs kernels: `cuda:N` or `emulator`. One thread uses a Device at a time; launches are ordered.
class Device {
 public:
  /// Bytes of each guard band before and behind a buffer's data.
  static constexpr std::size_t kGuardBytes = 4096;

  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const noexcept = 0;

  /// Streams, events, copies that do not wait, and memory without guard bands. Lives as long as the device; `reset`
  /// makes all that it gave out invalid.
  [[nodiscard]] virtual DeviceMemory& memory() noexcept = 0;

  /// Memory of `bytes` (0 is allowed) between intact guard bands, contents unspecified. Throws CudaError or
  /// EmulatorError if there is not enough.
  [[nodiscard]] virtual Buffer allocate(std::size_t bytes) = 0;
  virtual void upload(const Buffer& to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const Buffer& from) = 0;
  /// Sets every byte of the data; ordered with launches.
  virtual void fill(const Buffer& buffer, std::uint8_t byte) = 0;
  /// Whether both guard bands still hold what `allocate` wrote; repairs them if not.
  [[nodiscard]] virtual bool guards_intact(const Buffer& buffer) = 0;

  /// Sum of the data's 4-byte words (a rest of bytes, filled up with zeros, is one more), word i counted 2i+1 times,
  /// modulo 2^64: no change of a single word leaves it as it was. Ordered with launches; throws as `synchronize` does.
  [[nodiscard]] virtual std::uint64_t checksum(const Buffer& buffer) = 0;

  /// Whether `largest_error` takes elements of that type. Devices whose memory the host reads as it does its own, as
  /// the emulated device, compare none: comparing there is the host's.
  [[nodiscard]] virtual bool compares(ElementType /*type*/) const noexcept { return false; }
  /// The largest error of the elements of `values`, where all are within their limits (see `ErrorBound::limits`), or
  /// infinity. `expected` has as many float64 numbers. The device compares, and nothing is copied but the error, which
  /// is the same, to the last bit, as on the host. Ordered with launches; throws as `synchronize` does, and Error for a
  /// type that it does not compare.
  [[nodiscard]] virtual double largest_error(const Buffer& values, ElementType type, const Buffer& expected,
                                             const ElementLimits& limits);

  /// Loads a binary made for this device; throws CudaError or EmulatorError with the loader's log.
  [[nodiscard]] virtual Kernel load(const Binary& binary) = 0;
  /// Memory of a variable (`__constant__` or `__device__`) of the kernel's file, by its name in C++ from the outermost
  /// namespace; nothing if the loaded code has none of that name. It lives as long as the kernel.
  [[nodiscard]] virtual std::optional<DeviceSpan> variable(const Kernel& /*kernel*/, const std::string& /*name*/) {
    return std::nullopt;
  }
  /// A texture object over `memory`, which begins at a multiple of 512 bytes. Throws CudaError or EmulatorError if the
  /// device refuses it.
  [[nodiscard]] virtual Texture make_texture(DeviceSpan memory, const TextureLayout& layout);
  /// Starts the kernel; `arguments[i]` points to the i-th argument's value, as for cuLaunchKernel. Does not wait.
  /// Throws CudaError or EmulatorError if the launch is refused.
  virtual void launch(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments) = 0;
  /// What `work` launches and fills, recorded in its order and not run: argument values are kept, what they point to is
  /// not. While it records, the device takes launches of kernels and fills only: whatever allocates, loads, copies,
  /// reads back, waits, times, resets, records or launches a graph throws CudaError or EmulatorError, and nothing of
  /// it is recorded. `work` must not free anything either. Throws what `work` throws, CudaError or EmulatorError.
  [[nodiscard]] virtual Graph record(const std::function<void()>& work) = 0;
  /// Makes the graph do what `work` launches and fills now, as `record` would record it. True if the graph was changed
  /// in place, which takes a fraction of the time; false if what is recorded has another form (other kinds of steps, or
  /// another number of them), or the graph held nothing, so that it had to be made again. It is ready to be launched in
  /// either case. Throws as `record` does, and then leaves the graph as it was.
  virtual bool update(Graph& graph, const std::function<void()>& work) = 0;
  /// Whether `record` or `update` is at work.
  [[nodiscard]] virtual bool recording() const noexcept = 0;
  /// Starts what was recorded, in its order; does not wait. The kernels and buffers in it must still live. Throws as
  /// launching a kernel does.
  virtual void launch(const Graph& graph) = 0;
  /// Waits for all started work; throws CudaError or EmulatorError if any of it failed. After such a failure
  /// the device is unusable until `reset`.
  virtual void synchronize() = 0;
  /// Time of one launch in microseconds, by device events (wall clock on the emulator). With `cold_cache` the
  /// device's L2 is evicted before. Waits for the launch and throws as `synchronize` does.
  [[nodiscard]] virtual double time_launch_us(const Kernel& kernel, const Geometry& geometry,
                                              std::span<void* const> arguments, bool cold_cache) = 0;
  /// The same of what a graph holds, from its first launch to the end of its last.
  [[nodiscard]] virtual double time_launch_us(const Graph& graph, bool cold_cache) = 0;
  /// What the last `time_launch_us` took before its launch, in microseconds: for evicting caches and, on a GPU, for
  /// holding the launch back until all of it was queued.
  [[nodiscard]] virtual double evict_us() const noexcept { return 0; }
  /// Time in microseconds of a fixed amount of arithmetic on the whole device that touches no memory: it changes with
  /// the clock and with nothing else. Taken as `time_launch_us` takes times; throws as that does.
  [[nodiscard]] virtual double time_canary_us() = 0;
  /// The only member that another thread may call while one uses the device.
  [[nodiscard]] virtual Sensors read_sensors() noexcept = 0;
  /// Makes the device usable again after a failed launch; every Buffer, Kernel and Graph of it, and whatever `memory`
  /// gave out, becomes invalid (they may still be destroyed safely). Throws DeviceLostError if the driver does not take
  /// this process back: recent ones do not after a kernel's fault, and only a new process helps.
  virtual void reset() = 0;

 protected:
  friend class Buffer;
  friend class Kernel;
  friend class Texture;
  friend class Graph;
  friend class StreamScope;
  // As StreamScope's members say; null: the device's own stream.
  virtual void enter(const ForeignStream* /*stream*/) {}
  virtual void leave() noexcept {}
  [[nodiscard]] virtual bool captured() const noexcept { return false; }
  virtual void wait_for(ForeignStream /*other*/) {}
  virtual void begin_shared() {}
  virtual void end_shared() {}
  virtual void release_buffer(void* base) noexcept = 0;
  virtual void release_kernel(void* module) noexcept = 0;
  virtual void release_texture(void* /*handle*/) noexcept {}
  virtual void release_graph(void* handle) noexcept = 0;
};

/// Device::checksum of bytes in the host's memory, the first being part of word `first_word`.
[[nodiscard]] std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t first_word = 0);

/// Whether it was thrown for want of device memory, which may be free at another time.
[[nodiscard]] bool is_out_of_memory(const Error& error) noexcept;

/// Opens `cuda:N` or `emulator` (also called `host`); throws Error saying which devices there are.
[[nodiscard]] std::unique_ptr<Device> open_device(const std::string& id);

/// Every device of this machine, CUDA ones first, `emulator` last. Never throws for a missing driver; `note` (may be
/// null) receives why there is no CUDA device.
[[nodiscard]] std::vector<DeviceInfo> list_devices(std::string* note = nullptr);

}  // namespace pascaline
