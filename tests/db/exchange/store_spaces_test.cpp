#include "db/exchange/store_spaces.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "db/exchange/write.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline {
namespace {

using testing::example_config;
using testing::example_context;
using testing::example_problem;
using testing::example_trial;
using testing::failed_trial;

class StoreSpacesTest : public ::testing::Test {
 protected:
  void add(const Trial& trial) { store_.add_trial(session_, context_, trial); }
  static Trial timed(std::int64_t tile, double median, double half_width, int count = 30) {
    Trial trial = example_trial(tile);
    trial.time = TimeSummary{median, median - half_width, median + half_width, count};
    return trial;
  }

  testing::TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  std::int64_t session_ = testing::begin_example_session(store_, context_);
};

TEST_F(StoreSpacesTest, ASpaceHasTheTrialsOfItsProblem) {
  add(timed(4, 100, 1));
  add(failed_trial(2, TrialStatus::crashed, "a fault"));
  add(timed(1, 120, 1));
  const std::vector<RecordedSpace> spaces = recorded_spaces(store_);
  ASSERT_EQ(spaces.size(), 1U);
  const RecordedSpace& space = spaces[0];
  EXPECT_EQ(space.format, "pascaline");
  EXPECT_EQ(space.kernel, "matmul");
  EXPECT_EQ(space.device, "NVIDIA GeForce GTX 1080 Ti");
  EXPECT_EQ(space.problem_size, "M=512 N=2048 K=1024 STORAGE=float16");
  EXPECT_EQ(space.name, "matmul M=512 N=2048 K=1024 STORAGE=float16 NVIDIA GeForce GTX 1080 Ti");
  ASSERT_EQ(space.trials.size(), 3U);
  EXPECT_EQ(space.config(space.trials[0]), example_config(4));
  EXPECT_EQ(space.trials[0].time_us, 100);
  EXPECT_EQ(space.trials[0].compile_ms, 812.5);
  EXPECT_EQ(space.trials[0].verify_ms, 3.5);
  EXPECT_EQ(space.trials[0].measure_ms, 41.25);
  EXPECT_EQ(space.trials[0].started_unix_ms, 1'700'000'000'123);
  EXPECT_TRUE(space.trials[0].samples_us.empty());
  EXPECT_EQ(space.trials[1].status, TrialStatus::crashed);
  EXPECT_EQ(space.trials[1].reason, "a fault");
  const auto tile = std::find_if(space.parameters.begin(), space.parameters.end(),
                                 [](const RecordedParameter& parameter) { return parameter.name == "TILE"; });
  ASSERT_NE(tile, space.parameters.end());
  EXPECT_EQ(tile->values, (std::vector<Value>{std::int64_t{1}, std::int64_t{2}, std::int64_t{4}}));
}

TEST_F(StoreSpacesTest, SamplesAreTheCountedOnesWithTheirClockScale) {
  add(example_trial(4));
  const std::vector<RecordedSpace> spaces = recorded_spaces(store_, {.with_samples = true});
  ASSERT_EQ(spaces.at(0).trials.at(0).samples_us.size(), 28U);
  EXPECT_EQ(spaces[0].trials[0].samples_us[0], 100.125 * 0.96875);
}

TEST_F(StoreSpacesTest, OfDuplicatesTheNarrowestIntervalCounts) {
  add(timed(1, 100, 3));
  add(timed(1, 105, 1));
  add(timed(1, 103, 2));
  add(timed(2, 50, 0.001, 2));  // two samples bound nothing
  add(timed(2, 60, 1));
  add(failed_trial(3, TrialStatus::timed_out, "slow"));
  add(timed(3, 70, 1));
  add(failed_trial(3, TrialStatus::crashed, "gone"));
  add(failed_trial(4, TrialStatus::timed_out, "slow"));
  add(failed_trial(4, TrialStatus::crashed, "gone"));
  const RecordedSpace space = recorded_spaces(store_).at(0);
  ASSERT_EQ(space.trials.size(), 4U);
  EXPECT_EQ(space.trials[0].time_us, 105);
  EXPECT_EQ(space.trials[1].time_us, 60);
  EXPECT_EQ(space.trials[2].time_us, 70);
  EXPECT_EQ(space.trials[3].status, TrialStatus::crashed);
}

// The formats of other tuners have no status for dropped trials.
TEST_F(StoreSpacesTest, DroppedTrialsAreWrittenAsOk) {
  Store complete(folder_ / "complete.db", OpenMode::create);
  const ContextIds context = example_context(complete);
  const std::int64_t session = testing::begin_example_session(complete, context);
  for (const std::int64_t tile : {1, 2, 4}) {
    Trial trial = timed(tile, 100.0 + static_cast<double>(tile), 1);
    complete.add_trial(session, context, trial);
    trial.status = tile == 1 ? TrialStatus::ok : TrialStatus::dropped;
    trial.reason = "slower than the best so far";
    add(trial);
  }
  add(failed_trial(4, TrialStatus::crashed, "gone"));
  const RecordedSpace space = recorded_spaces(store_, {.with_samples = true}).at(0);
  ASSERT_EQ(space.trials.size(), 3U);
  for (const RecordedTrial& trial : space.trials) {
    EXPECT_EQ(trial.status, TrialStatus::ok);
    EXPECT_GT(trial.time_us, 100);
  }
  const RecordedSpace expected = recorded_spaces(complete, {.with_samples = true}).at(0);
  EXPECT_EQ(t4_json(space), t4_json(expected));
  EXPECT_EQ(recorded_csv(space), recorded_csv(expected));
}

TEST_F(StoreSpacesTest, FinalsAreNoPartOfTheSearch) {
  Trial trial = timed(1, 100, 1);
  trial.stage = TrialStage::finals;
  add(trial);
  EXPECT_TRUE(recorded_spaces(store_).empty());
}

TEST_F(StoreSpacesTest, WhatDiffersInItsKeyIsAnotherSpace) {
  add(timed(1, 100, 1));
  ContextIds other = context_;
  other.kernel = store_.kernel_id({"matmul", "source-b"});
  store_.add_trial(session_, other, timed(1, 90, 1));
  other = context_;
  ToolkitRow toolkit = testing::example_toolkit();
  toolkit.version = "11.8";
  other.toolkit = store_.toolkit_id(toolkit);
  store_.add_trial(session_, other, timed(1, 80, 1));
  other = example_context(store_, 7);
  Trial trial = timed(1, 70, 1);
  trial.problem = example_problem(7);
  store_.add_trial(session_, other, trial);
  other = context_;
  DeviceRow device = testing::example_device();
  device.name = "Another";
  other.device = store_.device_id(device);
  store_.add_trial(session_, other, timed(1, 60, 1));
  trial = timed(1, 50, 1);
  trial.config = Config({{"TILE", std::int64_t{1}}});
  add(trial);
  std::vector<double> times;
  for (const RecordedSpace& space : recorded_spaces(store_)) {
    ASSERT_EQ(space.trials.size(), 1U);
    times.push_back(space.trials[0].time_us);
  }
  EXPECT_EQ(times, (std::vector<double>{100, 90, 80, 70, 60, 50}));
  EXPECT_EQ(recorded_spaces(store_, {.device = "Another"}).at(0).trials.at(0).time_us, 60);
  EXPECT_EQ(recorded_spaces(store_, {.problem = example_problem(7).text()}).at(0).trials.at(0).time_us, 70);
  EXPECT_EQ(recorded_spaces(store_, {.kernel = "matmul"}).size(), 6U);
  EXPECT_TRUE(recorded_spaces(store_, {.kernel = "softmax"}).empty());
}

}  // namespace
}  // namespace pascaline
