#include <gtest/gtest.h>

#include <cstring>
#include <optional>
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

TEST(PoolOrder, TheSameStreamNeedsNeitherEventsNorWaits) {
  ManualMemory memory;
  StreamPool pool(memory);
  const Stream stream = memory.make_stream();
  void* first = nullptr;
  for (int i = 0; i < 10; ++i) {
    const PoolBuffer buffer = pool.allocate(kBytes, stream.id());
    memory.enqueue(stream.id(), [] {});
    EXPECT_TRUE(i == 0 || buffer.data() == first) << "what was freed last comes first";
    first = buffer.data();
  }
  EXPECT_EQ(memory.records, 0);
  EXPECT_EQ(memory.waits, 0);
  EXPECT_EQ(pool.statistics().hits_of(Reuse::same_stream), 9U);
  EXPECT_EQ(pool.statistics().misses, 1U);
}

TEST(PoolOrder, PrefersTheSameStreamThenUnusedThenReadyThenWaits) {
  ManualMemory memory;
  StreamPool pool(memory);
  const Stream a = memory.make_stream();
  const Stream b = memory.make_stream();
  const std::size_t big = 5 << 20;  // an allocation each, so that no unused blocks come along
  void* const on_a = pool.allocate(big, a.id()).data();
  memory.enqueue(a.id(), [] {});
  {
    const PoolBuffer busy = pool.allocate(big, b.id());
    EXPECT_EQ(busy.data(), on_a) << "b waits for a";
    EXPECT_EQ(pool.statistics().hits_of(Reuse::waited), 1U);
    EXPECT_EQ(memory.waits, 1);
  }
  memory.drain();
  {
    const PoolBuffer ready = pool.allocate(big, a.id());
    EXPECT_EQ(ready.data(), on_a);
    EXPECT_EQ(pool.statistics().hits_of(Reuse::ready), 1U) << "b's work is done";
    EXPECT_EQ(memory.waits, 1);
    memory.enqueue(a.id(), [] {});
  }
  EXPECT_EQ(pool.allocate(big, b.id()).data(), on_a);
  EXPECT_EQ(pool.statistics().hits_of(Reuse::waited), 2U) << "a's is not";
  EXPECT_EQ(pool.statistics().misses, 1U);

  std::optional<PoolBuffer> small = pool.allocate(kBytes, a.id());
  void* const small_data = small->data();
  small.reset();
  EXPECT_NE(pool.allocate(kBytes, b.id()).data(), small_data) << "an unused block of the slab comes before a's";
  EXPECT_EQ(pool.statistics().hits_of(Reuse::unused), 1U);
  EXPECT_EQ(pool.allocate(kBytes, a.id()).data(), small_data) << "and a's own before an unused one";
}

TEST(PoolOrder, BlocksFreedBeforeASecondStreamCameAreOrderedToo) {
  ManualMemory memory;
  Marker marker(memory);
  StreamPool pool(memory);
  const Stream late = memory.make_stream();
  {
    const PoolBuffer buffer = pool.allocate(3 << 20);
    marker.mark({}, buffer.span(), 1);
    marker.look({}, buffer.span(), 1);
  }
  EXPECT_EQ(memory.records, 0);
  const PoolBuffer buffer = pool.allocate(3 << 20, late.id());
  marker.mark(late.id(), buffer.span(), 2);
  EXPECT_FALSE(memory.step(late.id())) << "it waits";
  memory.drain();
  EXPECT_EQ(marker.faults, 0);
  EXPECT_EQ(pool.statistics().hits_of(Reuse::waited), 1U);
}

TEST(PoolOrder, ABufferHandedOverIsOrderedBehindItsFirstStream) {
  ManualMemory memory;
  Marker marker(memory);
  StreamPool pool(memory);
  const Stream copies = memory.make_stream();
  PoolBuffer buffer = pool.allocate(kBytes, copies.id());
  marker.mark(copies.id(), buffer.span(), 7);
  buffer.hand_to({});
  EXPECT_EQ(buffer.stream(), StreamId{});
  marker.look({}, buffer.span(), 7);
  EXPECT_FALSE(memory.step({}));
  memory.drain();
  EXPECT_EQ(marker.faults, 0);
  const int waits = memory.waits;
  buffer.hand_to({});
  EXPECT_EQ(memory.waits, waits) << "it is there already";
}

