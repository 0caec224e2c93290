#include "runtime/device/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/space/code_words.hpp"
#include "runtime/device/cuda/borrowed_stream.hpp"
#include "runtime/device/cuda/cuda_checksum.hpp"
#include "runtime/device/cuda/cuda_comparison.hpp"
#include "runtime/device/cuda/cuda_context.hpp"
#include "runtime/device/cuda/cuda_graph.hpp"
#include "runtime/device/cuda/cuda_memory.hpp"
#include "runtime/device/cuda/cuda_module.hpp"
#include "runtime/device/cuda/cuda_query.hpp"
#include "runtime/device/cuda/cuda_texture.hpp"
#include "runtime/device/cuda/cuda_timing.hpp"
#include "runtime/device/cuda/nvml.hpp"
#include "runtime/device/cuda/registry.hpp"
#include "runtime/device/recording_thread.hpp"

namespace pascaline {
namespace {

constexpr unsigned char kGuardByte = 0xA5;

CuAddress address_of(const Buffer& buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data()); }

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal)
      : info_(query_cuda_device(DriverApi::get(), ordinal)),
        nvml_(Nvml::open(info_.uuid, query_pci_bus_id(DriverApi::get(), ordinal))),
        used_before_(nvml_ ? nvml_->used_memory() : std::nullopt),
        context_(ordinal),
        memory_(context_, recorder_, info_, context_bytes()) {}
  ~CudaDevice() override { drop_everything(); }

  [[nodiscard]] const DeviceInfo& info() const noexcept override { return info_; }

  [[nodiscard]] DeviceMemory& memory() noexcept override { return memory_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override;
  void upload(const Buffer& to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const Buffer& from) override;
  void fill(const Buffer& buffer, std::uint8_t byte) override;
  [[nodiscard]] bool guards_intact(const Buffer& buffer) override;

  [[nodiscard]] std::uint64_t checksum(const Buffer& buffer) override;
  [[nodiscard]] bool compares(ElementType type) const noexcept override { return ComparisonAid::takes(type); }
  [[nodiscard]] double largest_error(const Buffer& values, ElementType type, const Buffer& expected,
                                     const ElementLimits& limits) override;
  [[nodiscard]] Kernel load(const Binary& binary) override;
  [[nodiscard]] std::optional<DeviceSpan> variable(const Kernel& kernel, const std::string& name) override;
  [[nodiscard]] Texture make_texture(DeviceSpan memory, const TextureLayout& layout) override;
  void launch(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments) override;
  [[nodiscard]] Graph record(const std::function<void()>& work) override;
  bool update(Graph& graph, const std::function<void()>& work) override;
  [[nodiscard]] bool recording() const noexcept override { return recorder_.any(); }
  void launch(const Graph& graph) override;
  void synchronize() override;
  [[nodiscard]] double time_launch_us(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments,
                                      bool cold_cache) override;
  [[nodiscard]] double time_launch_us(const Graph& graph, bool cold_cache) override;
  [[nodiscard]] double evict_us() const noexcept override { return evict_us_; }
  [[nodiscard]] double time_canary_us() override;
  [[nodiscard]] Sensors read_sensors() noexcept override { return nvml_ ? nvml_->read() : Sensors{}; }
  void reset() override;

 protected:
  void enter(const ForeignStream* stream) override { borrowed_.enter(stream); }
  void leave() noexcept override { borrowed_.leave(); }
  [[nodiscard]] bool captured() const noexcept override { return borrowed_.captured(); }
  void wait_for(ForeignStream other) override { borrowed_.wait_for(other); }
  void begin_shared() override { borrowed_.begin_shared(); }
  void end_shared() override { borrowed_.end_shared(); }
  void release_buffer(void* base) noexcept override;
  void release_kernel(void* module) noexcept override;
  void release_texture(void* handle) noexcept override;
  void release_graph(void* handle) noexcept override;

 private:
  void check_not_recording(const char* doing) const;
  void require_live(const Buffer& buffer, const char* doing, std::size_t bytes) const;
  void check_launch(const Kernel& kernel, const Geometry& geometry) const;
  [[nodiscard]] CapturedGraph capture(const std::function<void()>& work);
  [[nodiscard]] bool guard_intact(CuAddress guard);
  [[nodiscard]] std::uint64_t context_bytes() const noexcept;
  [[nodiscard]] TimingAid& timing();
  template <typename Start>
  [[nodiscard]] double time_us(const Start& start);
  template <typename Start>
  [[nodiscard]] double time_prepared_us(bool cold_cache, const Start& start);
  void drop_everything() noexcept;
  template <typename Handle, typename Free>
  void release(Registry<Handle>& registry, void* number, const Free& free) noexcept;

  DeviceInfo info_;
  std::unique_ptr<Nvml> nvml_;
  std::optional<std::uint64_t> used_before_;  // of the card's memory, when there was no context yet
  CudaContext context_;
  BorrowedStream borrowed_{context_};
  RecordingThread recorder_;
  CudaMemory memory_;
  std::unique_ptr<TimingAid> timing_;
  double evict_us_ = 0;
  std::unique_ptr<ChecksumAid> checksum_;
  std::unique_ptr<ComparisonAid> comparison_;
  Registry<CuAddress> buffers_;
  Registry<CuModule> modules_;
  Registry<std::uint64_t> textures_;
  Registry<CuGraphExec> graphs_;
};

