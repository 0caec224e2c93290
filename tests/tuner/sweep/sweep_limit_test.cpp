#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/tuner/program.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"
#include "tuner/sweep/budget.hpp"

// Sweeps with a time limit, and what is told of time.
namespace pascaline::testing {
namespace {

class SweepLimitTest : public SimulatedSweepTest {
 protected:
  SweepLimitTest() { options_.trials = kUnlimitedTrials; }

  [[nodiscard]] std::vector<Winner> winners() const {
    return Store(database_, OpenMode::read_only).winners("toy", nullptr);
  }
};

TEST_F(SweepLimitTest, AReferenceThatTakesTooLongIsCutOffAndCostsNobodyATrial) {
  endless_references = true;
  options_.budget_s = 4;
  const SweepSummary summary = sweep({"1000"});
  EXPECT_LE(summary.times.wall_s, 4.1);
  EXPECT_EQ(summary.ok, 0);
  EXPECT_EQ(summary.problems.not_reached, std::vector<std::string>{"toy N=1000"});
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    EXPECT_EQ(trial.trial.status, TrialStatus::compile_failed) << trial.trial.config.text();
  }
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
  const auto view = read_session_progress(Store(database_, OpenMode::read_only).sessions().at(0).progress);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->not_reached, summary.problems.not_reached);
}

TEST_F(SweepLimitTest, AProblemThatGotNoTimeIsToldWhenThatIsKnown) {
  endless_references = true;
  options_.budget_s = 4;
  std::vector<std::string> told;
  bool seen_running = false;
  events_.note = [&](const std::string& note) { told.push_back(note); };
  events_.view = [&](const SweepView& view) {
    seen_running = seen_running || (view.not_reached.empty() && !view.no_time.empty() &&
                                    view.no_time.front().find(": no trial in its turn of ") != std::string::npos);
  };
  const SweepSummary summary = sweep({"1000", "2000"});
  EXPECT_EQ(summary.problems.not_reached.size(), 2U);
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const std::string& note) {
    return note.find("no trial in its turn of ") != std::string::npos && note.find("toy N=") != std::string::npos;
  }));
  EXPECT_TRUE(seen_running) << "before the sweep ended";
  const ProgramResult status = run_program(folder_.path(), {"status", "--db", database_.string()});
  EXPECT_NE(status.out.find("no time so far ("), std::string::npos) << status.out;
}

TEST_F(SweepLimitTest, ALaunchThatDoesNotEndIsCutOffAndNotHeldAgainstItsConfiguration) {
  space_ = make_space({kEndless});
  options_.budget_s = 4;
  const SweepSummary summary = sweep({"1000"});
  EXPECT_LE(summary.times.wall_s, 5.1) << "a second is given to a launch that is about to end";
  EXPECT_EQ(summary.trials, 0) << "its 60 s were not over";
  EXPECT_EQ(summary.problems.not_reached, std::vector<std::string>{"toy N=1000"});
  EXPECT_TRUE(winners().empty());
  expect_sound();
}

TEST_F(SweepLimitTest, ADefaultThatFailsIsReplacedByTheNearestThatIsUsable) {
  space_ = make_space({kNotANumber, kRight});
  options_.trials = 100;
  SweepEvents& events = events_;
  std::string why;
  std::string baseline;
  events.winner = [&](const std::string&, const SweepProblem&, const FinalsResult& result, int) {
    why = result.shown.baseline_why;
    baseline = result.baseline_trial ? result.trials[*result.baseline_trial].config.text() : "";
  };
  std::ignore = sweep();
  ASSERT_EQ(winners().size(), 1U);
  const Winner winner = winners()[0];
  ASSERT_TRUE(winner.baseline);
  EXPECT_EQ(baseline, toy_config(64, kRight).text()) << "two that are as near are wrong, too";
  EXPECT_NE(why.find("wrong_result"), std::string::npos) << why;
  const auto stand_in = Store(database_, OpenMode::read_only).stand_in_of(winner.trial_id);
  ASSERT_TRUE(stand_in);
  EXPECT_EQ(stand_in->config, toy_config(64, kRight));
  EXPECT_NE(stand_in->why.find("wrong_result"), std::string::npos) << stand_in->why;
  const std::string db = database_.string();
  const auto shown = json_of(run_program(folder_.path(), {"show", "--db", db, "--json"}));
  EXPECT_TRUE(shown.at(0).at("baseline").get<std::string>().starts_with(baseline + " (the default: wrong_result"));
  const std::string report = run_program(folder_.path(), {"report", "--db", db, "-f", "json"}).out;
  EXPECT_NE(report.find("\"baseline_why\":\"wrong_result"), std::string::npos) << report.substr(0, 3000);
  const std::string text = run_program(folder_.path(), {"report", "--db", db, "-f", "md"}).out;
  EXPECT_NE(text.find("of `" + baseline + "`, the usable configuration nearest to the default (wrong"),
            std::string::npos)
      << text;
}

TEST_F(SweepLimitTest, ADefaultThatIsUsableHasNoStandIn) {
  options_.trials = 100;
  std::ignore = sweep();
  ASSERT_EQ(winners().size(), 1U);
  EXPECT_FALSE(Store(database_, OpenMode::read_only).stand_in_of(winners()[0].trial_id));
}

TEST_F(SweepLimitTest, TimeIsToldFromEarlierSweepsOnly) {
  space_ = make_space({kRight});
  options_.trials = 100;
  options_.measure.min_samples = options_.measure.max_samples = 1'000'000;
  options_.measure.budget_ms = 500;
  options_.measure.race_error = 0;
  std::vector<std::string> notes;
  events_.note = [&](const std::string& text) { notes.push_back(text); };
  EXPECT_FALSE(sweep({"1000000"}).forecast.expected_s);
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(),
                          [](const std::string& note) { return note.find("duration unknown") != std::string::npos; }));
  TrialCost cost;
  {
    Store store(database_, OpenMode::read_write);
    cost = store.trial_costs(store.device_id(store.sessions().at(0).device), "toy");
  }
  const std::optional<double> stored_s = estimate_s({3, 1}, cost);  // three blocks of one problem
  ASSERT_TRUE(stored_s);
  EXPECT_GT(*stored_s, 1) << "three trials of half a second each";
  const SweepSummary summary = sweep({"2000000"});
  ASSERT_TRUE(summary.forecast.expected_s);
  EXPECT_DOUBLE_EQ(*summary.forecast.expected_s, *stored_s);
  EXPECT_GT(summary.times.wall_s, 1);
}

}  // namespace
}  // namespace pascaline::testing
