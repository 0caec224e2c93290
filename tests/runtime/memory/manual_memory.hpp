#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/device_memory.hpp"

namespace pascaline::testing {

/// Memory whose streams do their work only when the test lets them, in any order that events allow, as those of a GPU
/// may: what was not ordered goes wrong sooner or later. One thread uses it.
class ManualMemory : public DeviceMemory {
 public:
  std::uint64_t limit_bytes = std::uint64_t{1} << 30;
  std::uint64_t held_bytes = 0;
  int allocations = 0;
  int waits = 0;    ///< of streams for events
  int records = 0;  ///< of events
  bool is_recording = false;
  bool is_broken = false;  ///< every allocation fails, and not for want of memory

  ~ManualMemory() override {
    drain();
    for (const auto& [number, data] : allocated_) {
      std::free(data.first);
    }
  }

  /// Gives the stream work of the test's own.
  void enqueue(StreamId stream, std::function<void()> work) {
    queue_of(stream).push_back([work = std::move(work)] {
      work();
      return true;
    });
  }
  /// Does the stream's next work; false if there is none or it has to wait.
  bool step(StreamId stream) {
    auto& queue = queue_of(stream);
    if (queue.empty() || !queue.front()()) {
      return false;
    }
    queue.pop_front();
    return true;
  }
  /// Does one piece of work of any stream, chosen by the number; false if none can go on.
  bool step_any(std::size_t choice) {
    std::vector<StreamId> streams;
    for (const auto& [number, queue] : queues_) {
      streams.push_back({number});
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (step(streams[(choice + i) % streams.size()])) {
        return true;
      }
    }
    return false;
  }
  /// Does all work there is.
  void drain() {
    while (step_any(0)) {
    }
    for (const auto& [number, queue] : queues_) {
      EXPECT_TRUE(queue.empty()) << "stream " << number << " waits for ever";
    }
  }
  /// Whether the whole range lies in one live allocation.
  [[nodiscard]] bool is_allocated(DeviceSpan span) const {
    const auto* begin = static_cast<const std::byte*>(span.data);
    return std::any_of(allocated_.begin(), allocated_.end(), [&](const auto& entry) {
      const auto* data = static_cast<const std::byte*>(entry.second.first);
      return begin >= data && begin + span.bytes <= data + entry.second.second;
    });
  }

  [[nodiscard]] Stream make_stream() override {
    queues_[++last_];
    return Stream(MemoryHandle(this, last_));
  }
  [[nodiscard]] Event make_event() override {
    events_[++last_] = std::make_shared<bool>(true);
    return Event(MemoryHandle(this, last_));
  }
  [[nodiscard]] bool is_live(StreamId stream) const noexcept override {
    return stream == StreamId{} || queues_.count(stream.number) > 0;
  }
  void record(const Event& event, StreamId stream) override {
    ++records;
    const auto reached = std::make_shared<bool>(false);
    events_.at(event.number()) = reached;
    queue_of(stream).push_back([reached] { return *reached = true; });
  }
  void wait(StreamId stream, const Event& event) override {
    ++waits;
    queue_of(stream).push_back([reached = events_.at(event.number())] { return *reached; });
  }
  [[nodiscard]] bool is_done(const Event& event) override { return *events_.at(event.number()); }
  void synchronize(const Event& event) override {
    while (!is_done(event)) {
      ASSERT_TRUE(step_any(0)) << "an event is never reached";
    }
  }
  void synchronize(StreamId stream) override {
    while (!queue_of(stream).empty()) {
      ASSERT_TRUE(step_any(0)) << "a stream never ends";
    }
  }
  void upload(StreamId stream, DeviceSpan to, std::span<const std::byte> from) override {
    enqueue(stream, [this, to, from] {
      ASSERT_TRUE(is_allocated(to));
      std::copy(from.begin(), from.end(), static_cast<std::byte*>(to.data));
    });
  }
  void download(StreamId stream, std::span<std::byte> to, DeviceSpan from) override {
    enqueue(stream, [to, from] { std::memcpy(to.data(), from.data, to.size()); });
  }
  void copy(StreamId stream, DeviceSpan to, DeviceSpan from) override {
    enqueue(stream, [to, from] { std::memcpy(to.data, from.data, to.bytes); });
  }
  void fill(StreamId stream, DeviceSpan to, std::uint8_t byte) override {
    enqueue(stream, [to, byte] { std::memset(to.data, byte, to.bytes); });
  }
  [[nodiscard]] RawBuffer allocate_raw(std::size_t bytes) override {
    if (is_broken) {
      throw EmulatorError("the device is broken", EIO);
    }
    if (bytes > limit_bytes - held_bytes) {
      throw EmulatorError("no memory", ENOMEM);
    }
    ++allocations;
    held_bytes += bytes;
    void* data = bytes_of(bytes);
    allocated_[++last_] = {data, bytes};
    return {MemoryHandle(this, last_), {data, bytes}};
  }
  [[nodiscard]] PinnedBuffer allocate_pinned(std::size_t bytes) override {
    void* data = bytes_of(bytes);
    allocated_[++last_] = {data, 0};
    return {MemoryHandle(this, last_), {static_cast<std::byte*>(data), bytes}};
  }
  [[nodiscard]] bool can_reserve() const noexcept override { return false; }
  [[nodiscard]] GrowingBuffer reserve(std::size_t /*bytes*/) override { throw EmulatorError("no ranges here"); }
  [[nodiscard]] MemoryState state() override { return {limit_bytes - held_bytes, limit_bytes}; }
  [[nodiscard]] bool recording() const noexcept override { return is_recording; }

 protected:
  // Memory goes at once, whatever work may still use it: who frees it has to wait before.
  void release(std::uint64_t number) noexcept override {
    if (queues_.count(number) > 0) {
      synchronize(StreamId{number});
      queues_.erase(number);
    }
    events_.erase(number);
    if (const auto found = allocated_.find(number); found != allocated_.end()) {
      held_bytes -= found->second.second;
      std::free(found->second.first);
      allocated_.erase(found);
    }
  }
  [[nodiscard]] std::size_t map(std::uint64_t /*number*/, std::size_t /*bytes*/) override { return 0; }

 private:
  using Queue = std::deque<std::function<bool()>>;

  [[nodiscard]] Queue& queue_of(StreamId stream) {
    if (!is_live(stream)) {
      throw EmulatorError("no such stream");
    }
    return queues_[stream.number];
  }
  [[nodiscard]] static void* bytes_of(std::size_t bytes) {
    const std::size_t whole = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, whole);
    std::memset(data, 0xCD, whole);
    return data;
  }

  std::map<std::uint64_t, Queue> queues_{{0, Queue()}};
  std::map<std::uint64_t, std::shared_ptr<bool>> events_;  // whether it is reached, where it stands now
  std::map<std::uint64_t, std::pair<void*, std::size_t>> allocated_;
  std::uint64_t last_ = 0;
};

}  // namespace pascaline::testing
