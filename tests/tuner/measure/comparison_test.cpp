#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline::testing {
namespace {

/// `out[i] = 3 x[i] + y[i]` of x = 0, 1, 2, … and y = 1, but for two elements of y that are 0, compared as the search
/// space says.
class ComparisonTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 1000;
  static constexpr std::size_t kNan = 5;  // the element that kNotANumber spoils
  static constexpr std::size_t kLast = kCount - 1;

  [[nodiscard]] static nlohmann::json space_with(const nlohmann::json& change) {
    nlohmann::json space = toy_json({kRight, kNotANumber, kLastElementLeftOut});
    for (nlohmann::json& argument : space["arguments"]) {
      if (argument["name"] == "out") {
        argument.update(change);
      }
    }
    return space;
  }
  [[nodiscard]] static std::vector<float> right() {
    std::vector<float> values;
    for (std::size_t i = 0; i < kCount; ++i) {
      values.push_back(3 * static_cast<float>(i) + (i == kNan || i == kLast ? 0 : 1));
    }
    return values;
  }
  /// A trial of the kernel, whose answer these are; without any, the reference computes it.
  [[nodiscard]] static Trial run(const nlohmann::json& change, Fault fault, const std::vector<float>& answer = {}) {
    const ToyBench bench(space_with(change));
    const auto file = [&](const std::string& name, const std::vector<float>& values) {
      const std::filesystem::path path = bench.folder() / name;
      write_file_atomically(path, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
      return path;
    };
    std::vector<float> x;
    std::vector<float> y(kCount, 1);
    for (std::size_t i = 0; i < kCount; ++i) {
      x.push_back(static_cast<float>(i));
    }
    y[kNan] = y[kLast] = 0;
    GivenFiles files{.inputs = {{"x", file("x", x)}, {"y", file("y", y)}}};
    if (!answer.empty()) {
      files.answers = {{"out", file("out", answer)}};
    }
    RelayDevice device;
    DeviceMonitor monitor(device, {.passive = true});
    TrialRunner runner(monitor, bench.bound(), bench.reference(), quick_measure(), 1);
    runner.give(GivenData(files, bench.bound()));
    return runner.run(toy_config(64, fault), bench.compile(toy_config(64, fault)), 0);
  }
};

TEST_F(ComparisonTest, AMaskLeavesElementsOut) {
  EXPECT_EQ(run({{"mask", "y"}}, kRight).status, TrialStatus::ok);
  EXPECT_EQ(run({{"mask", "y"}}, kNotANumber).status, TrialStatus::ok);
  EXPECT_EQ(run({{"mask", "y"}}, kLastElementLeftOut).status, TrialStatus::ok);
  EXPECT_EQ(run({{"compare", "each"}}, kNotANumber).status, TrialStatus::wrong_result);
  std::vector<float> other = right();
  other[7] += 1;
  EXPECT_EQ(run({{"mask", "y"}}, kRight, other).status, TrialStatus::wrong_result);
}

TEST_F(ComparisonTest, TheOrderMayNotMatter) {
  const std::vector<float> values = right();
  const std::vector<float> backwards(values.rbegin(), values.rend());
  EXPECT_EQ(run({{"compare", "any_order"}}, kRight).status, TrialStatus::ok);
  EXPECT_EQ(run({{"compare", "any_order"}}, kRight, backwards).status, TrialStatus::ok);
  EXPECT_EQ(run({{"compare", "each"}}, kRight, backwards).status, TrialStatus::wrong_result);
  std::vector<float> twice = backwards;
  twice[0] = twice[1];
  const Trial wrong = run({{"compare", "any_order"}}, kRight, twice);
  EXPECT_EQ(wrong.status, TrialStatus::wrong_result);
  EXPECT_NE(wrong.reason.find("out in ascending order [999]: 2997 instead of 2995"), std::string::npos) << wrong.reason;
}

TEST_F(ComparisonTest, OnlyTheSumMayMatter) {
  std::vector<float> moved = right();
  moved[10] += 500;
  moved[20] -= 500;
  EXPECT_EQ(run({{"compare", "sum"}}, kRight, moved).status, TrialStatus::ok);
  EXPECT_EQ(run({{"compare", "any_order"}}, kRight, moved).status, TrialStatus::wrong_result);
  moved[10] += 500;
  const Trial wrong = run({{"compare", "sum"}}, kRight, moved);
  EXPECT_EQ(wrong.status, TrialStatus::wrong_result);
  EXPECT_NE(wrong.reason.find("the sum of out: 1499498 instead of 1499998"), std::string::npos) << wrong.reason;
}

TEST_F(ComparisonTest, SpacesAreCheckedForThem) {
  const auto fault = [](const nlohmann::json& change) -> std::string {
    try {
      (void)Space::parse(space_with(change).dump(), "toy.json");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(fault({{"mask", "x"}, {"compare", "each"}}), "");
  EXPECT_NE(fault({{"mask", "out"}}).find("it needs a buffer 'out' with access 'in' and the extent 'N'"),
            std::string::npos);
  EXPECT_NE(fault({{"compare", "roughly"}}).find("/compare"), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
