#include "runtime/memory/arena.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"

namespace pascaline::testing {
namespace {

constexpr int kFirst = std::numeric_limits<int>::min();
constexpr int kLast = std::numeric_limits<int>::max();

std::string arena_refusal(const std::vector<ArenaTensor>& tensors, std::size_t alignment = 256) {
  try {
    (void)lay_out_arena(tensors, alignment);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ArenaLayout, TensorsOfOtherStepsShareMemory) {
  // A chain in which each tensor is made from the one before: two live at a time.
  const std::vector<ArenaTensor> chain{
      {"a", 1024, 0, 1}, {"b", 4096, 1, 2}, {"c", 1024, 2, 3}, {"d", 4096, 3, 4}, {"e", 256, 4, 5}};
  const ArenaLayout plan = lay_out_arena(chain);
  EXPECT_EQ(plan.lower_bound_bytes, 5120U);
  EXPECT_EQ(plan.total_bytes, 5120U);
  EXPECT_EQ(plan.offsets[1], plan.offsets[3]);
  EXPECT_EQ(flaw_of(plan, chain), std::nullopt);
}

TEST(ArenaLayout, TakesTheSmallestGapThatFits) {
  // Below "top" lie gaps of 3072 and of 1024 bytes when the last comes, in that order.
  const std::vector<ArenaTensor> tensors{{"floor", 8192, 0, 9},  {"early", 3072, 0, 4}, {"shelf", 2048, 0, 9},
                                         {"early2", 1024, 0, 4}, {"top", 768, 0, 9},    {"late", 512, 5, 9}};
  const ArenaLayout plan = lay_out_arena(tensors);
  EXPECT_EQ(plan.offsets[1], 8192U);
  EXPECT_EQ(plan.offsets[2], 8192U + 3072);
  EXPECT_EQ(plan.offsets[3], 8192U + 3072 + 2048);
  EXPECT_EQ(plan.offsets[5], plan.offsets[3]) << "the gap of 1024 bytes, not that of 3072";
  EXPECT_EQ(plan.total_bytes, plan.lower_bound_bytes);
  EXPECT_EQ(flaw_of(plan, tensors), std::nullopt);
}

TEST(ArenaLayout, EdgesOfStepsSizesAndAlignments) {
  EXPECT_EQ(lay_out_arena({}).total_bytes, 0U);
  const std::vector<ArenaTensor> edges{
      {"all", 1, kFirst, kLast}, {"first", 1000, kFirst, kFirst}, {"last", 1000, kLast, kLast}, {"none", 0, 0, 0}};
  const ArenaLayout plan = lay_out_arena(edges);
  EXPECT_EQ(plan.total_bytes, 1024U + 256);
  EXPECT_EQ(plan.lower_bound_bytes, 1024U + 256);
  EXPECT_EQ(flaw_of(plan, edges), std::nullopt);
  EXPECT_EQ(lay_out_arena(edges, 1).total_bytes, 1001U);
  const std::vector<ArenaTensor> touching{{"a", 256, 0, 3}, {"b", 256, 3, 5}, {"c", 256, 4, 6}};
  EXPECT_EQ(lay_out_arena(touching).total_bytes, 512U) << "both ends of a lifetime count";

  EXPECT_NE(arena_refusal({{"x", 1, 3, 2}}).find("'x' is needed from step 3 to step 2"), std::string::npos);
  EXPECT_NE(arena_refusal({{"x", std::size_t{1} << 62, 0, 0}, {"y", 1, 1, 1}}).find("'y'"), std::string::npos);
  EXPECT_NE(arena_refusal({{"x", ~std::size_t{0}, 0, 0}}).find("'x'"), std::string::npos);
  EXPECT_NE(arena_refusal({}, 3).find("power of two"), std::string::npos);
  EXPECT_NE(arena_refusal({}, 0).find("power of two"), std::string::npos);
}

TEST(ArenaLayout, TheVerifierFindsEveryKindOfFlaw) {
  const std::vector<ArenaTensor> tensors{{"a", 512, 0, 2}, {"b", 512, 2, 4}, {"c", 512, 3, 5}};
  const ArenaLayout good = lay_out_arena(tensors);
  ASSERT_EQ(flaw_of(good, tensors), std::nullopt);
  const auto flaw = [&](const std::vector<std::size_t>& offsets, std::size_t total) {
    return flaw_of({offsets, total, 0}, tensors).value_or("none");
  };
  EXPECT_EQ(flaw({0, 512, 0}, 1024), "none");
  EXPECT_NE(flaw({0, 512}, 1024).find("2 offsets for 3"), std::string::npos);
  EXPECT_NE(flaw({0, 511, 0}, 2048).find("'b' is at 511"), std::string::npos);
  EXPECT_NE(flaw({0, 512, 0}, 1023).find("'b' of 512 bytes at 512 ends"), std::string::npos);
  EXPECT_NE(flaw({0, 512, std::size_t{1} << 63}, 1024).find("'c'"), std::string::npos);
  EXPECT_NE(flaw({0, 256, 1024}, 2048).find("'a' and 'b'"), std::string::npos) << "at step 2";
  EXPECT_NE(flaw({512, 0, 256}, 2048).find("'b' and 'c'"), std::string::npos);
}

// Checked apart from the verifier, by painting the bytes of every step.
TEST(ArenaLayout, RandomPlansNeverOverlapAndStayNearTheBound) {
  double worst = 1;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const int steps = 1 + static_cast<int>(random() % 40);
    std::vector<ArenaTensor> tensors(random() % 60);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const int first = static_cast<int>(random() % static_cast<std::uint64_t>(steps));
      const int lasts = static_cast<int>(random() % 8);
      tensors[i] = {"t", random() % 20 == 0 ? 0 : 1 + random() % 900, first, std::min(steps - 1, first + lasts)};
      sum += (tensors[i].bytes + 15) / 16 * 16;
    }
    const ArenaLayout plan = lay_out_arena(tensors, 16);
    ASSERT_EQ(flaw_of(plan, tensors, 16), std::nullopt) << seed;
    ASSERT_GE(plan.total_bytes, plan.lower_bound_bytes);
    ASSERT_LE(plan.total_bytes, sum);
    std::size_t fullest = 0;
    for (int step = 0; step < steps; ++step) {
      std::vector<int> painted(plan.total_bytes, 0);
      std::size_t live = 0;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].first_step <= step && step <= tensors[i].last_step) {
          live += (tensors[i].bytes + 15) / 16 * 16;
          for (std::size_t at = 0; at < tensors[i].bytes; ++at) {
            ASSERT_EQ(painted.at(plan.offsets[i] + at)++, 0) << "seed " << seed << ", step " << step;
          }
        }
      }
      fullest = std::max(fullest, live);
    }
    ASSERT_EQ(plan.lower_bound_bytes, fullest) << seed;
    if (plan.lower_bound_bytes > 0) {
      worst = std::max(worst, static_cast<double>(plan.total_bytes) / static_cast<double>(plan.lower_bound_bytes));
    }
  }
  RecordProperty("worst_total_over_bound", std::to_string(worst));
  EXPECT_LT(worst, 1.6) << "greedy by size is not optimal, but near it";
}

