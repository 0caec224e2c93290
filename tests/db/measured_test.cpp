#include <gtest/gtest.h>

#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

/// What was measured of a kernel on a device, by problem.
class MeasuredTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  ContextIds larger_ = example_context(store_, 1024);
  std::int64_t session_ = begin_example_session(store_, context_);
  std::string kernel_ = example_problem().kernel;

  std::int64_t add(const ContextIds& context, std::int64_t m, std::int64_t tile, double median_us,
                   TrialStage stage = TrialStage::search) {
    Trial trial = example_trial(tile);
    trial.problem = example_problem(m);
    trial.stage = stage;
    trial.time = TimeSummary{median_us, median_us, median_us, 30};
    return store_.add_trial(session_, context, trial);
  }
};

TEST_F(MeasuredTest, ByProblemTheLatestFirst) {
  EXPECT_TRUE(store_.measured(context_.device, kernel_).empty());
  add(context_, 512, 1, 10);
  add(larger_, 1024, 1, 40);
  add(larger_, 1024, 2, 30);
  const std::int64_t last = add(context_, 512, 3, 20);
  const auto measured = store_.measured(context_.device, kernel_);
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0].problem.text(), example_problem(512).text());
  EXPECT_EQ(measured[0].problem_id, context_.problem);
  EXPECT_EQ(measured[0].kernel, context_.kernel);
  EXPECT_EQ(measured[0].toolkit, context_.toolkit);
  EXPECT_EQ(measured[0].last_trial, last);
  ASSERT_EQ(measured[0].times_us.size(), 2U);
  ASSERT_EQ(measured[1].times_us.size(), 2U);
  EXPECT_EQ(measured[1].problem.text(), example_problem(1024).text());
}

TEST_F(MeasuredTest, LastTimeOfAConfigurationCounts) {
  add(context_, 512, 1, 10);
  add(context_, 512, 1, 15);
  const auto measured = store_.measured(context_.device, kernel_);
  ASSERT_EQ(measured.size(), 1U);
  ASSERT_EQ(measured[0].times_us.size(), 1U);
  EXPECT_EQ(measured[0].times_us[0].first.text(), example_config(1).text());
  EXPECT_EQ(measured[0].times_us[0].second, 15);
}

TEST_F(MeasuredTest, FailuresFinalsAndOthersDoNotCount) {
  add(context_, 512, 1, 10, TrialStage::finals);
  std::ignore = store_.add_trial(session_, context_, failed_trial(2, TrialStatus::crashed, "gone"));
  EXPECT_TRUE(store_.measured(context_.device, kernel_).empty());
  add(context_, 512, 1, 10);
  EXPECT_EQ(store_.measured(context_.device, kernel_).size(), 1U);
  EXPECT_TRUE(store_.measured(context_.device, "another").empty());
  EXPECT_TRUE(store_.measured(context_.device + 1, kernel_).empty());
}

/// The same kernel on other devices.
class MeasuredElsewhereTest : public MeasuredTest {
 protected:
  // A context on a device of that kind and name.
  ContextIds on(const std::string& kind, const std::string& name, std::int64_t m = 512) {
    ContextIds context = example_context(store_, m);
    DeviceRow device = example_device();
    device.kind = kind;
    device.name = name;
    context.device = store_.device_id(device);
    return context;
  }
  std::vector<std::string> names_for(std::int64_t device) {
    std::vector<std::string> names;
    for (const auto& key : store_.measured_elsewhere(device, kernel_)) {
      names.push_back(key.device.name);
    }
    return names;
  }
};

TEST_F(MeasuredElsewhereTest, OnlyOtherDevicesOfTheSameKindCount) {
  const ContextIds p40 = on("cuda", "P40");
  const ContextIds emulator = on("host", "here");
  const ContextIds other_emulator = on("host", "there");
  const ContextIds foreign = on("foreign", "imported");
  for (const ContextIds& context : {context_, p40, emulator, other_emulator, foreign}) {
    std::ignore = add(context, 512, 1, 10);
  }
  EXPECT_EQ(names_for(context_.device), std::vector<std::string>{"P40"});
  EXPECT_EQ(names_for(p40.device), std::vector<std::string>{example_device().name});
  EXPECT_EQ(names_for(emulator.device), std::vector<std::string>{"there"});
  EXPECT_EQ(names_for(other_emulator.device), std::vector<std::string>{"here"});
  EXPECT_TRUE(store_.measured_elsewhere(context_.device, "another").empty());
}

TEST_F(MeasuredElsewhereTest, KeysCountConfigurationsAndTimesAreTheLast) {
  const ContextIds p40 = on("cuda", "P40");
  const ContextIds larger = on("cuda", "P40", 1024);
  std::ignore = add(p40, 512, 1, 10);
  std::ignore = add(p40, 512, 1, 15);
  std::ignore = add(p40, 512, 2, 20);
  std::ignore = add(p40, 512, 4, 5, TrialStage::finals);
  std::ignore = store_.add_trial(session_, p40, failed_trial(3, TrialStatus::crashed, "gone"));
  std::ignore = add(larger, 1024, 1, 40);
  const auto keys = store_.measured_elsewhere(context_.device, kernel_);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].problem.text(), example_problem(512).text());
  EXPECT_EQ(keys[0].trials, 3) << "failed ones among them, no finals, each configuration once";
  EXPECT_EQ(keys[0].device_id, p40.device);
  EXPECT_EQ(keys[1].problem.text(), example_problem(1024).text());
  const auto times = store_.times_us(keys[0]);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0], std::pair(example_config(1), 15.0));
  EXPECT_EQ(times[1], std::pair(example_config(2), 20.0));
}

}  // namespace
}  // namespace pascaline::testing