// The driver would refuse most of it too, but spoil what was captured, and take a graph or a timed launch into it.
void CudaDevice::check_not_recording(const char* doing) const {
  if (recorder_.any()) {
    throw CudaError(refused_in_recording(doing), kCuStreamCaptureUnsupported);
  }
}

void CudaDevice::require_live(const Buffer& buffer, const char* doing, std::size_t bytes) const {
  if (buffers_.find(buffer.base()) == nullptr) {
    throw CudaError(fmt::format("cannot {} a buffer that {} does not hold (made before a reset, or of another device)",
                                doing, info_.id),
                    kCuInvalidValue);
  }
  if (bytes > buffer.bytes()) {
    throw CudaError(fmt::format("cannot {} {} bytes of a buffer of {}", doing, bytes, buffer.bytes()), kCuInvalidValue);
  }
}

// Other processes may take or give back memory meanwhile; more than that no context takes.
std::uint64_t CudaDevice::context_bytes() const noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  const auto used = nvml_ ? nvml_->used_memory() : std::nullopt;
  return used && used_before_ && *used > *used_before_ ? std::min(*used - *used_before_, kMost) : 0;
}

Buffer CudaDevice::allocate(std::size_t bytes) {
  check_not_recording("allocate memory");
  const DriverApi& driver = context_.driver();
  context_.make_current();
  CuAddress start = 0;
  if (bytes > info_.memory_bytes) {
    throw CudaError(fmt::format("cannot allocate {} bytes on {}, which has {}", bytes, info_.name, info_.memory_bytes),
                    kCuOutOfMemory);
  }
  driver.check(driver.allocate.symbol, driver.allocate.address(&start, bytes + 2 * kGuardBytes),
               fmt::format("allocating {} bytes on {}", bytes, info_.id));
  Buffer buffer(this, buffers_.add(start), reinterpret_cast<void*>(static_cast<std::uintptr_t>(start + kGuardBytes)),
                bytes);
  driver(driver.fill, start, kGuardByte, kGuardBytes, context_.stream());
  driver(driver.fill, start + kGuardBytes + bytes, kGuardByte, kGuardBytes, context_.stream());
  return buffer;
}

void CudaDevice::upload(const Buffer& to, std::span<const std::byte> from) {
  check_not_recording("upload");
  const DriverApi& driver = context_.driver();
  context_.make_current();
  require_live(to, "upload to", from.size());
  if (!from.empty()) {
    driver(driver.upload, address_of(to), static_cast<const void*>(from.data()), from.size(), context_.stream());
    driver(driver.stream_synchronize, context_.stream());
  }
}

void CudaDevice::download(std::span<std::byte> to, const Buffer& from) {
  check_not_recording("download");
  const DriverApi& driver = context_.driver();
  context_.make_current();
  require_live(from, "download from", to.size());
  if (!to.empty()) {
    driver(driver.download, static_cast<void*>(to.data()), address_of(from), to.size(), context_.stream());
  }
  driver(driver.stream_synchronize, context_.stream());
}

