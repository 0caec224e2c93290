#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/tuner/simulation/simulated_fixture.hpp"

// Messages of a sweep to its user before, while and after it runs.
namespace pascaline::testing {
namespace {

constexpr const char* kStopping = "stopping; press Ctrl-C again to abort";

class SimulatedMessagesTest : public SimulatedSweepTest {
 protected:
  struct Note {
    double at_s = 0;
    std::string text;
  };
  std::vector<Note> notes_;
  double compile_s_ = 0.3;

  SimulatedMessagesTest() {
    events_.note = [this](const std::string& text) { notes_.push_back({simulation_.clock().elapsed_s(), text}); };
  }
  [[nodiscard]] double compile_s(const CompileRequest& /*request*/) const override { return compile_s_; }
  [[nodiscard]] std::vector<Note> notes_with(const std::string& part) const {
    std::vector<Note> found;
    std::ranges::copy_if(notes_, std::back_inserter(found),
                         [&](const Note& note) { return note.text.find(part) != std::string::npos; });
    return found;
  }
  void stop_at(double elapsed_s) {
    simulation_.clock().at(elapsed_s, [this] { stop_ = true; });
  }
  void expect_reported_once_at(double elapsed_s, const std::string& text) const {
    const std::vector<Note> found = notes_with("stopping");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].text.starts_with(text)) << found[0].text;
    EXPECT_NEAR(found[0].at_s, elapsed_s, 0.2);
  }
  [[nodiscard]] SweepProblem called(const std::string& n, double calls) const {
    return {space_.problem({{"N", n}}), calls, "", {{"token", calls}}};
  }
  [[nodiscard]] SweepSummary sweep_model(const std::vector<SweepProblem>& problems) {
    return run_sweep({space_}, problems, options_, events_, stop_, services_);
  }
  [[nodiscard]] static std::vector<std::string> sizes(int count) {
    std::vector<std::string> sizes;
    for (int i = 1; i <= count; ++i) {
      sizes.push_back(std::to_string(1000 * i));
    }
    return sizes;
  }
};

TEST_F(SimulatedMessagesTest, ABudgetThatCannotSufficeIsReportedOnceBeforeTheFirstTrial) {
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 12;
  const SweepSummary summary = sweep(sizes(30));
  const std::vector<Note> found = notes_with(" of 30 shapes here; about ");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at_s, 0);
  EXPECT_TRUE(found[0].text.starts_with("12 s reaches about ")) << found[0].text;
  ASSERT_EQ(summary.forecast.too_short.size(), 1U);
  const Forecast& forecast = summary.forecast.too_short[0];
  EXPECT_EQ(forecast.problems, 30U);
  EXPECT_FALSE(forecast.reached_share) << "no calls are known of these";
  EXPECT_GT(forecast.needed_s, 60);
  EXPECT_GT(forecast.reached, 0U);
  EXPECT_LT(forecast.reached, 10U);
  EXPECT_GT(summary.problems.decided, 0);
  EXPECT_LT(summary.problems.decided, 30);
  ASSERT_TRUE(summary.forecast.missing_s);
  EXPECT_GT(*summary.forecast.missing_s, 12);
}

TEST_F(SimulatedMessagesTest, TheSameHoldsUntilATimeOfDay) {
  options_.trials = kUnlimitedTrials;
  options_.until = simulation_.clock().wall() + std::chrono::seconds(12);
  const SweepSummary summary = sweep(sizes(30));
  EXPECT_EQ(notes_with(" of 30 shapes here; about ").size(), 1U);
  EXPECT_EQ(summary.forecast.too_short.size(), 1U);
}

TEST_F(SimulatedMessagesTest, ABudgetThatSufficesIsNotReported) {
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 600;
  const SweepSummary summary = sweep(sizes(3));
  EXPECT_TRUE(notes_with("shapes here").empty());
  EXPECT_TRUE(summary.forecast.too_short.empty());
  EXPECT_EQ(summary.problems.decided, summary.problems.planned);
}

TEST_F(SimulatedMessagesTest, WithoutALimitNothingIsReportedOfIt) {
  EXPECT_TRUE(sweep(sizes(3)).forecast.too_short.empty());
  EXPECT_TRUE(notes_with("shapes here").empty());
}

TEST_F(SimulatedMessagesTest, TheShareOfAModelIsThatOfItsCalls) {
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 12;
  std::vector<SweepProblem> problems{called("100000", 1000)};
  for (const std::string& n : sizes(29)) {
    problems.push_back(called(n, 1));
  }
  const SweepSummary summary = sweep_model(problems);
  ASSERT_EQ(summary.forecast.too_short.size(), 1U);
  EXPECT_GT(summary.forecast.too_short[0].reached_share.value(), 0.9);
  EXPECT_EQ(notes_with("% of the model's time; about ").size(), 1U);
}

