#include "tuner/replay/replay.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "core/error.hpp"
#include "tests/tuner/replay/recorded.hpp"

namespace pascaline::testing {
namespace {

class ReplayTest : public ::testing::Test {
 protected:
  ReplayOptions options_;
  std::atomic<bool> stop_{false};

  ReplayTest() {
    options_.searchers = {"random"};
    options_.budgets = {5, 20, 60};
    options_.repeats = 8;
  }
  [[nodiscard]] std::vector<ReplayResult> run(const std::vector<RecordedSpace>& spaces) const {
    return replay(spaces, options_, {}, stop_);
  }
  static void expect_same(const std::vector<ReplayResult>& a, const std::vector<ReplayResult>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].space, b[i].space);
      EXPECT_EQ(a[i].searcher, b[i].searcher);
      EXPECT_EQ(a[i].score, b[i].score);
      EXPECT_EQ(a[i].score_curve, b[i].score_curve);
      EXPECT_EQ(a[i].evaluations_to_3_percent, b[i].evaluations_to_3_percent);
      for (const auto& [budget, ratio] : a[i].ratios) {
        const Quartiles& other = b[i].ratios.at(budget);
        EXPECT_EQ(ratio.low, other.low);
        EXPECT_EQ(ratio.median, other.median);
        EXPECT_EQ(ratio.high, other.high);
      }
    }
  }
};

TEST_F(ReplayTest, ThreadsDoNotMatter) {
  options_.searchers = {"random", "local", "annealing", "genetic", "model"};
  options_.budgets = {5, 15};
  options_.repeats = 4;
  options_.batch = 3;
  options_.score = false;
  const std::vector<RecordedSpace> spaces{recorded_bowl("one", 10), recorded_times({5, 4, 0, 3, 6, 9, 8, 7}, 2)};
  const auto alone = run(spaces);
  ASSERT_EQ(alone.size(), 10U);
  EXPECT_EQ(alone[0].space, "one");
  EXPECT_EQ(alone[5].space, "times");
  EXPECT_EQ(alone[5].searcher, "random");
  options_.jobs = 3;
  expect_same(alone, run(spaces));
  options_.jobs = 50;
  expect_same(alone, run(spaces));
}

TEST_F(ReplayTest, SeedsDiffer) {
  options_.repeats = 1;
  options_.score = false;
  const auto one = run({recorded_bowl("bowl")});
  expect_same(one, run({recorded_bowl("bowl")}));
  options_.seed = 2;
  EXPECT_NE(one[0].ratios.at(20).median, run({recorded_bowl("bowl")})[0].ratios.at(20).median);
}

TEST_F(ReplayTest, RepeatsHaveSeedsOfTheirOwn) {
  options_.repeats = 9;
  options_.score = false;
  const auto result = run({recorded_bowl("bowl")})[0];
  EXPECT_LT(result.ratios.at(20).low, result.ratios.at(20).high);
}

TEST_F(ReplayTest, RatiosFallToOne) {
  options_.searchers = {"exhaustive", "random", "local", "annealing", "genetic"};
  options_.budgets = {1, 5, 50, 512, 5000};
  for (const auto& result : run({recorded_bowl("bowl", 30)})) {
    double before = std::numeric_limits<double>::infinity();
    for (const auto& [budget, ratio] : result.ratios) {
      EXPECT_LE(ratio.median, before) << result.searcher << ", " << budget;
      EXPECT_GE(ratio.low, 1);
      EXPECT_LE(ratio.low, ratio.median);
      EXPECT_LE(ratio.median, ratio.high);
      before = ratio.median;
    }
    EXPECT_EQ(result.ratios.at(512).high, 1) << result.searcher << " has seen all of the space";
    EXPECT_EQ(result.ratios.at(5000).high, 1) << result.searcher;
  }
}