void CudaDevice::fill(const Buffer& buffer, std::uint8_t byte) {
  const DriverApi& driver = context_.driver();
  context_.make_current();
  require_live(buffer, "fill", buffer.bytes());
  if (buffer.bytes() > 0) {
    driver(driver.fill, address_of(buffer), byte, buffer.bytes(), context_.stream());
  }
}

bool CudaDevice::guard_intact(CuAddress guard) {
  const DriverApi& driver = context_.driver();
  std::array<unsigned char, kGuardBytes> held{};
  driver(driver.download, static_cast<void*>(held.data()), guard, held.size(), context_.stream());
  driver(driver.stream_synchronize, context_.stream());
  if (std::all_of(held.begin(), held.end(), [](unsigned char byte) { return byte == kGuardByte; })) {
    return true;
  }
  driver(driver.fill, guard, kGuardByte, kGuardBytes, context_.stream());
  return false;
}

bool CudaDevice::guards_intact(const Buffer& buffer) {
  check_not_recording("check guards");
  context_.make_current();
  require_live(buffer, "check the guards of", 0);
  const bool before = guard_intact(address_of(buffer) - kGuardBytes);
  const bool behind = guard_intact(address_of(buffer) + buffer.bytes());
  return before && behind;
}

std::uint64_t CudaDevice::checksum(const Buffer& buffer) {
  check_not_recording("sum up a buffer");
  context_.make_current();
  require_live(buffer, "sum up", 0);
  if (!checksum_) {
    checksum_ = std::make_unique<ChecksumAid>(context_);
  }
  const std::uint64_t words = buffer.bytes() / sizeof(std::uint32_t);
  std::uint64_t sum = checksum_->sum(address_of(buffer), words, static_cast<unsigned>(info_.limits.sm_count));
  std::array<std::byte, sizeof(std::uint32_t)> rest{};
  if (const std::size_t count = buffer.bytes() % rest.size(); count > 0) {
    const DriverApi& driver = context_.driver();
    driver(driver.download, static_cast<void*>(rest.data()), address_of(buffer) + words * rest.size(), count,
           context_.stream());
    driver(driver.stream_synchronize, context_.stream());
    sum += checksum_of(rest, words);
  }
  return sum;
}

double CudaDevice::largest_error(const Buffer& values, ElementType type, const Buffer& expected,
                                 const ElementLimits& limits) {
  check_not_recording("compare a buffer");
  if (!compares(type)) {
    return Device::largest_error(values, type, expected, limits);
  }
  context_.make_current();
  const std::size_t count = values.bytes() / size_of(type);
  require_live(values, "compare", 0);
  require_live(expected, "compare with", count * sizeof(double));
  if (!comparison_) {
    comparison_ = std::make_unique<ComparisonAid>(context_);
  }
  return comparison_->largest_error(address_of(values), type, address_of(expected), count, limits,
                                    static_cast<unsigned>(info_.limits.sm_count));
}

Kernel CudaDevice::load(const Binary& binary) {
  check_not_recording("load a kernel");
  const DriverApi& driver = context_.driver();
  if (binary.kind == BinaryKind::host_object || binary.code.empty()) {
    throw CudaError(fmt::format("cannot load {} on {}: not code for a GPU", binary.function, info_.id), 200);
  }
  context_.make_current();
  CuModule module = load_cuda_module(driver, binary, info_.id);
  try {
    CuFunction function = nullptr;
    driver.check(driver.module_function.symbol,
                 driver.module_function.address(&function, module, binary.function.c_str()), binary.function);
    const Resources resources = loaded_resources(driver, function, binary);
    return Kernel(this, modules_.add(module), function, resources);
  } catch (...) {
    driver.module_unload.address(module);
    throw;
  }
}

