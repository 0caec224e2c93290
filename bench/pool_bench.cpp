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
// cuMemFreeAsync; on the emulated device (`_on_emulator`) the pool and the C library. `same_size` takes and gives back
// one buffer; `mixed` keeps 64 of random sizes up to the given one alive and replaces one at a time, each used on a
// stream by a fill of its first bytes; `model` takes the weights' memory of Qwen3-VL-2B and gives it back, with the
// calls that the device got.

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
  using Handle = RawBuffer;
  explicit Pooled(Device& device) : pool_(device.memory()) {}
  [[nodiscard]] Handle take(std::size_t bytes) { return pool_.allocate_raw(bytes); }
  void give(Handle handle) { (void)handle; }
  void touch(const Handle& handle) { pool_.fill({}, handle.span().slice(0, kTouchedBytes), 1); }
  void finish() { pool_.synchronize(StreamId{}); }
  [[nodiscard]] double calls() const { return static_cast<double>(pool_.statistics().device_calls); }

 private:
  MemoryPool pool_;
};

/// cuMemAlloc and cuMemFree, or malloc, by way of unguarded buffers.
class Direct {
 public:
  using Handle = RawBuffer;
  explicit Direct(Device& device) : memory_(device.memory()) {}
  [[nodiscard]] Handle take(std::size_t bytes) {
    ++calls_;
    return memory_.allocate_raw(bytes);
  }
  void give(Handle handle) { (void)handle; }
  void touch(const Handle& handle) { memory_.fill({}, handle.span().slice(0, kTouchedBytes), 1); }
  void finish() { memory_.synchronize(StreamId{}); }
  [[nodiscard]] double calls() const { return static_cast<double>(calls_); }

 private:
  DeviceMemory& memory_;
  std::uint64_t calls_ = 0;
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
    ++calls_;
    CuAddress address = 0;
    driver_(driver_.allocate_ordered, &address, bytes, stream_);
    return address;
  }
  void give(Handle handle) { driver_(driver_.free_ordered, handle, stream_); }
  void touch(Handle handle) { driver_(driver_.fill, handle, static_cast<unsigned char>(1), kTouchedBytes, stream_); }
  void finish() { driver_(driver_.stream_synchronize, stream_); }
  [[nodiscard]] double calls() const { return static_cast<double>(calls_); }

 private:
  const DriverApi& driver_;
  CuStream stream_ = nullptr;
  std::uint64_t calls_ = 0;
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

/// Bytes of each tensor of Qwen3-VL-2B, matrices in float16 and the rest in float32, in the checkpoint's order.
std::vector<std::size_t> model_sizes() {
  constexpr std::size_t kHalf = 2;
  constexpr std::size_t kFull = 4;
  std::vector<std::size_t> sizes{151936 * 2048 * kHalf, 2048 * kFull};
  for (int layer = 0; layer < 28; ++layer) {
    for (const std::size_t elements :
         {2048 * 2048, 1024 * 2048, 1024 * 2048, 2048 * 2048, 6144 * 2048, 6144 * 2048, 6144 * 2048}) {
      sizes.push_back(elements * kHalf);
    }
    for (const std::size_t elements : {2048, 2048, 128, 128}) {  // norms
      sizes.push_back(elements * kFull);
    }
  }
  for (int block = 0; block < 24; ++block) {
    for (const std::size_t elements : {3072 * 1024, 1024 * 1024, 4096 * 1024, 4096 * 1024}) {
      sizes.push_back(elements * kHalf);
    }
    for (const std::size_t elements : {3072, 1024, 4096, 1024, 1024, 1024, 1024, 1024}) {  // biases and norms
      sizes.push_back(elements * kFull);
    }
  }
  return sizes;
}

template <typename Memory>
void model_on(benchmark::State& state, Device& device) {
  const std::vector<std::size_t> sizes = model_sizes();
  double calls = 0;
  for (auto _ : state) {
    Memory memory(device);
    std::vector<typename Memory::Handle> live;
    live.reserve(sizes.size());
    for (const std::size_t bytes : sizes) {
      live.push_back(memory.take(bytes));
    }
    for (auto& handle : live) {
      memory.give(std::move(handle));
    }
    memory.finish();
    calls = memory.calls();
  }
  state.counters["buffers"] = static_cast<double>(sizes.size());
  state.counters["device_calls"] = calls;
}

template <auto Work>
void on_gpu(benchmark::State& state) {
  if (const auto device = gpu_or_skip(state)) {
    Work(state, *device);
  }
}

// There is no driver below: the pool's own time, and that of the C library.
template <auto Work>
void on_emulator(benchmark::State& state) {
  Work(state, *open_device("emulator"));
}

constexpr std::int64_t kSmall = 4 << 10;
constexpr std::int64_t kMedium = 1 << 20;
constexpr std::int64_t kLarge = 64 << 20;

template <typename Memory>
void same_size(benchmark::State& state) {
  on_gpu<same_size_on<Memory>>(state);
}
template <typename Memory>
void mixed(benchmark::State& state) {
  on_gpu<mixed_on<Memory>>(state);
}
template <typename Memory>
void model(benchmark::State& state) {
  on_gpu<model_on<Memory>>(state);
}
template <typename Memory>
void same_size_on_emulator(benchmark::State& state) {
  on_emulator<same_size_on<Memory>>(state);
}
template <typename Memory>
void mixed_on_emulator(benchmark::State& state) {
  on_emulator<mixed_on<Memory>>(state);
}
template <typename Memory>
void model_on_emulator(benchmark::State& state) {
  on_emulator<model_on<Memory>>(state);
}

BENCHMARK_TEMPLATE(same_size_on_emulator, Pooled)->Arg(kSmall)->Arg(kLarge);
BENCHMARK_TEMPLATE(same_size_on_emulator, Direct)->Arg(kSmall)->Arg(kLarge);
BENCHMARK_TEMPLATE(mixed_on_emulator, Pooled)->Arg(kMedium);
BENCHMARK_TEMPLATE(mixed_on_emulator, Direct)->Arg(kMedium);
BENCHMARK_TEMPLATE(model_on_emulator, Pooled)->Unit(benchmark::kMicrosecond);
BENCHMARK_TEMPLATE(model_on_emulator, Direct)->Unit(benchmark::kMicrosecond);
BENCHMARK_TEMPLATE(same_size, Pooled)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(same_size, Ordered)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(same_size, Direct)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(mixed, Pooled)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(mixed, Ordered)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(mixed, Direct)->Arg(kMedium)->Arg(kLarge);
BENCHMARK_TEMPLATE(model, Pooled)->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(model, Ordered)->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(model, Direct)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pascaline
