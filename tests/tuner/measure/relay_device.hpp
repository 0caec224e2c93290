#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/util/hash.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::testing {

/// The emulated device with a notebook: what was uploaded, how often it was reset; on demand with made-up times.
class RelayDevice : public Device {
 public:
  std::vector<std::string> uploads;  ///< hashes
  int launches = 0;                  ///< without the timed ones
  int timed = 0;                     ///< timed launches
  int resets = 0;
  int canaries = 0;                    ///< timed ones
  std::function<double(int)> time_us;  ///< of the timed launch of that number; empty: the true one
  double evict_time_us = 0;            ///< what evicting is said to take
  std::function<double()> canary_us;   ///< empty: 100
  std::function<Sensors()> sensors;    ///< empty: 61 degrees and nothing else
  std::function<void()> on_launch;     ///< beside each launch that is not timed
  std::function<void()> on_synchronize;
  std::function<void()> on_allocate;  ///< before each allocation
  std::vector<std::span<std::byte>> allocated;
  bool comparing = false;      ///< whether it compares elements
  std::vector<double> errors;  ///< that it found

  RelayDevice() : host_(open_device("emulator")) {}
  [[nodiscard]] const DeviceInfo& info() const noexcept override { return host_->info(); }
  [[nodiscard]] DeviceMemory& memory() noexcept override { return host_->memory(); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    if (on_allocate) {
      on_allocate();
    }
    Buffer buffer = host_->allocate(bytes);
    allocated.emplace_back(static_cast<std::byte*>(buffer.data()), bytes);
    return buffer;
  }
  void upload(const Buffer& to, std::span<const std::byte> from) override {
    uploads.push_back(hash_hex({reinterpret_cast<const char*>(from.data()), from.size()}));
    host_->upload(to, from);
  }
  void download(std::span<std::byte> to, const Buffer& from) override { host_->download(to, from); }
  void fill(const Buffer& buffer, std::uint8_t byte) override { host_->fill(buffer, byte); }
  [[nodiscard]] bool guards_intact(const Buffer& buffer) override { return host_->guards_intact(buffer); }
  [[nodiscard]] std::uint64_t checksum(const Buffer& buffer) override { return host_->checksum(buffer); }
  [[nodiscard]] bool compares(ElementType type) const noexcept override {
    return comparing && type == ElementType::float32;
  }
  [[nodiscard]] double largest_error(const Buffer& values, ElementType type, const Buffer& expected,
                                     const ElementLimits& limits) override {
    if (!compares(type)) {
      return host_->largest_error(values, type, expected, limits);
    }
    double largest = 0;
    for (std::size_t i = 0; i < values.bytes() / sizeof(float); ++i) {
      const double value = static_cast<const float*>(values.data())[i];
      const double right = static_cast<const double*>(expected.data())[i];
      const double size = std::abs(right);
      const double far = std::abs(value - right);
      const bool within = far <= limits.largest_distance(size, std::max(std::abs(value), size));
      largest = std::max(largest, within ? far / (size + limits.unit) : std::numeric_limits<double>::infinity());
    }
    errors.push_back(largest);
    return largest;
  }
  [[nodiscard]] Kernel load(const Binary& binary) override { return host_->load(binary); }
  void launch(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments) override {
    ++launches;
    if (on_launch) {
      on_launch();
    }
    host_->launch(kernel, geometry, arguments);
  }
  [[nodiscard]] Graph record(const std::function<void()>& work) override { return host_->record(work); }
  bool update(Graph& graph, const std::function<void()>& work) override { return host_->update(graph, work); }
  [[nodiscard]] bool recording() const noexcept override { return host_->recording(); }
  void launch(const Graph& graph) override { host_->launch(graph); }
  void synchronize() override {
    host_->synchronize();
    if (on_synchronize) {
      on_synchronize();
    }
  }
  [[nodiscard]] double time_launch_us(const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments,
                                      bool cold) override {
    ++timed;
    return time_us ? time_us(timed) : host_->time_launch_us(kernel, geometry, arguments, cold);
  }
  [[nodiscard]] double time_launch_us(const Graph& graph, bool cold) override {
    ++timed;
    return time_us ? time_us(timed) : host_->time_launch_us(graph, cold);
  }
  [[nodiscard]] double evict_us() const noexcept override { return evict_time_us; }
  [[nodiscard]] double time_canary_us() override {
    ++canaries;
    return canary_us ? canary_us() : 100.0;
  }
  [[nodiscard]] Sensors read_sensors() noexcept override {
    if (sensors) {
      return sensors();
    }
    Sensors fixed;
    fixed.temperature_c = 61;
    return fixed;
  }
  void reset() override {
    ++resets;
    host_->reset();
  }

 protected:
  void release_buffer(void* /*base*/) noexcept override {}  // the emulated device made them and frees them
  void release_kernel(void* /*module*/) noexcept override {}
  void release_graph(void* /*handle*/) noexcept override {}

 private:
  std::unique_ptr<Device> host_;
};

}  // namespace pascaline::testing