std::optional<DeviceSpan> CudaDevice::variable(const Kernel& kernel, const std::string& name) {
  const CuModule* const module = modules_.find(kernel.module());
  if (module == nullptr) {
    return std::nullopt;
  }
  context_.make_current();
  CuAddress address = 0;
  std::size_t bytes = 0;
  const std::string known_as = linker_name(name);
  if (context_.driver().module_global.address(&address, &bytes, *module, known_as.c_str()) != 0) {
    return std::nullopt;
  }
  return DeviceSpan{reinterpret_cast<void*>(address), bytes};
}

Texture CudaDevice::make_texture(DeviceSpan memory, const TextureLayout& layout) {
  check_not_recording("make a texture");
  context_.make_current();
  const CuTextureMemory described = texture_memory(memory, layout);
  const CuTextureReading reading = texture_reading(layout);
  std::uint64_t object = 0;
  context_.driver()(context_.driver().texture_create, &object, &described, &reading, nullptr);
  return {this, textures_.add(object), object};
}

void CudaDevice::check_launch(const Kernel& kernel, const Geometry& geometry) const {
  if (modules_.find(kernel.module()) == nullptr) {
    throw CudaError(fmt::format("cannot launch a kernel that {} does not hold (loaded before a reset, or on another "
                                "device); load it again",
                                info_.id),
                    400);
  }
  const std::int64_t shared = std::int64_t{kernel.resources().static_shared_bytes} + geometry.shared_bytes;
  if (shared > info_.limits.max_shared_bytes_per_block) {
    throw CudaError(fmt::format("launch refused: {} bytes of shared memory a block, but {} gives {} at most", shared,
                                info_.id, info_.limits.max_shared_bytes_per_block),
                    kCuInvalidValue);
  }
}

void CudaDevice::launch(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments) {
  const DriverApi& driver = context_.driver();
  check_launch(kernel, geometry);
  context_.make_current();
  const auto& [grid, block, shared_bytes] = geometry;
  const CuResult result =
      driver.launch.address(static_cast<CuFunction>(kernel.function()), grid[0], grid[1], grid[2], block[0], block[1],
                            block[2], shared_bytes, context_.stream(), const_cast<void**>(arguments.data()), nullptr);
  if (result != 0) {
    driver.check(
        driver.launch.symbol, result,
        fmt::format("grid {}x{}x{}, block {}x{}x{}, {} bytes of dynamic shared memory, {} registers a thread", grid[0],
                    grid[1], grid[2], block[0], block[1], block[2], shared_bytes, kernel.resources().registers));
  }
}

CapturedGraph CudaDevice::capture(const std::function<void()>& work) {
  return {context_, [&] {
            const RecordingThread::Mark mark(recorder_);
            work();
          }};
}

Graph CudaDevice::record(const std::function<void()>& work) {
  check_not_recording("record");
  return {this, graphs_.add(capture(work).instantiate())};
}

bool CudaDevice::update(Graph& graph, const std::function<void()>& work) {
  check_not_recording("update a graph");
  const CapturedGraph captured = capture(work);
  const CuGraphExec* recorded = graphs_.find(graph.handle());
  if (recorded != nullptr && captured.update(*recorded)) {
    return true;
  }
  graph = Graph(this, graphs_.add(captured.instantiate()));
  return false;
}

void CudaDevice::launch(const Graph& graph) {
  check_not_recording("launch a graph");
  const CuGraphExec* recorded = graphs_.find(graph.handle());
  if (recorded == nullptr) {
    throw CudaError(fmt::format("cannot launch a graph that {} does not hold (recorded before a reset, or on another "
                                "device); record it again",
                                info_.id),
                    400);
  }
  context_.make_current();
  context_.driver()(context_.driver().graph_launch, *recorded, context_.stream());
}

void CudaDevice::synchronize() {
  check_not_recording("wait");
  context_.make_current();
  context_.driver()(context_.driver().stream_synchronize, context_.stream());
}

TimingAid& CudaDevice::timing() {
  context_.make_current();
  if (!timing_) {
    timing_ = std::make_unique<TimingAid>(context_, static_cast<std::size_t>(info_.limits.l2_bytes));
  }
  return *timing_;
}

