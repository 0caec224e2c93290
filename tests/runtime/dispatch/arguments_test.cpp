#include "runtime/dispatch/arguments.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

template <typename T>
T value_at(const LaunchArguments& arguments, std::size_t index) {
  T value;
  std::memcpy(&value, arguments.pointers()[index], sizeof value);
  return value;
}

class ArgumentsTest : public ::testing::Test {
 protected:
  FakeDevice device_;
  Space space_ = Space::parse(scale_json(), "scale.json");
  BoundSpace bound_{space_, scale_problem(5, 16), DeviceLimits{}};
  int memory_[2] = {};
  std::vector<NamedPointer> buffers_{{"y", &memory_[1]}, {"x", &memory_[0]}};
};

TEST_F(ArgumentsTest, BuffersComeByNameAndScalarsFromTheSpace) {
  const LaunchArguments arguments(device_, bound_, scale_config(64), buffers_);
  ASSERT_EQ(arguments.pointers().size(), 5U);
  EXPECT_EQ(value_at<void*>(arguments, 0), &memory_[0]);
  EXPECT_EQ(value_at<void*>(arguments, 1), &memory_[1]);
  EXPECT_EQ(value_at<std::int32_t>(arguments, 4), 80);
  EXPECT_EQ(arguments.buffer_count(), 2U);
}

TEST_F(ArgumentsTest, ScratchIsAllocatedByItsExtentAndZeroedWhereAsked) {
  const LaunchArguments arguments(device_, bound_, scale_config(64, 2), buffers_);
  ASSERT_EQ(arguments.scratch().size(), 2U);
  EXPECT_EQ(arguments.scratch()[0].argument, 2U);
  EXPECT_EQ(arguments.scratch()[0].buffer.bytes(), 80U * sizeof(float));
  EXPECT_EQ(value_at<void*>(arguments, 2), arguments.scratch()[0].buffer.data());
  const auto* counters = value_at<const int*>(arguments, 3);
  EXPECT_EQ(counters[0], 0);
  EXPECT_EQ(counters[3], 0);
}

TEST_F(ArgumentsTest, ScratchWithoutElementsIsANullPointer) {
  const LaunchArguments arguments(device_, bound_, scale_config(64, 1), buffers_);
  EXPECT_EQ(value_at<void*>(arguments, 2), nullptr);
  EXPECT_EQ(arguments.scratch().size(), 1U);
}

TEST_F(ArgumentsTest, RefillZeroesCountersAndSetsTheRest) {
  const LaunchArguments arguments(device_, bound_, scale_config(64, 2), buffers_);
  value_at<int*>(arguments, 3)[0] = 7;
  arguments.refill_scratch(device_, 0xFF);
  EXPECT_EQ(value_at<const int*>(arguments, 3)[0], 0);
  EXPECT_EQ(value_at<const unsigned char*>(arguments, 2)[79], 0xFF);
}

TEST_F(ArgumentsTest, ValuesStayWhereTheyAreWhenMoved) {
  LaunchArguments arguments(device_, bound_, scale_config(64), buffers_);
  void* const before = arguments.pointers()[4];
  const LaunchArguments moved(std::move(arguments));
  EXPECT_EQ(moved.pointers()[4], before);
  EXPECT_EQ(value_at<std::int32_t>(moved, 4), 80);
}

TEST_F(ArgumentsTest, MissingAndUnknownBuffersAreRefused) {
  const std::vector<NamedPointer> few{{"x", &memory_[0]}};
  EXPECT_THROW(LaunchArguments(device_, bound_, scale_config(64), few), Error);
  buffers_.push_back({"z", &memory_[0]});
  EXPECT_THROW(LaunchArguments(device_, bound_, scale_config(64), buffers_), Error);
  buffers_.back().name = "workspace";
  EXPECT_THROW(LaunchArguments(device_, bound_, scale_config(64), buffers_), Error);
}

TEST_F(ArgumentsTest, AScalarBeyondItsTypeIsRefused) {
  const BoundSpace large(space_, scale_problem(std::int64_t{1} << 28, 16), DeviceLimits{});
  try {
    const LaunchArguments arguments(device_, large, scale_config(64), buffers_);
    FAIL() << "2^32 does not fit int32";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'count'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("4294967296"), std::string::npos) << error.what();
  }
}

// The scale space with `count` of another type.
Space with_count_of(const std::string& type, const std::string& value) {
  std::string json = scale_json();
  const std::string before = R"("scalar": "int32", "value": "ROWS * WIDTH")";
  json.replace(json.find(before), before.size(), R"("scalar": ")" + type + R"(", "value": ")" + value + '"');
  return Space::parse(json, "scale.json");
}

