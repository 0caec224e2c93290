#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// Addresses with no memory behind them, as many as are asked for: what is written there is lost, and zeros are read.
/// For following what a program asks of a device without one, however large its buffers are; nothing may dereference
/// the addresses. Page-locked memory is the host's and real.
class UnbackedMemory final : public DeviceMemory {
 public:
  [[nodiscard]] Stream make_stream() override { return Stream(next_handle()); }
  [[nodiscard]] Event make_event() override { return Event(next_handle()); }
  [[nodiscard]] bool is_live(StreamId /*stream*/) const noexcept override { return true; }
  void record(const Event& /*event*/, StreamId /*stream*/) override {}
  void wait(StreamId /*stream*/, const Event& /*event*/) override {}
  [[nodiscard]] bool is_done(const Event& /*event*/) override { return true; }
  void synchronize(const Event& /*event*/) override {}
  void synchronize(StreamId /*stream*/) override {}

  void upload(StreamId stream, DeviceSpan to, std::span<const std::byte> from) override;
  void download(StreamId stream, std::span<std::byte> to, DeviceSpan from) override;
  void copy(StreamId stream, DeviceSpan to, DeviceSpan from) override;
  void fill(StreamId /*stream*/, DeviceSpan /*to*/, std::uint8_t /*byte*/) override {}

  [[nodiscard]] RawBuffer allocate_raw(std::size_t bytes) override;
  [[nodiscard]] PinnedBuffer allocate_pinned(std::size_t bytes) override;
  [[nodiscard]] bool can_reserve() const noexcept override { return true; }
  [[nodiscard]] GrowingBuffer reserve(std::size_t bytes) override;
  [[nodiscard]] MemoryState state() override { return {kBytes, kBytes}; }
  [[nodiscard]] bool recording() const noexcept override { return false; }

 protected:
  void release(std::uint64_t number) noexcept override;
  [[nodiscard]] std::size_t map(std::uint64_t /*number*/, std::size_t bytes) override { return rounded(bytes); }

 private:
  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 46;
  static constexpr std::size_t kPageBytes = std::size_t{64} << 10;

  [[nodiscard]] static std::size_t rounded(std::size_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  [[nodiscard]] MemoryHandle next_handle() { return {this, ++last_}; }
  [[nodiscard]] DeviceSpan next_span(std::size_t bytes);

  std::atomic<std::uint64_t> last_{0};
  std::atomic<std::uint64_t> next_address_{kBytes};
  std::mutex mutex_;
  std::map<std::uint64_t, std::vector<std::byte>> pinned_;  // by number
};

}  // namespace pascaline