// Of what `start` queues, between two events. The stream must have been held back by `prepare`.
template <typename Start>
double CudaDevice::time_us(const Start& start) {
  const DriverApi& driver = context_.driver();
  driver(driver.event_record, context_.start(), context_.stream());
  start();
  driver(driver.event_record, context_.stop(), context_.stream());
  driver(driver.event_synchronize, context_.stop());
  float milliseconds = 0;
  driver(driver.event_elapsed, &milliseconds, context_.start(), context_.stop());
  return static_cast<double>(milliseconds) * 1000.0;
}

// The same after preparing for it, which is timed, too.
template <typename Start>
double CudaDevice::time_prepared_us(bool cold_cache, const Start& start) {
  TimingAid& aid = timing();
  const DriverApi& driver = context_.driver();
  driver(driver.event_record, context_.begin(), context_.stream());
  aid.prepare(cold_cache);
  const double of_start_us = time_us(start);
  float milliseconds = 0;
  driver(driver.event_elapsed, &milliseconds, context_.begin(), context_.start());
  evict_us_ = static_cast<double>(milliseconds) * 1000.0;
  return of_start_us;
}

double CudaDevice::time_launch_us(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments,
                                  bool cold_cache) {
  check_not_recording("time a launch");
  return time_prepared_us(cold_cache, [&] { launch(kernel, geometry, arguments); });
}

double CudaDevice::time_launch_us(const Graph& graph, bool cold_cache) {
  check_not_recording("time a graph");
  return time_prepared_us(cold_cache, [&] { launch(graph); });
}

double CudaDevice::time_canary_us() {
  check_not_recording("time the canary");
  TimingAid& aid = timing();
  aid.prepare(false);
  return time_us([&] { aid.launch_canary(static_cast<unsigned>(info_.limits.sm_count)); });
}

void CudaDevice::drop_everything() noexcept {
  const DriverApi& driver = context_.driver();
  try {
    context_.make_current();
    for (const auto& [number, graph] : graphs_.live()) {
      driver.graph_exec_destroy.address(graph);
    }
    for (const auto& [number, object] : textures_.live()) {
      driver.texture_destroy.address(object);
    }
    for (const auto& [number, address] : buffers_.live()) {
      driver.free.address(address);
    }
    for (const auto& [number, module] : modules_.live()) {
      driver.module_unload.address(module);
    }
  } catch (const CudaError&) {
    // A broken context takes what it holds along when it is destroyed.
  }
  buffers_.clear();
  modules_.clear();
  graphs_.clear();
  textures_.clear();
  memory_.drop_everything();
  borrowed_.drop();
  timing_.reset();
  checksum_.reset();
  comparison_.reset();
}

void CudaDevice::reset() {
  check_not_recording("reset");
  drop_everything();
  context_.reset();
}

template <typename Handle, typename Free>
void CudaDevice::release(Registry<Handle>& registry, void* number, const Free& free) noexcept {
  if (const Handle* handle = registry.find(number)) {
    try {
      context_.make_current();
    } catch (const CudaError&) {
    }
    free.address(*handle);
    registry.erase(number);
  }
}

void CudaDevice::release_buffer(void* base) noexcept { release(buffers_, base, context_.driver().free); }

void CudaDevice::release_kernel(void* module) noexcept { release(modules_, module, context_.driver().module_unload); }

void CudaDevice::release_texture(void* handle) noexcept {
  release(textures_, handle, context_.driver().texture_destroy);
}

void CudaDevice::release_graph(void* handle) noexcept {
  release(graphs_, handle, context_.driver().graph_exec_destroy);
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(int ordinal) {
  const DriverApi& driver = DriverApi::get();
  int count = 0;
  driver(driver.device_count, &count);
  if (ordinal < 0 || ordinal >= count) {
    throw CudaError(fmt::format("there is no device cuda:{}; {}", ordinal,
                                count == 0   ? "the driver shows none (check nvidia-smi and CUDA_VISIBLE_DEVICES)"
                                : count == 1 ? "the only one is cuda:0"
                                             : fmt::format("they are cuda:0 to cuda:{}", count - 1)),
                    101);
  }
  return std::make_unique<CudaDevice>(ordinal);
}

}  // namespace pascaline