TEST_F(ReplayTest, FailuresCountAsEvaluations) {
  options_.searchers = {"exhaustive"};
  options_.budgets = {1, 2, 3, 4, 6};
  options_.score = false;
  const auto result = run({recorded_times({0, 0, 40, 20, 0, 10})})[0];
  EXPECT_TRUE(std::isinf(result.ratios.at(1).median));
  EXPECT_TRUE(std::isinf(result.ratios.at(2).median)) << "two have failed, and nothing has worked";
  EXPECT_EQ(result.ratios.at(3).median, 4);
  EXPECT_EQ(result.ratios.at(4).median, 2);
  EXPECT_EQ(result.ratios.at(6).median, 1);
  EXPECT_EQ(result.evaluations_to_3_percent, 6);
}

TEST_F(ReplayTest, EvaluationsToThreePercent) {
  options_.searchers = {"exhaustive"};
  options_.budgets = {3};
  options_.score = false;
  EXPECT_EQ(run({recorded_times({104, 103, 100, 200})})[0].evaluations_to_3_percent, 2);
  EXPECT_TRUE(std::isinf(run({recorded_times({104, 105, 106, 100})})[0].evaluations_to_3_percent))
      << "it ended before it came so near";
}

TEST_F(ReplayTest, ScoreMayTakeMoreThanTheBudgets) {
  options_.budgets = {2};
  options_.repeats = 40;
  const auto with = run({recorded_bowl("bowl")})[0];
  options_.score = false;
  const auto without = run({recorded_bowl("bowl")})[0];
  EXPECT_EQ(with.ratios.at(2).median, without.ratios.at(2).median);
  ASSERT_TRUE(with.score);
  EXPECT_NEAR(*with.score, 0, 0.3);
  EXPECT_FALSE(without.score);
  EXPECT_TRUE(without.score_curve.empty());
  EXPECT_GT(without.proposal_ms, 0);
}

TEST_F(ReplayTest, BatchesKeepTheirOrder) {
  options_.searchers = {"exhaustive"};
  options_.score = false;
  const auto single = run({recorded_bowl("bowl", 20)});
  options_.batch = 7;
  const auto batched = run({recorded_bowl("bowl", 20)});
  for (const int budget : options_.budgets) {
    EXPECT_EQ(single[0].ratios.at(budget).median, batched[0].ratios.at(budget).median) << budget;
  }
}

TEST_F(ReplayTest, OneConfigurationThatWorks) {
  options_.searchers = {"exhaustive", "random", "model", "local", "annealing", "genetic", "auto"};
  for (const auto& result : run({recorded_times({0, 7, 0}), recorded_times({7})})) {
    EXPECT_EQ(result.ratios.at(5).median, 1) << result.searcher;
    EXPECT_FALSE(result.score.has_value()) << result.searcher << ": nothing can be found faster or later";
  }
}

TEST_F(ReplayTest, FaultsComeOutOfTheThreads) {
  options_.jobs = 3;
  EXPECT_THROW(std::ignore = run({recorded_bowl("bowl"), recorded_times({0, 0})}), Error);
  options_.searchers = {"random", "tabu"};
  try {
    std::ignore = run({recorded_bowl("bowl")});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("unknown searcher 'tabu'"), std::string::npos) << error.what();
  }
}

TEST_F(ReplayTest, ResultsAreToldAsTheyCome) {
  options_.searchers = {"random", "local"};
  options_.jobs = 2;
  std::vector<std::string> told;
  const auto results = replay(
      {recorded_bowl("a"), recorded_bowl("b")}, options_,
      [&](const ReplayResult& result) { told.push_back(result.space + result.searcher); }, stop_);
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, (std::vector<std::string>{"alocal", "arandom", "blocal", "brandom"}));
  EXPECT_EQ(results.size(), 4U);
}

TEST_F(ReplayTest, StopsWithWhatIsDone) {
  options_.searchers = {"exhaustive", "random", "local"};
  const auto results = replay(
      {recorded_bowl("bowl")}, options_, [&](const ReplayResult&) { stop_ = true; }, stop_);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].searcher, "exhaustive");
  EXPECT_TRUE(run({recorded_bowl("bowl")}).empty());
}

}  // namespace
}  // namespace pascaline::testing
