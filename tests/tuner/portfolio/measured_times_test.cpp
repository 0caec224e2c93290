#include "tuner/portfolio/measured_times.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// A database with trials of the toy kernel: a block of 128 is not valid for fewer than 128 elements.
class MeasuredTimesTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "measured.db", OpenMode::create};
  Space space_ = Space::parse(json().dump(), "toy.json");
  DeviceRow device_ = example_device();
  ToolkitRow toolkit_ = example_toolkit();
  std::string source_ = "source-a";

  static nlohmann::json json() {
    nlohmann::json document = toy_json({kRight, kNotANumber});
    document["constraints"].push_back({{"require", "BLOCK <= N"}, {"because", "a block has work"}});
    return document;
  }
  [[nodiscard]] Problem problem(int n) const { return space_.problem({{"N", std::to_string(n)}}); }

  // A trial of the search; without a time it is not usable.
  void add(int n, const Config& config, std::optional<double> time_us, TrialStage stage = TrialStage::search) {
    ContextIds context;
    context.device = store_.device_id(device_);
    context.toolkit = store_.toolkit_id(toolkit_);
    context.kernel = store_.kernel_id({"toy", source_});
    context.space = store_.space_id("toy", space_.hash, space_.json);
    context.problem = store_.problem_id(problem(n), 1, 1);
    SessionRow session;
    store_.begin_session(session, context.device, context.toolkit);
    Trial trial;
    trial.problem = problem(n);
    trial.config = config;
    trial.stage = stage;
    trial.status = time_us ? TrialStatus::ok : TrialStatus::wrong_result;
    trial.reason = time_us ? "" : "wrong";
    if (time_us) {
      trial.time = TimeSummary{*time_us, *time_us, *time_us, 10};
    }
    store_.add_trial(session.id, context, trial);
    store_.end_session(session.id, "finished");
  }
  [[nodiscard]] MeasuredTimes measured(const MeasuredTimesFilter& filter = {}) const {
    const auto all = measured_times(store_, filter);
    return all.size() == 1 ? all.front() : throw std::runtime_error("not one kernel");
  }
};

TEST_F(MeasuredTimesTest, AnEmptyDatabaseHasNone) {
  EXPECT_TRUE(measured_times(store_, {}).empty());
  add(1000, toy_config(64), std::nullopt);
  EXPECT_TRUE(measured_times(store_, {}).empty()) << "no trial is usable";
}

TEST_F(MeasuredTimesTest, TrialsOfAProblemAreInTheirOrderAndFailuresCount) {
  add(1000, toy_config(64), 10);
  add(1000, toy_config(32), std::nullopt);
  add(1000, toy_config(128), 5);
  add(1000, toy_config(128), 1, TrialStage::finals);
  const MeasuredTimes times = measured();
  ASSERT_EQ(times.problems.size(), 1U);
  EXPECT_EQ(times.problems[0].trials.size(), 3U) << "finals are no trials of the search";
  EXPECT_DOUBLE_EQ(times.problems[0].best_us(1), 10);
  EXPECT_DOUBLE_EQ(times.problems[0].best_us(2), 10);
  EXPECT_DOUBLE_EQ(times.problems[0].best_us(3), 5);
  EXPECT_DOUBLE_EQ(times.problems[0].best_us(), 5);
}

TEST_F(MeasuredTimesTest, OnlyTheLastSourceAndThePlaceWithMostTrialsCount) {
  add(1000, toy_config(32), 1);
  source_ = "source-b";
  add(1000, toy_config(64), 20);
  add(1000, toy_config(128), 10);
  device_.name = "another";
  add(1000, toy_config(64), 3);
  EXPECT_EQ(measured().device.name, example_device().name);
  EXPECT_EQ(measured().problems[0].trials.size(), 2U);
  EXPECT_DOUBLE_EQ(measured().problems[0].best_us(), 10);
  EXPECT_DOUBLE_EQ(measured({.device = "another"}).problems[0].best_us(), 3);
  EXPECT_TRUE(measured_times(store_, {.target = "sm_90"}).empty());
  EXPECT_TRUE(measured_times(store_, {.kernel = "matmul"}).empty());
  EXPECT_EQ(measured().limits().compute_capability, 61);
}

