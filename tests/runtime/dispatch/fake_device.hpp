#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"

namespace pascaline::testing {

/// A device of plain memory whose launches do nothing but count; loads anything.
class FakeDevice : public Device {
 public:
  int launches = 0;
  int allocations = 0;
  int loads = 0;
  int loads_to_refuse = 0;            ///< the next ones throw
  int allocations_to_refuse = 0;      ///< the next ones throw for want of memory
  bool is_recording = false;          ///< what `recording` says
  Geometry last_geometry;             ///< of the last launch
  std::vector<void*> last_arguments;  ///< what the addresses of the last launch pointed to, as pointers

  FakeDevice() {
    info_.id = "emulator";
    info_.name = "a processor";
    info_.architecture = "host";
    info_.memory_bytes = std::uint64_t{1} << 30;
    info_.limits.sm_count = 4;
    last_arguments.reserve(64);
  }
  [[nodiscard]] const DeviceInfo& info() const noexcept override { return info_; }
  [[nodiscard]] DeviceMemory& memory() noexcept override { return memory_; }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    if (allocations_to_refuse > 0) {
      --allocations_to_refuse;
      throw EmulatorError("no memory for a buffer", ENOMEM);
    }
    ++allocations;
    void* data = std::aligned_alloc(256, (bytes / 256 + 1) * 256);
    std::memset(data, 0x5A, bytes);
    return {this, data, data, bytes};
  }
  void upload(const Buffer& to, std::span<const std::byte> from) override {
    std::memcpy(to.data(), from.data(), from.size());
  }
  void download(std::span<std::byte> to, const Buffer& from) override {
    std::memcpy(to.data(), from.data(), to.size());
  }
  void fill(const Buffer& buffer, std::uint8_t byte) override { std::memset(buffer.data(), byte, buffer.bytes()); }
  [[nodiscard]] bool guards_intact(const Buffer&) override { return true; }
  [[nodiscard]] std::uint64_t checksum(const Buffer&) override { return 0; }
  [[nodiscard]] std::optional<ElementComparison> compare(const Buffer&, ElementType, const Buffer&,
                                                         const ElementLimits&) override {
    return std::nullopt;
  }
  [[nodiscard]] Kernel load(const Binary&) override {
    if (loads_to_refuse > 0) {
      --loads_to_refuse;
      throw EmulatorError("no room for code");
    }
    ++loads;
    return {this, this, this, {}};
  }
  void launch(const Kernel&, const Geometry& geometry, std::span<void* const> arguments) override {
    ++launches;
    last_geometry = geometry;
    last_arguments.clear();
    for (const void* argument : arguments) {
      void* value = nullptr;
      std::memcpy(&value, argument, sizeof value);
      last_arguments.push_back(value);
    }
  }
  [[nodiscard]] Graph record(const std::function<void()>& work) override {
    is_recording = true;
    work();
    is_recording = false;
    return {};
  }
  bool update(Graph& graph, const std::function<void()>& work) override {
    graph = record(work);
    return false;
  }
  [[nodiscard]] bool recording() const noexcept override { return is_recording; }
  void launch(const Graph&) override {}
  void synchronize() override {}
  [[nodiscard]] double time_launch_us(const Kernel&, const Geometry&, std::span<void* const>, bool) override {
    return 1;
  }
  [[nodiscard]] double time_launch_us(const Graph&, bool) override { return 1; }
  [[nodiscard]] double time_canary_us() override { return 1; }
  [[nodiscard]] Sensors read_sensors() noexcept override { return {}; }
  void reset() override {}

 protected:
  void release_buffer(void* base) noexcept override { std::free(base); }
  void release_kernel(void*) noexcept override {}
  void release_graph(void*) noexcept override {}

 private:
  DeviceInfo info_;
  EmulatedState state_;
  EmulatedMemory memory_{state_, std::uint64_t{1} << 30};
};

}  // namespace pascaline::testing