TEST(PoolOrder, TrimWaitsForTheWorkBefore) {
  ManualMemory memory;
  Marker marker(memory);
  StreamPool pool(memory);
  const Stream a = memory.make_stream();
  for (const bool with_second_stream : {false, true}) {
    if (with_second_stream) {
      (void)pool.allocate(kBytes);
    }
    {
      const PoolBuffer buffer = pool.allocate(3 << 20, a.id());
      marker.mark(a.id(), buffer.span(), 1);
    }
    EXPECT_GT(pool.trim(), 0U);
    EXPECT_EQ(memory.held_bytes, 0U);
    memory.drain();
    EXPECT_EQ(marker.faults, 0) << "no work touches memory that is gone";
  }
}

TEST(PoolOrder, BlocksOfAStreamThatIsGoneServeEveryone) {
  ManualMemory memory;
  StreamPool pool(memory);
  Stream a = memory.make_stream();
  const Stream b = memory.make_stream();
  PoolBuffer outlives = pool.allocate(3 << 20, a.id());
  PoolBuffer before = pool.allocate(5 << 20, a.id());
  memory.enqueue(a.id(), [] {});
  before = PoolBuffer();
  a = Stream();  // does its work first
  outlives = PoolBuffer();
  const PoolBuffer one = pool.allocate(3 << 20, b.id());
  const PoolBuffer two = pool.allocate(5 << 20, b.id());
  EXPECT_EQ(pool.statistics().misses, 2U);
  EXPECT_EQ(pool.statistics().hits_of(Reuse::unused), 1U);
  EXPECT_EQ(pool.statistics().hits_of(Reuse::ready), 1U);
  EXPECT_EQ(memory.waits, 0);
  PoolBuffer lost = pool.allocate(1, b.id());
  {
    const Stream brief = memory.make_stream();
    lost.hand_to(brief.id());
  }
  lost.hand_to(b.id());
  EXPECT_EQ(lost.stream(), b.id());
}

// Whatever order the streams work in, nobody finds another's mark in its memory, nor memory that is gone.
TEST(PoolOrder, RandomUseOnSeveralStreamsNeverMixesBuffers) {
  struct Held {
    PoolBuffer buffer;
    std::uint64_t mark = 0;
  };
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    ManualMemory memory;
    memory.limit_bytes = std::uint64_t{24} << 20;
    Marker marker(memory);
    StreamPool pool(memory, {std::size_t{20} << 20});
    std::vector<Stream> streams(2 + seed % 3);
    std::generate(streams.begin(), streams.end(), [&] { return memory.make_stream(); });
    std::vector<Held> held;
    std::uint64_t refused = 0;
    for (int round = 0; round < 600; ++round) {
      const std::size_t action = below(20);
      const StreamId stream = below(4) == 0 ? StreamId{} : streams[below(streams.size())].id();
      if (action < 8) {
        const std::size_t sizes[] = {16 + below(600), 16 + below(40000), 16 + below(3000000)};
        try {
          held.push_back({pool.allocate(sizes[below(3)], stream), random()});
          marker.mark(stream, held.back().buffer.span(), held.back().mark);
        } catch (const OutOfMemoryError&) {
          ++refused;
        }
      } else if (action < 14 && !held.empty()) {
        const std::size_t i = below(held.size());
        marker.look(held[i].buffer.stream(), held[i].buffer.span(), held[i].mark);
        std::swap(held[i], held.back());
        held.pop_back();
      } else if (action == 14 && !held.empty()) {
        held[below(held.size())].buffer.hand_to(stream);
      } else if (action == 15 && below(4) == 0) {
        (void)pool.trim(below(10) << 20);
      } else if (action == 16 && below(4) == 0) {
        const std::size_t gone = below(streams.size());
        for (Held& one : held) {
          if (one.buffer.stream() == streams[gone].id()) {
            one.buffer.hand_to({});
          }
        }
        streams[gone] = memory.make_stream();
      } else {
        for (std::size_t steps = below(12); steps > 0; --steps) {
          memory.step_any(random());
        }
      }
      ASSERT_EQ(pool.statistics().live_buffers, held.size());
      ASSERT_EQ(pool.statistics().held_bytes, memory.held_bytes);
    }
    for (const Held& one : held) {
      marker.look(one.buffer.stream(), one.buffer.span(), one.mark);
    }
    memory.drain();
    ASSERT_EQ(marker.faults, 0) << "seed " << seed;
    held.clear();
    const PoolStatistics statistics = pool.statistics();
    EXPECT_EQ(statistics.live_bytes, 0U);
    EXPECT_EQ(statistics.live_block_bytes, 0U);
    EXPECT_GT(statistics.hits_of(Reuse::waited), 0U);
    EXPECT_LE(statistics.peak_held_bytes, std::size_t{20} << 20);
    (void)pool.trim();
    EXPECT_EQ(memory.held_bytes, 0U);
  }
}

}  // namespace
}  // namespace pascaline::testing