TEST_F(MeasuredTimesTest, TheDefaultIsTheFirstColumnAndWhatIsNearNoBestIsLeftOut) {
  add(1000, toy_config(32), 9.9);
  add(1000, toy_config(64), 10);
  add(1000, toy_config(128), 5);
  add(2000, toy_config(64), 10);
  add(2000, toy_config(32), 20);
  const MeasuredMatrix matrix = matrix_of(measured(), space_, {}, 1.5);
  EXPECT_EQ(matrix.configs, (std::vector<Config>{toy_config(64), toy_config(128)}));
  ASSERT_EQ(matrix.times.rows.size(), 2U);
  EXPECT_EQ(matrix.times.rows[0].time_us, (std::vector<double>{10, 5}));
  EXPECT_EQ(matrix.times.rows[1].time_us, (std::vector<double>{10, kUnknownTime}));
  EXPECT_DOUBLE_EQ(matrix.times.rows[1].best_us, 10);
}

TEST_F(MeasuredTimesTest, WhatIsKeptComesBehindTheDefaultHoweverSlow) {
  add(1000, toy_config(64), 10);
  add(1000, toy_config(128), 5);
  add(1000, toy_config(32), 50);
  const MeasuredMatrix matrix = matrix_of(measured(), space_, {toy_config(32)}, 1.5);
  EXPECT_EQ(matrix.configs, (std::vector<Config>{toy_config(64), toy_config(32), toy_config(128)}));
  EXPECT_EQ(matrix.times.rows[0].time_us, (std::vector<double>{10, 50, 5}));
}

TEST_F(MeasuredTimesTest, WhereAConfigurationIsNotValidTheNearestOneStandsForIt) {
  add(1000, toy_config(64), 10);
  add(1000, toy_config(128, kNotANumber), 5);
  add(100, toy_config(64), 8);
  add(100, toy_config(64, kNotANumber), 4);
  const MeasuredMatrix matrix = matrix_of(measured(), space_);
  ASSERT_EQ(matrix.configs.at(1), toy_config(128, kNotANumber));
  EXPECT_DOUBLE_EQ(matrix.times.rows[1].time_us[1], 4) << "a block of 64 takes its place";
  const PortfolioChoice choice = choose_portfolio(matrix.times, {0}, 1);
  EXPECT_EQ(choice.members, (std::vector<std::size_t>{0, 1}));
  EXPECT_DOUBLE_EQ(choice.quality.back().mean, 1);
}

TEST_F(MeasuredTimesTest, WhatTheSpaceNoLongerHasIsLeftOut) {
  add(1000, toy_config(64), 10);
  add(1000, toy_config(512), 1);
  const MeasuredMatrix matrix = matrix_of(measured(), space_);
  EXPECT_EQ(matrix.configs, std::vector<Config>{toy_config(64)});
  EXPECT_DOUBLE_EQ(matrix.times.rows[0].best_us, 1) << "it was measured all the same";
  EXPECT_TRUE(fastest_of_each(measured(), space_, 3).empty());
}

TEST_F(MeasuredTimesTest, ThePoolHasTheFastestOfEachProblemOnce) {
  add(1000, toy_config(64), 10);
  add(1000, toy_config(32), 9);
  add(1000, toy_config(128), 8);
  add(2000, toy_config(32), 9);
  add(2000, toy_config(64), 1);
  EXPECT_EQ(fastest_of_each(measured(), space_, 1), std::vector<Config>{toy_config(128)});
  EXPECT_EQ(fastest_of_each(measured(), space_, 2), (std::vector<Config>{toy_config(128), toy_config(32)}));
}

TEST_F(MeasuredTimesTest, AProblemThatTheSpaceNoLongerHasIsNamed) {
  add(1000, toy_config(64), 10);
  nlohmann::json document = json();
  document["dimensions"][0]["minimum"] = 2000;
  document["dimensions"][0]["example"] = 4000;
  const Space narrower = Space::parse(document.dump(), "toy.json");
  try {
    (void)matrix_of(measured(), narrower);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("dimension N of kernel 'toy' is 1000"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace pascaline::testing
