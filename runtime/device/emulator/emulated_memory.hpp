#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "runtime/device/device_memory.hpp"
#include "runtime/device/emulator/emulated_state.hpp"

namespace pascaline {

/// The host's memory as that of a device: all work is done when it is given, so events are reached when recorded.
/// Streams and events are kept account of none the less, and misuse is refused as a GPU's driver would refuse it.
class EmulatedMemory final : public DeviceMemory {
 public:
  /// Gives out `limit_bytes` at most, page-locked memory apart. `state` must outlive it.
  EmulatedMemory(const EmulatedState& state, std::uint64_t limit_bytes) : state_(state), limit_bytes_(limit_bytes) {}
  ~EmulatedMemory() override { drop_everything(); }

  [[nodiscard]] Stream make_stream() override;
  [[nodiscard]] Event make_event() override;
  [[nodiscard]] bool is_live(StreamId stream) const noexcept override;
  void record(const Event& event, StreamId stream) override;
  void wait(StreamId stream, const Event& event) override;
  [[nodiscard]] bool is_done(const Event& event) override;
  void synchronize(const Event& event) override;
  void synchronize(StreamId stream) override;
  void upload(StreamId stream, DeviceSpan to, std::span<const std::byte> from) override;
  void download(StreamId stream, std::span<std::byte> to, DeviceSpan from) override;
  void copy(StreamId stream, DeviceSpan to, DeviceSpan from) override;
  void fill(StreamId stream, DeviceSpan to, std::uint8_t byte) override;
  [[nodiscard]] RawBuffer allocate_raw(std::size_t bytes) override;
  [[nodiscard]] PinnedBuffer allocate_pinned(std::size_t bytes) override;
  [[nodiscard]] bool can_reserve() const noexcept override { return true; }
  [[nodiscard]] GrowingBuffer reserve(std::size_t bytes) override;
  /// What is left of the limit, or of the machine's memory if that is less.
  [[nodiscard]] MemoryState state() override;
  [[nodiscard]] bool recording() const noexcept override { return state_.recorder().is_this_one(); }

  /// Frees all that it gave out, which stays harmless.
  void drop_everything() noexcept;

 protected:
  void release(std::uint64_t number) noexcept override;
  [[nodiscard]] std::size_t map(std::uint64_t number, std::size_t bytes) override;

 private:
  enum class Kind { stream, event, device_bytes, pinned, range };
  struct Item {
    Kind kind = Kind::stream;
    void* data = nullptr;
    std::size_t bytes = 0;       // of a range: reserved
    std::size_t held_bytes = 0;  // that count against the limit
  };

  void enter(const char* doing) const;
  [[nodiscard]] MemoryHandle add(const Item& item);
  void require(std::uint64_t number, Kind kind, const char* doing) const;
  void require(StreamId stream, const char* doing) const;
  void take(std::size_t bytes);
  void give(const Item& item) noexcept;

  const EmulatedState& state_;
  const std::uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Item> live_;
  std::uint64_t last_ = 0;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace pascaline