// A resumed run needs time for the rest only, and counts its earlier results.
TEST_F(SimulatedMessagesTest, AResumedRunReportsTheRest) {
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 12;
  options_.record.resume_run = sweep(sizes(30)).run;
  notes_.clear();
  options_.budget_s = 24;
  const SweepSummary summary = sweep(sizes(30));
  ASSERT_EQ(summary.forecast.too_short.size(), 1U);
  EXPECT_NEAR(summary.forecast.too_short[0].limit_s, 12, 1);
  EXPECT_GT(summary.forecast.too_short[0].reached, 1U);
}

TEST_F(SimulatedMessagesTest, AnInterruptIsReportedAtOnceDuringATrial) {
  space_ = make_space({kEndless, kRight});
  options_.waits.kernel_timeout_s = 100;
  stop_at(30);
  EXPECT_TRUE(sweep().interrupted);
  expect_reported_once_at(30, "stopping after this trial, at most 1 min ");
}

TEST_F(SimulatedMessagesTest, AnInterruptIsReportedAtOnceWhileCompilersWork) {
  compile_s_ = 60;
  stop_at(10);
  EXPECT_TRUE(sweep().interrupted);
  expect_reported_once_at(10, kStopping);
}

TEST_F(SimulatedMessagesTest, AnInterruptIsReportedAtOnceWhileTheDeviceIsPrepared) {
  compile_s_ = 0.01;
  stop_at(1.1);
  EXPECT_TRUE(sweep().interrupted);
  expect_reported_once_at(1.1, kStopping);
}

TEST_F(SimulatedMessagesTest, AnInterruptIsReportedAtOnceDuringFinals) {
  space_ = make_space({kRight});
  options_.finals.rounds = options_.finals.min_rounds = 400;
  options_.finals.p_value = 1e-12;
  double stopped_s = 0;
  events_.view = [&](const SweepView& view) {
    if (!stop_ && view.devices.at(0).stage == "finals") {
      stop_ = true;
      stopped_s = simulation_.clock().elapsed_s();
    }
  };
  EXPECT_TRUE(sweep({"10000000", "20000000"}).interrupted);
  expect_reported_once_at(stopped_s, "stopping after these finals, at most ");
}

TEST_F(SimulatedMessagesTest, AnInterruptBeforeTheFirstTrialIsReported) {
  stop_ = true;
  EXPECT_TRUE(sweep().interrupted);
  expect_reported_once_at(0, kStopping);
}

TEST_F(SimulatedMessagesTest, TheModelsTimeIsOfAllItsProblems) {
  const SweepSummary summary = sweep_model({called("1000", 4), called("100000", 2)});
  ASSERT_EQ(summary.models.size(), 1U);
  const ModelResult& model = summary.models[0];
  EXPECT_EQ(model.total.problems, 2);
  EXPECT_EQ(model.total.at_default, 0);
  ASSERT_EQ(summary.phases.size(), 1U);
  EXPECT_DOUBLE_EQ(model.total.before_us, summary.phases[0].before_us);
  EXPECT_GT(model.total.speedup_low, 1) << "twice as many threads halve the time";
  EXPECT_LT(model.total.speedup_high, 2.1);
  EXPECT_TRUE(model.estimated.us.empty());
}

TEST_F(SimulatedMessagesTest, TheCurveEndsAtTheTimeOfTheSummary) {
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 12;
  std::vector<SweepProblem> problems;
  for (const std::string& n : sizes(30)) {
    problems.push_back(called(n, 3));
  }
  const SweepSummary summary = sweep_model(problems);
  ASSERT_EQ(summary.models.size(), 1U);
  const ModelResult& model = summary.models[0];
  ASSERT_GE(model.curve.size(), 3U);
  EXPECT_EQ(model.curve.front().elapsed_s, 0);
  EXPECT_DOUBLE_EQ(model.curve.front().model_us, model.curve.front().default_us) << "nothing was decided yet";
  EXPECT_NEAR(model.curve.back().model_us, model.total.after_us, 1e-6 * model.total.after_us);
  EXPECT_NEAR(model.curve.back().default_us, model.total.before_us, 1e-6 * model.total.before_us);
  EXPECT_NEAR(model.curve.back().elapsed_s, summary.times.wall_s, 0.2);
  EXPECT_GT(model.total.at_default, 0);
  EXPECT_GT(model.total.at_default_us, 0);
  EXPECT_FALSE(model.estimated.us.empty()) << "of what was not reached";
}

TEST_F(SimulatedMessagesTest, AResultOfTheSearchAloneIsProvisional) {
  space_ = make_space({kRight});
  options_.budget_s = 5;
  options_.finals.launches = 10'000'000;
  SweepView last;
  events_.view = [&](const SweepView& view) { last = view; };
  std::ignore = sweep({"100000"});
  EXPECT_EQ(last.provisional, std::vector<std::string>{"toy N=100000"});
  EXPECT_TRUE(last.no_time.empty());
}

}  // namespace
}  // namespace pascaline::testing
