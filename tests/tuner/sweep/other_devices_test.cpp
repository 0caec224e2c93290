#include "tuner/sweep/other_devices.hpp"

#include <gtest/gtest.h>

#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

DeviceRow gpu(const std::string& name, const std::string& capability, std::int64_t multiprocessors) {
  return {"cuda", name, capability, multiprocessors, 0, "{}"};
}

/// Problems of the toy kernel on made-up GPUs.
class OtherDevicesTest : public ::testing::Test {
 protected:
  Space space_ = Space::parse(toy_json().dump(), "toy.json");
  DeviceRow here_ = gpu("here", "6.1", 20);

  [[nodiscard]] Problem problem(const char* n) const { return space_.problem({{"N", n}}); }
  [[nodiscard]] Store::MeasuredElsewhere key(const DeviceRow& device, std::int64_t id, const char* n,
                                             std::int64_t trials = 30) const {
    Store::MeasuredElsewhere out;
    out.device = device;
    out.device_id = id;
    out.problem = problem(n);
    out.problem_id = std::stoll(n);
    out.trials = trials;
    return out;
  }
  [[nodiscard]] Winner winner(const DeviceRow& device, const char* n, std::int64_t block) const {
    Winner out;
    out.device = device;
    out.trial.problem = problem(n);
    out.trial.config = toy_config(block);
    return out;
  }
  [[nodiscard]] std::vector<std::string> nearest(const std::vector<Store::MeasuredElsewhere>& keys) const {
    std::vector<std::string> names;
    for (const NearElsewhere& near : nearest_elsewhere(space_, problem("1000"), here_, keys)) {
      names.push_back(near.key->device.name + " " + std::to_string(near.key->problem_id));
    }
    return names;
  }
};

TEST_F(OtherDevicesTest, TheSameCapabilityIsNearer) {
  EXPECT_LT(device_octaves(here_, gpu("P40", "6.1", 30)), device_octaves(here_, gpu("P100", "6.0", 56)));
  EXPECT_GT(device_octaves(here_, gpu("P40", "6.1", 30)), 0) << "less trusted than the device itself";
}

TEST_F(OtherDevicesTest, NearestIsBySumOfShapeAndDeviceThenBySize) {
  const DeviceRow p40 = gpu("P40", "6.1", 30);
  const DeviceRow mx330 = gpu("MX330", "6.1", 3);
  const DeviceRow a100 = gpu("A100", "8.0", 108);
  EXPECT_EQ(nearest({key(a100, 1, "1000"), key(mx330, 2, "1000"), key(p40, 3, "1000"), key(p40, 3, "1100"),
                     key(p40, 3, "64000")}),
            (std::vector<std::string>{"P40 1000", "MX330 1000", "P40 1100", "A100 1000", "P40 64000"}));
  EXPECT_TRUE(nearest({key(p40, 3, "1000", 14)}).empty()) << "too few trials";
}

TEST_F(OtherDevicesTest, OfADeviceAndProblemTheLargestKeyCounts) {
  std::vector<Store::MeasuredElsewhere> keys{key(gpu("P40", "6.1", 30), 3, "1000", 20),
                                             key(gpu("P40", "6.1", 30), 3, "1000", 90)};
  const auto near = nearest_elsewhere(space_, problem("1000"), here_, keys);
  ASSERT_EQ(near.size(), 1U);
  EXPECT_EQ(near[0].key, &keys[1]);
}

TEST_F(OtherDevicesTest, WinnersAreOfTheProblemItselfOnOtherGpus) {
  DeviceRow emulator = gpu("emulator", "", 2);
  emulator.kind = "host";
  const std::vector<Winner> winners{winner(gpu("A100", "8.0", 108), "1000", 32),
                                    winner(emulator, "1000", 128),
                                    winner(here_, "1000", 128),
                                    winner(gpu("P40", "6.1", 30), "1000", 64),
                                    winner(gpu("P40", "6.1", 30), "1000", 128),
                                    winner(gpu("P4", "6.1", 20), "2000", 128)};
  const auto found = winners_elsewhere(problem("1000").text(), here_, winners);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], &winners[3]) << "the nearest device, decided last";
  EXPECT_EQ(found[1], &winners[0]);
}

TEST_F(OtherDevicesTest, ManyTrialsAreThinnedToTheFastestAndSomeOfAll) {
  std::vector<std::pair<Config, double>> times;
  for (int i = 0; i < 10'000; ++i) {
    times.emplace_back(toy_config(i), 1 + (i * 7919 % 10'000));
  }
  const auto thinned = thinned_times(times);
  ASSERT_EQ(thinned.size(), 1000U);
  for (std::size_t i = 0; i < 500; ++i) {
    ASSERT_EQ(thinned[i].second, 1.0 + static_cast<double>(i)) << "the fastest half";
  }
  for (std::size_t i = 1; i < thinned.size(); ++i) {
    ASSERT_LT(thinned[i - 1].second, thinned[i].second);
  }
  EXPECT_GT(thinned.back().second, 9'900);
  EXPECT_EQ(thinned_times({{toy_config(1), 3}, {toy_config(2), 2}}).front().second, 2);
}

}  // namespace
}  // namespace pascaline::testing