TEST_F(ArgumentsTest, ScalarsTakeTheirElementType) {
  const auto stored = [&]<typename T>(const char* type, const char* value, T) {
    const Space space = with_count_of(type, value);
    const BoundSpace bound(space, scale_problem(5, 16), DeviceLimits{});
    return value_at<T>(LaunchArguments(device_, bound, scale_config(64), buffers_), 4);
  };
  EXPECT_EQ(stored("int64", "ROWS << 40", std::int64_t{}), std::int64_t{5} << 40);
  EXPECT_EQ(stored("uint32", "4294967295", std::uint32_t{}), 4294967295U);
  EXPECT_EQ(stored("float32", "0 - ROWS", float{}), -5.0F);
  EXPECT_EQ(stored("float64", "ROWS", double{}), 5.0);
  EXPECT_EQ(stored("int8", "0 - 128", std::int8_t{}), -128);
  EXPECT_THROW((void)stored("int8", "128", std::int8_t{}), Error);
  EXPECT_THROW((void)stored("uint8", "0 - 1", std::uint8_t{}), Error);
  EXPECT_THROW((void)stored("float32", "16777217", float{}), Error);
  EXPECT_EQ(stored("int16", "0 - 32768", std::int16_t{}), -32768);
  EXPECT_THROW((void)stored("int16", "32768", std::int16_t{}), Error);
  EXPECT_EQ(stored("uint16", "65535", std::uint16_t{}), 65535);
  EXPECT_THROW((void)stored("uint16", "0 - 1", std::uint16_t{}), Error);
  EXPECT_EQ(stored("uint64", "ROWS << 40", std::uint64_t{}), std::uint64_t{5} << 40U);
  EXPECT_THROW((void)stored("uint64", "0 - 1", std::uint64_t{}), Error);
  EXPECT_EQ(stored("bool", "ROWS == 5", std::uint8_t{}), 1);
  EXPECT_THROW((void)stored("bool", "2", std::uint8_t{}), Error);
  EXPECT_EQ(stored("float16", "ROWS", std::uint16_t{}), 0x4500);
  EXPECT_THROW((void)stored("float16", "2049", std::uint16_t{}), Error);
  EXPECT_EQ(stored("bfloat16", "0 - 1", std::uint16_t{}), 0xBF80);
  EXPECT_THROW((void)stored("bfloat16", "257", std::uint16_t{}), Error);
}

TEST_F(ArgumentsTest, VectorsAndStructuresArePassedByValue) {
  struct Settings {
    std::int8_t mode;
    alignas(16) float center[4];
    double scale;
  };
  nlohmann::json text = nlohmann::json::parse(scale_json());
  text["structs"] = nlohmann::json::parse(
      R"([{"name": "Settings", "members": [["mode", "int8"], ["center", "float4"], ["scale", "float64"]]}])");
  text["arguments"][4] = nlohmann::json::parse(
      R"({"name": "settings", "scalar": "Settings", "value": [-3, 0.5, "ROWS", 2, "inf", 0.25]})");
  const Space space = Space::parse(text.dump(), "scale.json");
  const BoundSpace bound(space, scale_problem(5, 16), DeviceLimits{});
  const LaunchArguments arguments(device_, bound, scale_config(64), buffers_);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arguments.pointers()[4]) % alignof(Settings), 0U);
  const auto settings = value_at<Settings>(arguments, 4);
  EXPECT_EQ(settings.mode, -3);
  EXPECT_EQ(settings.center[1], 5);
  EXPECT_EQ(settings.center[3], std::numeric_limits<float>::infinity());
  EXPECT_EQ(settings.scale, 0.25);
}

TEST_F(ArgumentsTest, PooledScratchIsSharedAndGatheredBuffersAreTheCallers) {
  ScratchPool pool(device_.memory());
  const LaunchArguments first(device_, bound_, scale_config(64, 2), pool);
  const LaunchArguments second(device_, bound_, scale_config(64, 4), pool);
  EXPECT_EQ(value_at<void*>(first, 2), value_at<void*>(second, 2));
  EXPECT_NE(value_at<void*>(first, 3), value_at<void*>(second, 3)) << "zeroed scratch must not be shared";
  EXPECT_EQ(pool.bytes(), 80U * sizeof(float));

  void* const buffers[] = {&memory_[1], &memory_[0]};
  void* pointers[5];
  second.gather(0, buffers, pointers);
  EXPECT_EQ(*static_cast<void**>(pointers[0]), &memory_[1]);
  EXPECT_EQ(*static_cast<void**>(pointers[1]), &memory_[0]);
  EXPECT_EQ(pointers[4], second.pointers()[4]);
}

TEST_F(ArgumentsTest, LaunchesOfAPipelineShareBuffersAndScratch) {
  nlohmann::json text = nlohmann::json::parse(scale_json());
  nlohmann::json second = text["launch"];
  second["arguments"] = {text["arguments"][2]["name"], "y", "x"};
  text["launch"] = nlohmann::json::array({text["launch"], second});
  const Space space = Space::parse(text.dump(), "scale.json");
  const BoundSpace bound(space, scale_problem(5, 16), DeviceLimits{});
  const LaunchArguments arguments(device_, bound, scale_config(64, 2), buffers_);
  ASSERT_EQ(arguments.pointers(1).size(), 3U);
  EXPECT_EQ(arguments.pointers(1)[0], arguments.pointers(0)[2]) << "the same scratch";
  EXPECT_EQ(*static_cast<void**>(arguments.pointers(1)[1]), &memory_[1]);
  void* const buffers[] = {&memory_[1], &memory_[0]};
  void* pointers[5];
  ASSERT_EQ(arguments.gather(1, buffers, pointers).size(), 3U);
  EXPECT_EQ(pointers[0], arguments.pointers(0)[2]);
  EXPECT_EQ(*static_cast<void**>(pointers[1]), &memory_[0]) << "buffers are in the order of the space's arguments";
}

TEST(ScratchPoolTest, GivesOneLaunchDistinctBuffersAndTheSmallestThatFits) {
  FakeDevice device;
  ScratchPool pool(device.memory());
  std::vector<void*> taken;
  taken.push_back(pool.take(1000, taken));
  taken.push_back(pool.take(10, taken));
  EXPECT_NE(taken[0], taken[1]);
  EXPECT_EQ(pool.take(8, {}), taken[1]);
  EXPECT_EQ(pool.take(500, {}), taken[0]);
  EXPECT_EQ(pool.bytes(), 1010U) << "two buffers";
}

}  // namespace
}  // namespace pascaline::testing