TEST(ArenaLayout, ThousandsOfTensorsTakeSecondsAtMost) {
  std::mt19937_64 random(1);
  std::vector<ArenaTensor> tensors(3000);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const int first = static_cast<int>(i);
    tensors[i] = {"t", 1 + random() % 100000, first, first + static_cast<int>(random() % 10)};
  }
  const auto begin = std::chrono::steady_clock::now();
  const ArenaLayout plan = lay_out_arena(tensors);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(flaw_of(plan, tensors), std::nullopt);
}

TEST(Arena, ViewsLieWhereThePlanSaysAndKeepTheirBytesWhileTheyLive) {
  EmulatedState state;
  EmulatedMemory memory(state, 1 << 20);
  const Arena arena(memory, {{"hidden", 5000, 0, 2}, {"gate", 3000, 1, 1}, {"up", 3000, 1, 2}, {"next", 5000, 3, 4}});
  EXPECT_EQ(memory.state().total_bytes - arena.plan().total_bytes, (std::uint64_t{1} << 20) - arena.plan().total_bytes);
  EXPECT_EQ(arena.view("gate").bytes, 3000U);
  EXPECT_EQ(arena.view("gate").data, arena.view(1).data);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.view(i).data) % 256, 0U);
    EXPECT_EQ(
        static_cast<std::byte*>(arena.view(i).data) - static_cast<std::byte*>(arena.view(0).data),
        static_cast<std::ptrdiff_t>(arena.plan().offsets[i]) - static_cast<std::ptrdiff_t>(arena.plan().offsets[0]));
  }
  const auto holds = [&](const char* name, int value) {
    std::vector<std::byte> bytes(arena.view(name).bytes);
    memory.download({}, bytes, arena.view(name));
    return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte == std::byte(value); });
  };
  memory.fill({}, arena.view("hidden"), 1);
  memory.fill({}, arena.view("gate"), 2);
  memory.fill({}, arena.view("up"), 3);
  EXPECT_TRUE(holds("hidden", 1) && holds("gate", 2) && holds("up", 3));
  EXPECT_THROW((void)arena.view(4), Error);
  EXPECT_THROW((void)arena.view("absent"), Error);
  EXPECT_THROW((void)arena.view("gates"), Error);
  EXPECT_THROW((void)arena.view(""), Error);
}

TEST(Arena, AllocatesOnceAndGivesItBack) {
  EmulatedState state;
  EmulatedMemory memory(state, 1 << 20);
  {
    const Arena arena(memory, {{"a", 100000, 0, 2}, {"b", 200000, 1, 3}});
    EXPECT_THROW((void)memory.allocate_raw((1 << 20) - arena.plan().total_bytes + 1), EmulatorError);
    (void)memory.allocate_raw((1 << 20) - arena.plan().total_bytes);
    (void)arena.view("a");
    (void)memory.allocate_raw((1 << 20) - arena.plan().total_bytes);
  }
  EXPECT_NO_THROW((void)memory.allocate_raw(1 << 20));
}

TEST(Arena, RefusesNamesThatDoNotTellTensorsApartAndWantOfMemory) {
  EmulatedState state;
  EmulatedMemory memory(state, 1 << 20);
  EXPECT_THROW(Arena(memory, {{"a", 1, 0, 0}, {"b", 1, 0, 0}, {"a", 1, 1, 1}}), Error);
  EXPECT_THROW(Arena(memory, {{"", 1, 0, 0}}), Error);
  EXPECT_NO_THROW(Arena(memory, {}));
  try {
    const Arena arena(memory, {{"logits", 2 << 20, 0, 0}});
    FAIL() << "twice what there is";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.needed_bytes(), 2U << 20);
    EXPECT_LE(error.free_bytes(), 1U << 20);
    EXPECT_NE(std::string(error.what()).find("2097152 bytes for 1 tensors"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace pascaline::testing
