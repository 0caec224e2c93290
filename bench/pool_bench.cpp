#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/cuda/cuda_device.hpp"
#include "runtime/device/cuda/driver_api.hpp"
#include "runtime/device/device.hpp"
#include "runtime/memory/pool.hpp"

// What taking and giving back device memory costs: the pool, cuMemAlloc and cuMemFree, cuMemAllocAsync and
// cuMemFreeAsync. `same_size` takes and gives back one buffer; `mixed` keeps 64 of random sizes up to the given one
// alive and replaces one at a time, each used on a stream by a fill of its first bytes.

namespace pascaline {
namespace {

constexpr std::size_t kLive = 64;
constexpr std::size_t kTouchedBytes = 256;

/// Sizes between 256 bytes and the largest, as many small as large ones.
std::vector<std::size_t> random_sizes(std::size_t most) {
  std::mt19937_64 random(1);
  std::vector<std::size_t> sizes(4096);
  for (std::size_t& size : sizes) {
    std::size_t limit = kTouchedBytes;
    while (limit < most && random() % 8 != 0) {
      limit *= 2;
    }
    size = kTouchedBytes + random() % limit;
  }
  return sizes;
}

/// A device's memory through a pool.
class Pooled {
 public:
  using Handle = PoolBuffer;
  explicit Pooled(Device& device) : memory_(device.memory()), pool_(memory_) {}
  [[nodiscard]] Handle take(std::size_t bytes) { return pool_.allocate(bytes); }
  void give(Handle handle) { (void)handle; }
  void touch(const Handle& handle) { memory_.fill({}, handle.span().slice(0, kTouchedBytes), 1); }
  void finish() { memory_.synchronize(StreamId{}); }

 private:
  DeviceMemory& memory_;
  StreamPool pool_;
};

/// cuMemAlloc and cuMemFree, by way of unguarded buffers.
class Direct {
 public:
  using Handle = RawBuffer;
  explicit Direct(Device& device) : memory_(device.memory()) {}
  [[nodiscard]] Handle take(std::size_t bytes) { return memory_.allocate_raw(bytes); }
  void give(Handle handle) { (void)handle; }
  void touch(const Handle& handle) { memory_.fill({}, handle.span().slice(0, kTouchedBytes), 1); }
  void finish() { memory_.synchronize(StreamId{}); }

 private:
  DeviceMemory& memory_;
};

/// cuMemAllocAsync and cuMemFreeAsync with the driver's own pool as it is set up.
class Ordered {
 public:
  using Handle = CuAddress;
  explicit Ordered(Device& device) : driver_(DriverApi::get()) {
    (void)device.memory().state();  // makes the context current
    if (driver_.allocate_ordered.address == nullptr || driver_.free_ordered.address == nullptr) {
      throw CudaError("this driver has no cuMemAllocAsync");
    }
    driver_(driver_.stream_create, &stream_, kCuStreamNonBlocking);
  }
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;
  ~Ordered() {
    driver_.stream_synchronize.address(stream_);
    driver_.stream_destroy.address(stream_);
  }
  [[nodiscard]] Handle take(std::size_t bytes) {
    CuAddress address = 0;
    driver_(driver_.allocate_ordered, &address, bytes, stream_);
    return address;
  }
  void give(Handle handle) { driver_(driver_.free_ordered, handle, stream_); }
  void touch(Handle handle) { driver_(driver_.fill, handle, static_cast<unsigned char>(1), kTouchedBytes, stream_); }
  void finish() { driver_(driver_.stream_synchronize, stream_); }

 private:
  const DriverApi& driver_;
  CuStream stream_ = nullptr;
};

/// The first GPU, or nothing after saying why the benchmark is skipped.
std::unique_ptr<Device> gpu_or_skip(benchmark::State& state) {
  std::string note;
  if (list_cuda_devices(&note).empty()) {
    state.SkipWithError(("no CUDA device: " + note).c_str());
    return nullptr;
  }
  return open_device("cuda:0");
}

template <typename Memory>
void same_size_on(benchmark::State& state, Device& device) {
  Memory memory(device);
  const auto bytes = static_cast<std::size_t>(state.range(0));
  memory.give(memory.take(bytes));
  for (auto _ : state) {
    memory.give(memory.take(bytes));
  }
  memory.finish();
}

template <typename Memory>
void mixed_on(benchmark::State& state, Device& device) {
  Memory memory(device);
  const std::vector<std::size_t> sizes = random_sizes(static_cast<std::size_t>(state.range(0)));
  std::vector<typename Memory::Handle> live;
  for (std::size_t i = 0; i < kLive; ++i) {
    live.push_back(memory.take(sizes[i]));
  }
  std::size_t next = kLive;
  for (auto _ : state) {
    auto& oldest = live[next % kLive];
    memory.give(std::move(oldest));
    oldest = memory.take(sizes[next % sizes.size()]);
    memory.touch(oldest);
    ++next;
  }
  memory.finish();
  for (auto& handle : live) {
    memory.give(std::move(handle));
  }
}

template <typename Memory>
void same_size(benchmark::State& state) {
  if (const auto device = gpu_or_skip(state)) {
    same_size_on<Memory>(state, *device);
  }
}

template <typename Memory>
void mixed(benchmark::State& state) {
  if (const auto device = gpu_or_skip(state)) {
    mixed_on<Memory>(state, *device);
  }
}

// The pool's own time: on the emulated device there is no driver below it.
void same_size_on_host(benchmark::State& state) { same_size_on<Pooled>(state, *open_device("emulator")); }
void mixed_on_host(benchmark::State& state) { mixed_on<Pooled>(state, *open_device("emulator")); }

// Freed on one stream, taken on the other: by then the work before is done, or is waited for.
void other_stream(benchmark::State& state) {
  const auto device = gpu_or_skip(state);
  if (!device) {
    return;
  }
  StreamPool pool(device->memory());
  const Stream streams[2] = {device->memory().make_stream(), device->memory().make_stream()};
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::size_t next = 0;
  for (auto _ : state) {
    (void)pool.allocate(bytes, streams[++next % 2].id());
  }
}

constexpr std::int64_t kSmall = 4 << 10;
constexpr std::int64_t kMedium = 1 << 20;
constexpr std::int64_t kLarge = 64 << 20;

BENCHMARK(same_size_on_host)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(mixed_on_host)->Arg(kMedium);
BENCHMARK_TEMPLATE(same_size, Pooled)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(same_size, Ordered)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(same_size, Direct)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(mixed, Pooled)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(mixed, Ordered)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(mixed, Direct)->Arg(kMedium)->Arg(kLarge);
BENCHMARK(other_stream)->Arg(kLarge);

}  // namespace
}  // namespace pascaline
