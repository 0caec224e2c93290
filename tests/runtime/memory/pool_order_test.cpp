#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "runtime/memory/pool.hpp"
#include "tests/runtime/memory/manual_memory.hpp"

namespace pascaline::testing {
namespace {

constexpr std::size_t kBytes = 1000;

/// A user of buffers that marks its memory when its work begins, and looks for its mark later.
class Marker {
 public:
  explicit Marker(ManualMemory& memory) : memory_(memory) {}

  void mark(StreamId stream, DeviceSpan span, std::uint64_t mark) {
    memory_.enqueue(stream, [this, span, mark] {
      if (!memory_.is_allocated(span)) {
        ++faults;
        return;
      }
      std::memcpy(span.data, &mark, sizeof mark);
      std::memcpy(last_word(span), &mark, sizeof mark);
    });
  }
  void look(StreamId stream, DeviceSpan span, std::uint64_t mark) {
    memory_.enqueue(stream, [this, span, mark] {
      if (!memory_.is_allocated(span) || std::memcmp(span.data, &mark, sizeof mark) != 0 ||
          std::memcmp(last_word(span), &mark, sizeof mark) != 0) {
        ++faults;
      }
    });
  }
  int faults = 0;

 private:
  static void* last_word(DeviceSpan span) {
    return static_cast<std::byte*>(span.data) + span.bytes - sizeof(std::uint64_t);
  }
  ManualMemory& memory_;
};

/// Memory that does all work before any of it goes, as a driver does.
class WaitingMemory : public ManualMemory {
 protected:
  void release(std::uint64_t number) noexcept override {
    drain();
    ManualMemory::release(number);
  }
};

TEST(ManualMemory, ShowsWorkThatIsNotOrdered) {
  ManualMemory memory;
  Marker marker(memory);
  const Stream a = memory.make_stream();
  const Stream b = memory.make_stream();
  const RawBuffer shared = memory.allocate_raw(kBytes);
  for (const bool ordered : {true, false}) {
    marker.mark(a.id(), shared.span(), 1);
    marker.look(a.id(), shared.span(), 1);
    const Event event = memory.make_event();
    if (ordered) {
      memory.record(event, a.id());
      memory.wait(b.id(), event);
    }
    marker.mark(b.id(), shared.span(), 2);
    memory.step(a.id());
    EXPECT_EQ(memory.step(b.id()), !ordered);
    memory.drain();
    EXPECT_EQ(marker.faults, ordered ? 0 : 1);
  }
}

TEST(PoolOrder, APartOfASlabIsGivenOutAgainOnlyAfterTheWorkBefore) {
  WaitingMemory memory;
  Marker marker(memory);
  MemoryPool pool(memory);
  const Stream made = pool.make_stream();
  const Stream later = pool.make_stream();
  const RawBuffer neighbour = pool.allocate_raw(kBytes);
  for (const StreamId stream : {StreamId{}, made.id()}) {
    void* data = nullptr;
    {
      const RawBuffer buffer = pool.allocate_raw(kBytes);
      data = buffer.data();
      marker.mark(stream, buffer.span(), 1);
      marker.look(stream, buffer.span(), 1);
    }
    const RawBuffer buffer = pool.allocate_raw(kBytes);
    EXPECT_EQ(buffer.data(), data) << "the same part";
    marker.mark(later.id(), buffer.span(), 2);
    marker.look(later.id(), buffer.span(), 2);
    while (memory.step(later.id())) {
    }
    memory.drain();
    EXPECT_EQ(marker.faults, 0);
  }
}

TEST(PoolOrder, FreshMemoryNeedsNoWait) {
  bool is_done = false;  // until the memory has done its work, which it does at the latest when it goes
  ManualMemory memory;
  MemoryPool pool(memory);
  memory.enqueue({}, [&] { is_done = true; });
  std::vector<RawBuffer> buffers;
  for (int i = 0; i < 10; ++i) {
    buffers.push_back(pool.allocate_raw(kBytes));
  }
  EXPECT_FALSE(is_done);
}

// Whatever order the streams work in, nobody finds another's mark in its memory, nor memory that is gone.
TEST(PoolOrder, RandomUseOnSeveralStreamsNeverMixesBuffers) {
  struct Held {
    RawBuffer buffer;
    StreamId stream;
    std::uint64_t mark = 0;
  };
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    WaitingMemory memory;
    memory.limit_bytes = std::uint64_t{24} << 20;
    Marker marker(memory);
    MemoryPool pool(memory, std::uint64_t{20} << 20);
    std::vector<Stream> streams(2 + seed % 3);
    std::generate(streams.begin(), streams.end(), [&] { return pool.make_stream(); });
    std::vector<Held> held;
    for (int round = 0; round < 600; ++round) {
      const std::size_t action = below(20);
      const StreamId stream = below(4) == 0 ? StreamId{} : streams[below(streams.size())].id();
      if (action < 8) {
        const std::size_t sizes[] = {16 + below(600), 16 + below(40000), 16 + below(3000000)};
        try {
          held.push_back({pool.allocate_raw(sizes[below(3)]), stream, random()});
          marker.mark(stream, held.back().buffer.span(), held.back().mark);
        } catch (const OutOfMemoryError&) {
          ++refused;
        }
      } else if (action < 14 && !held.empty()) {
        std::swap(held[below(held.size())], held.back());
        marker.look(held.back().stream, held.back().buffer.span(), held.back().mark);
        held.pop_back();
      } else if (action == 16 && below(4) == 0) {
        const std::size_t gone = below(streams.size());
        for (Held& one : held) {
          one.stream = one.stream == streams[gone].id() ? StreamId{} : one.stream;
        }
        streams[gone] = pool.make_stream();  // the one before does its work first
      } else {
        for (std::size_t steps = below(12); steps > 0; --steps) {
          memory.step_any(random());
        }
      }
      ASSERT_EQ(pool.statistics().live_buffers, held.size());
      ASSERT_EQ(pool.statistics().held_bytes, memory.held_bytes);
    }
    for (const Held& one : held) {
      marker.look(one.stream, one.buffer.span(), one.mark);
    }
    memory.drain();
    ASSERT_EQ(marker.faults, 0) << "seed " << seed;
    held.clear();
    EXPECT_EQ(pool.statistics().live_bytes, 0U);
    EXPECT_LE(pool.statistics().peak_held_bytes, std::size_t{20} << 20);
    EXPECT_LE(pool.statistics().slabs, 1U);
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace pascaline::testing
