#include "runtime/device/emulator/emulated_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "runtime/device/emulator/emulated_device_info.hpp"
#include "runtime/device/emulator/emulated_graph.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "runtime/device/emulator/emulated_module.hpp"
#include "runtime/device/emulator/emulated_state.hpp"
#include "runtime/device/emulator/grid_runner.hpp"
#include "runtime/device/emulator/guarded_memory.hpp"

namespace pascaline {
namespace {

std::string extent_text(const std::array<std::uint32_t, 3>& extent) {
  return fmt::format("({},{},{})", extent[0], extent[1], extent[2]);
}

// Why a GPU would refuse the launch, or nothing.
std::optional<std::string> refusal(const DeviceLimits& limits, const Geometry& geometry, int static_shared_bytes) {
  const auto [x, y, z] = geometry.block;
  const std::uint64_t threads = std::uint64_t{x} * y * z;
  if (threads == 0) {
    return fmt::format("block {} has no threads", extent_text(geometry.block));
  }
  if (std::max({x, y, z}) > 1024 || z > 64 || threads > static_cast<std::uint64_t>(limits.max_threads_per_block)) {
    return fmt::format("block {} has more than {} threads or an extent beyond (1024,1024,64)",
                       extent_text(geometry.block), limits.max_threads_per_block);
  }
  const std::array<std::int64_t, 3> most{limits.max_grid_x, limits.max_grid_y, limits.max_grid_z};
  for (std::size_t i = 0; i < most.size(); ++i) {
    if (geometry.grid[i] == 0 || geometry.grid[i] > most[i]) {
      return fmt::format("grid {} is empty or larger than ({},{},{})", extent_text(geometry.grid), most[0], most[1],
                         most[2]);
    }
  }
  const std::int64_t shared = std::int64_t{geometry.shared_bytes} + static_shared_bytes;
  if (shared > limits.max_shared_bytes_per_block) {
    return fmt::format("{} bytes of shared memory ({} of them static); a block may have {}", shared,
                       static_shared_bytes, limits.max_shared_bytes_per_block);
  }
  return std::nullopt;
}

pascaline_host::Texel texel_of(ElementType type) {
  using pascaline_host::Texel;
  switch (type) {
    case ElementType::int8:
      return Texel::int8;
    case ElementType::uint8:
      return Texel::uint8;
    case ElementType::int16:
      return Texel::int16;
    case ElementType::uint16:
      return Texel::uint16;
    case ElementType::int32:
      return Texel::int32;
    case ElementType::uint32:
      return Texel::uint32;
    case ElementType::float16:
      return Texel::float16;
    case ElementType::float32:
      return Texel::float32;
    default:
      throw EmulatorError(fmt::format(
          "a texture cannot have elements of {}: use float32, float16 or integers of up to 32 bits", name_of(type)));
  }
}

std::unique_ptr<pascaline_host::TextureView> texture_view(DeviceSpan memory, const TextureLayout& layout) {
  return std::make_unique<pascaline_host::TextureView>(pascaline_host::TextureView{
      .texels = static_cast<const char*>(memory.data),
      .width = static_cast<long long>(layout.width),
      .height = static_cast<long long>(layout.height),
      .texel = texel_of(layout.type),
      .channels = layout.channels,
      .interpolates = layout.use.interpolates,
      .zero_outside = layout.use.zero_outside,
      .unit_coordinates = layout.use.unit_coordinates,
      .unit_values = layout.use.unit_values,
  });
}

// A chain of dependent multiplications and additions, about 200 us at 3 GHz.
double time_arithmetic_us() {
  using Clock = std::chrono::steady_clock;
  constexpr int kSteps = 75'000;
  static volatile double seed = 1.0;  // what the compiler cannot foresee it cannot compute beforehand
  const Clock::time_point begin = Clock::now();
  double value = seed;
  for (int step = 0; step < kSteps; ++step) {
    value = value * 0.5 + 1.0;
  }
  seed = value;
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// The processor as a device. Launches run to their end at once; their failure is kept for `synchronize`.
class EmulatedDevice final : public Device {
 public:
  EmulatedDevice()
      : info_(emulated_device_info()),
        memory_(state_, info_.memory_bytes),
        runner_(static_cast<unsigned>(info_.limits.sm_count)) {}

  [[nodiscard]] const DeviceInfo& info() const noexcept override { return info_; }

  [[nodiscard]] DeviceMemory& memory() noexcept override { return memory_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    state_.check_usable("allocate memory");
    state_.check_not_recording("allocate memory");
    const std::size_t whole = guarded_bytes(bytes);
    void* base = whole == 0 || whole > info_.memory_bytes ? nullptr : std::aligned_alloc(kDataAlignment, whole);
    if (base == nullptr) {
      throw EmulatorError(
          fmt::format("no memory for a buffer of {} bytes on the emulated device; use a smaller problem", bytes),
          ENOMEM);
    }
    lay_guards(base, bytes);
    return Buffer(this, base, static_cast<char*>(base) + kGuardBytes, bytes);
  }

  void upload(const Buffer& to, std::span<const std::byte> from) override {
    state_.check_usable("upload");
    state_.check_not_recording("upload");
    check_size("upload", from.size(), to);
    if (!from.empty()) {
      std::memcpy(to.data(), from.data(), from.size());
    }
  }

  void download(std::span<std::byte> to, const Buffer& from) override {
    state_.check_not_recording("download");
    synchronize();
    check_size("download", to.size(), from);
    if (!to.empty()) {
      std::memcpy(to.data(), from.data(), to.size());
    }
  }

  void fill(const Buffer& buffer, std::uint8_t byte) override {
    state_.check_usable("fill");
    const auto step = [data = buffer.data(), bytes = buffer.bytes(), byte] { std::memset(data, byte, bytes); };
    if (recording_ == nullptr) {
      step();
    } else {
      recording_->push_back({EmulatedStep::Kind::fill, step});
    }
  }

  [[nodiscard]] std::uint64_t checksum(const Buffer& buffer) override {
    state_.check_not_recording("sum up a buffer");
    synchronize();
    return checksum_of({static_cast<const std::byte*>(buffer.data()), buffer.bytes()});
  }
  [[nodiscard]] bool guards_intact(const Buffer& buffer) override {
    state_.check_not_recording("check guards");
    synchronize();
    return check_guards(buffer.base(), buffer.bytes());
  }

  [[nodiscard]] std::optional<DeviceSpan> variable(const Kernel& kernel, const std::string& name) override {
    return static_cast<const EmulatedModule*>(kernel.module())->variable(linker_name(name));
  }
  [[nodiscard]] Kernel load(const Binary& binary) override {
    state_.check_usable("load a kernel");
    state_.check_not_recording("load a kernel");
    if (binary.kind != BinaryKind::host_object) {
      throw EmulatorError(
          fmt::format("kernel {} was compiled for {}, not for the emulated device", binary.function, binary.target));
    }
    auto module = std::make_unique<EmulatedModule>(binary.code, binary.function);
    const void* entry = &module->entry();
    return Kernel(this, module.release(), const_cast<void*>(entry), binary.resources);
  }

  [[nodiscard]] Texture make_texture(DeviceSpan memory, const TextureLayout& layout) override {
    state_.check_not_recording("make a texture");
    auto* view = texture_view(memory, layout).release();
    return {this, view, reinterpret_cast<std::uint64_t>(view)};
  }

  void launch(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments) override {
    state_.check_usable("launch");
    const auto& module = *static_cast<const EmulatedModule*>(kernel.module());
    if (const auto why = refusal(info_.limits, geometry, kernel.resources().static_shared_bytes)) {
      throw EmulatorError(fmt::format("launch of {} refused: {}", module.function(), *why));
    }
    if (arguments.size() != module.entry().argument_count) {
      throw EmulatorError(fmt::format("launch of {} refused: it takes {} arguments, {} were given", module.function(),
                                      module.entry().argument_count, arguments.size()));
    }
    if (recording_ == nullptr) {
      run(module, geometry, arguments);
      return;
    }
    recording_->push_back(
        {EmulatedStep::Kind::launch,
         [this, &module, geometry, kept = KeptArguments(arguments, module.entry().argument_bytes)]() mutable {
           run(module, geometry, kept.pointers());
         }});
  }

  [[nodiscard]] Graph record(const std::function<void()>& work) override {
    state_.check_usable("record");
    state_.check_not_recording("record");
    return {this, std::make_unique<EmulatedGraph>(recorded(work)).release()};
  }
  bool update(Graph& graph, const std::function<void()>& work) override {
    state_.check_usable("update a graph");
    state_.check_not_recording("update a graph");
    auto steps = std::make_unique<EmulatedGraph>(recorded(work));
    auto* held = static_cast<EmulatedGraph*>(graph.handle());
    if (held != nullptr && same_form(*held, *steps)) {
      held->swap(*steps);
      return true;
    }
    graph = Graph(this, steps.release());
    return false;
  }
  [[nodiscard]] bool recording() const noexcept override { return recording_ != nullptr; }

  void launch(const Graph& graph) override {
    state_.check_usable("launch a graph");
    state_.check_not_recording("launch a graph");
    if (graph.handle() == nullptr) {
      throw EmulatorError("cannot launch an empty graph");
    }
    for (const EmulatedStep& step : *static_cast<const EmulatedGraph*>(graph.handle())) {
      if (!state_.failure()) {
        step.run();
      }
    }
  }

  void synchronize() override {
    state_.check_not_recording("wait");
    if (const auto why = state_.failure()) {
      throw EmulatorError(*why);
    }
  }

  [[nodiscard]] double time_launch_us(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments,
                                      bool cold_cache) override {
    state_.check_not_recording("time a launch");
    return time_us(cold_cache, [&] { launch(kernel, geometry, arguments); });
  }

  [[nodiscard]] double time_launch_us(const Graph& graph, bool cold_cache) override {
    state_.check_not_recording("time a graph");
    return time_us(cold_cache, [&] { launch(graph); });
  }

  [[nodiscard]] double evict_us() const noexcept override { return evict_us_; }

  [[nodiscard]] double time_canary_us() override {
    state_.check_usable("time the canary");
    state_.check_not_recording("time the canary");
    return time_arithmetic_us();
  }

  [[nodiscard]] Sensors read_sensors() noexcept override { return read_host_sensors(); }

  void reset() override {
    state_.check_not_recording("reset");
    state_.clear();
    memory_.drop_everything();
  }

 protected:
  void release_buffer(void* base) noexcept override { std::free(base); }
  void release_kernel(void* module) noexcept override { delete static_cast<EmulatedModule*>(module); }
  void release_texture(void* handle) noexcept override { delete static_cast<pascaline_host::TextureView*>(handle); }
  void release_graph(void* handle) noexcept override { delete static_cast<EmulatedGraph*>(handle); }

 private:
  template <typename Start>
  double time_us(bool cold_cache, const Start& start) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point before = Clock::now();
    if (cold_cache) {
      evict_caches();
    }
    const Clock::time_point begin = Clock::now();
    evict_us_ = std::chrono::duration<double, std::micro>(begin - before).count();
    start();
    const Clock::time_point end = Clock::now();
    synchronize();
    return std::chrono::duration<double, std::micro>(end - begin).count();
  }

  void run(const EmulatedModule& module, const Geometry& geometry, std::span<void* const> arguments) {
    if (auto failure = runner_.run({&module.entry(), module.shared(), geometry, arguments})) {
      state_.fail(fmt::format("kernel {} failed on the emulated device: {}", module.function(), *failure));
    }
  }

  [[nodiscard]] EmulatedGraph recorded(const std::function<void()>& work) {
    EmulatedGraph steps;
    const RecordingThread::Mark mark(state_.recorder());
    recording_ = &steps;
    try {
      work();
    } catch (...) {
      recording_ = nullptr;
      throw;
    }
    recording_ = nullptr;
    return steps;
  }

  static void check_size(const char* doing, std::size_t bytes, const Buffer& buffer) {
    if (bytes > buffer.bytes()) {
      throw EmulatorError(fmt::format("cannot {} {} bytes: the buffer has {}", doing, bytes, buffer.bytes()));
    }
  }

  // Roughly: reads twice the last level's size, at most 64 MiB. As on a GPU nothing is written, so that what is timed
  // does not pay for writing it back.
  void evict_caches() {
    constexpr std::size_t kMax = std::size_t{64} << 20;
    eviction_.resize(std::min(kMax, 2 * static_cast<std::size_t>(info_.limits.l2_bytes)));
    const volatile char* data = eviction_.data();  // volatile: the compiler may not leave the reads out
    for (std::size_t i = 0; i < eviction_.size(); i += 64) {
      [[maybe_unused]] const char read = data[i];
    }
  }

  DeviceInfo info_;
  EmulatedState state_;
  EmulatedMemory memory_;
  GridRunner runner_;
  EmulatedGraph* recording_ = nullptr;
  std::vector<char> eviction_;
  double evict_us_ = 0;
};

}  // namespace

std::unique_ptr<Device> open_emulated_device() { return std::make_unique<EmulatedDevice>(); }

}  // namespace pascaline
