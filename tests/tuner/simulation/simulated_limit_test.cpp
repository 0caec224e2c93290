#include <gtest/gtest.h>

#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/tuner/simulation/simulated_fixture.hpp"

// Simulated sweeps with a time limit.
namespace pascaline::testing {
namespace {

class SimulatedLimitTest : public SimulatedSweepTest {
 protected:
  SimulatedLimitTest() { options_.trials = kUnlimitedTrials; }

  [[nodiscard]] std::vector<Winner> winners() const {
    return Store(database_, OpenMode::read_only).winners("toy", nullptr);
  }
};

TEST_F(SimulatedLimitTest, FinalsAreOverInTime) {
  space_ = make_space({kRight});
  options_.budget_s = 6;
  options_.finals.rounds = options_.finals.min_rounds = 1'000'000;  // minutes
  options_.finals.p_value = 1e-12;
  const SweepSummary summary = sweep({"100000"});
  EXPECT_LE(summary.times.wall_s, 6.1);
  EXPECT_EQ(summary.problems.done, 1);
  ASSERT_EQ(winners().size(), 1U);
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

TEST_F(SimulatedLimitTest, FinalsForWhichThereIsNoTimeAreReplacedByTheSearchsTrials) {
  space_ = make_space({kRight});
  options_.budget_s = 5;
  options_.finals.launches = 10'000'000;
  const SweepSummary summary = sweep({"100000"});
  EXPECT_LE(summary.times.wall_s, 5.1);
  EXPECT_TRUE(stored(TrialStage::finals).empty());
  ASSERT_EQ(winners().size(), 1U);
  EXPECT_EQ(winners()[0].trial.stage, TrialStage::search);
  ASSERT_TRUE(winners()[0].baseline);
  EXPECT_GE(winners()[0].confidence, 0.5);
  EXPECT_LE(winners()[0].confidence, 0.95);
}

// More time than their usual share, and all that is left suffices.
TEST_F(SimulatedLimitTest, FinalsOfASearchThatIsOverGetTheTimeThatTheyNeed) {
  space_ = make_space({kRight});
  options_.trials = 3;
  options_.budget_s = 10;
  options_.search.deepen = false;
  int decisions = 0;
  events_.winner = [&](const std::string&, const SweepProblem&, const FinalsResult&, int) { ++decisions; };
  const SweepSummary summary = sweep({"2000000"});
  EXPECT_EQ(summary.trials, 3);
  EXPECT_FALSE(stored(TrialStage::finals).empty());
  EXPECT_EQ(decisions, 1);
}

TEST_F(SimulatedLimitTest, FinalsThatDoNotFitAreNotTriedAgainAndAgain) {
  space_ = make_space({kRight});
  options_.trials = 3;
  options_.budget_s = 10;
  options_.finals.launches = 10'000'000;
  int decisions = 0;
  events_.winner = [&](const std::string&, const SweepProblem&, const FinalsResult&, int) { ++decisions; };
  std::ignore = sweep({"2000000"});
  EXPECT_TRUE(stored(TrialStage::finals).empty());
  EXPECT_EQ(decisions, 1);
}

TEST_F(SimulatedLimitTest, EveryProblemGetsItsDefaultBeforeAnyGetsAnotherTurn) {
  nlohmann::json json = toy_json({kRight});
  std::vector<int> blocks;
  for (int block = 32; block <= 1024; block += 32) {
    blocks.push_back(block);
  }
  json["parameters"][0]["values"] = blocks;
  write_toys(folder_.path(), {json});
  space_ = Space::load(folder_ / "toy.json");
  options_.budget_s = 60;
  options_.measure.min_samples = options_.measure.max_samples = 1'000'000;
  options_.measure.budget_ms = 200;
  options_.measure.race_error = 0;
  options_.finals.rounds = options_.finals.min_rounds = 1'000'000;
  options_.finals.p_value = 1e-12;
  const std::vector<std::string> sizes{"1000000", "1000001", "1000002", "1000003", "1000004", "1000005"};
  const SweepSummary summary = sweep(sizes);
  EXPECT_TRUE(summary.problems.not_reached.empty()) << summary.problems.not_reached.size();
  std::map<std::string, int> trials;
  std::vector<std::string> turns;
  for (const StoredTrial& stored : stored(TrialStage::search)) {
    const std::string problem = stored.trial.problem.text();
    if (trials[problem]++ == 0) {
      EXPECT_TRUE(stored.trial.is_default) << problem;
    }
    if (turns.empty() || turns.back() != problem) {
      turns.push_back(problem);
    }
  }
  ASSERT_GE(turns.size(), sizes.size());
  EXPECT_EQ(std::set<std::string>(turns.begin(), turns.begin() + 6).size(), sizes.size());
  EXPECT_LE(summary.times.wall_s, 60.1);
}

// A configuration that does not compile, before the device turned to its problem, changes nothing of that.
TEST_F(SimulatedLimitTest, AShortSweepTunesTheShapesThatTakeMostOfTheTime) {
  options_.budget_s = 12;
  const SweepSummary summary = sweep({"10", "20", "30", "1000000", "2000000", "40", "50", "60", "70", "80"});
  EXPECT_LE(summary.times.wall_s, 13) << "what is on the device may take a second to its end";
  std::set<std::string> decided;
  for (const Winner& winner : winners()) {
    decided.insert(winner.trial.problem.text());
  }
  EXPECT_TRUE(decided.contains("toy N=2000000") && decided.contains("toy N=1000000"));
  EXPECT_FALSE(summary.problems.not_reached.empty());
}

}  // namespace
}  // namespace pascaline::testing
