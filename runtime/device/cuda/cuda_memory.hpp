#pragma once

#include <mutex>
#include <unordered_map>
#include <variant>

#include "runtime/device/cuda/cuda_context.hpp"
#include "runtime/device/cuda/cuda_ranges.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/recording_thread.hpp"

namespace pascaline {

/// Memory, streams and events of a CUDA context, whose own stream is the default one.
class CudaMemory final : public DeviceMemory {
 public:
  /// All three must outlive it. `context_bytes` are what the context took of the device's memory.
  CudaMemory(CudaContext& context, const RecordingThread& recorder, const DeviceInfo& info, std::uint64_t context_bytes)
      : context_(context), recorder_(recorder), info_(info), context_bytes_(context_bytes) {}

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
  [[nodiscard]] bool can_reserve() const noexcept override { return can_map_memory(context_); }
  [[nodiscard]] GrowingBuffer reserve(std::size_t bytes) override;
  [[nodiscard]] MemoryState state() override;
  [[nodiscard]] bool recording() const noexcept override { return recorder_.is_this_one(); }

  /// Frees all that it gave out, which stays harmless.
  void drop_everything() noexcept;

 protected:
  void release(std::uint64_t number) noexcept override;
  [[nodiscard]] std::size_t map(std::uint64_t number, std::size_t bytes) override;

 private:
  using Item = std::variant<CuStream, CuEvent, CuAddress, void*, CudaRange>;  // void*: page-locked memory

  const DriverApi& enter(const char* doing);
  MemoryHandle add(Item item);
  template <typename Kind>
  [[nodiscard]] Kind find(std::uint64_t number, const char* doing) const;
  template <typename Kind>
  [[nodiscard]] Kind find_locked(std::uint64_t number, const char* doing) const;
  [[nodiscard]] CuStream default_stream(const char* doing) const;
  [[nodiscard]] CuStream stream_of(StreamId stream, const char* doing) const;
  void free(const Item& item) const noexcept;

  CudaContext& context_;
  const RecordingThread& recorder_;
  const DeviceInfo& info_;
  const std::uint64_t context_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Item> live_;
  std::uint64_t last_ = 0;
};

}  // namespace pascaline
