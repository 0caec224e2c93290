#include "runtime/dispatch/prepared_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace pascaline::testing {
namespace {

std::vector<std::unique_ptr<Prepared>> entries(std::int64_t count) {
  std::vector<std::unique_ptr<Prepared>> entries;
  for (std::int64_t i = 0; i < count; ++i) {
    auto& entry = *entries.emplace_back(std::make_unique<Prepared>());
    entry.key = {KernelHandle{static_cast<std::uint32_t>(i % 3)}, {i, 2048}, {ElementType::float32}};
  }
  return entries;
}

const Prepared* find(const PreparedTable& table, const ProblemKey& key) {
  return table.find(key.kernel, key.dimensions, key.types);
}

TEST(PreparedTableTest, FindsEveryEntryThroughGrowth) {
  const auto all = entries(2000);
  PreparedTable table;
  for (const auto& entry : all) {
    EXPECT_EQ(find(table, entry->key), nullptr);
    table.publish(*entry);
  }
  for (const auto& entry : all) {
    ASSERT_EQ(find(table, entry->key), entry.get());
  }
  EXPECT_EQ(table.size(), 2000U);
}

TEST(PreparedTableTest, KernelDimensionsAndTypesAllCount) {
  const auto all = entries(1);
  PreparedTable table;
  table.publish(*all[0]);
  const std::array<std::int64_t, 2> dimensions{0, 2048};
  const std::array<std::int64_t, 2> swapped{2048, 0};
  const std::array<ElementType, 1> float32{ElementType::float32};
  const std::array<ElementType, 1> float16{ElementType::float16};
  EXPECT_EQ(table.find({0}, dimensions, float32), all[0].get());
  EXPECT_EQ(table.find({1}, dimensions, float32), nullptr);
  EXPECT_EQ(table.find({0}, swapped, float32), nullptr);
  EXPECT_EQ(table.find({0}, dimensions, float16), nullptr);
  EXPECT_EQ(table.find({0}, std::span(dimensions).first(1), float32), nullptr);
  EXPECT_EQ(table.find({0}, dimensions, {}), nullptr);
}

TEST(PreparedTableTest, ReadersNeverMissWhatWasPublished) {
  constexpr std::int64_t kCount = 20'000;
  const auto all = entries(kCount);
  PreparedTable table;
  std::atomic<std::int64_t> published{0};
  std::atomic<int> misses{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      std::uint64_t pick = static_cast<std::uint64_t>(r) + 1;
      for (std::int64_t seen = 0; seen < kCount; seen = published.load(std::memory_order_acquire)) {
        pick = pick * 6364136223846793005U + 1442695040888963407U;
        if (seen > 0) {
          const auto& entry = all[(pick >> 33) % static_cast<std::uint64_t>(seen)];
          misses += find(table, entry->key) == entry.get() ? 0 : 1;
        }
      }
    });
  }
  for (const auto& entry : all) {
    table.publish(*entry);
    published.fetch_add(1, std::memory_order_release);
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(misses.load(), 0);
}

}  // namespace
}  // namespace pascaline::testing
