#include "tuner/fleet/partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "core/error.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

double sum_of(const std::vector<std::size_t>& part, const std::vector<double>& costs) {
  return std::accumulate(part.begin(), part.end(), 0.0,
                         [&](double sum, std::size_t index) { return sum + costs[index]; });
}

SweepProblem problem_of(std::int64_t n, bool between = false) {
  SweepProblem problem{{"toy", {{"N", n}}, {}}, between ? 0.0 : 1.0, ""};
  problem.between = between;
  return problem;
}

std::vector<Space> toy_spaces() { return {Space::parse(toy_json().dump(), "toy.json")}; }

std::string shard_error(int count, const std::vector<SweepProblem>& problems) {
  try {
    (void)divide(problems, toy_spaces(), {}, count);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PartitionTest, EveryIndexIsInExactlyOneShardWhateverTheCosts) {
  std::mt19937 random(3);  // NOLINT(cert-msc51-cpp): the same each time
  for (int round = 0; round < 200; ++round) {
    std::vector<double> costs(1 + random() % 40);
    for (double& cost : costs) {
      cost = static_cast<double>(1 + random() % 1000);
    }
    const int count = 1 + static_cast<int>(random() % costs.size());
    const auto parts = partition(costs, count);
    ASSERT_EQ(parts.size(), static_cast<std::size_t>(count));
    std::vector<std::size_t> all;
    double largest = 0;
    for (const auto& part : parts) {
      EXPECT_FALSE(part.empty());
      EXPECT_TRUE(std::ranges::is_sorted(part));
      all.insert(all.end(), part.begin(), part.end());
      largest = std::max(largest, sum_of(part, costs));
    }
    std::ranges::sort(all);
    std::vector<std::size_t> each(costs.size());
    std::iota(each.begin(), each.end(), std::size_t{0});
    EXPECT_EQ(all, each);
    // The best possible maximum is no less than the mean and the largest cost.
    const double mean = std::accumulate(costs.begin(), costs.end(), 0.0) / count;
    const double lower_bound = std::max(mean, *std::ranges::max_element(costs));
    EXPECT_LE(largest, mean + *std::ranges::max_element(costs) * (1 - 1.0 / count) + 1e-9);
    EXPECT_GE(largest, lower_bound - 1e-9);
    EXPECT_EQ(parts, partition(costs, count));
  }
}

TEST(PartitionTest, TheLargestGoFirst) {
  const std::vector<double> costs{1, 1, 1, 1, 4, 4};
  EXPECT_EQ(partition(costs, 3), (std::vector<std::vector<std::size_t>>{{4}, {5}, {0, 1, 2, 3}}));
}

TEST(PartitionTest, MoreShardsThanCostsLeaveSomeEmpty) {
  const auto parts = partition(std::vector<double>{2, 1}, 3);
  EXPECT_EQ(parts, (std::vector<std::vector<std::size_t>>{{0}, {1}, {}}));
}

TEST(PartitionTest, CostsOfOneGroupGoToDifferentShards) {
  const std::vector<double> costs{9, 2, 2, 2};
  EXPECT_EQ(partition(costs, 3, std::vector<std::size_t>{0, 1, 1, 1}),
            (std::vector<std::vector<std::size_t>>{{0, 3}, {1}, {2}}));
  EXPECT_EQ(partition(costs, 3), (std::vector<std::vector<std::size_t>>{{0}, {1, 3}, {2}}));
}

// A space of 400 configurations.
std::vector<Space> large_spaces() {
  nlohmann::json json = toy_json();
  std::vector<int> values(400);
  std::iota(values.begin(), values.end(), 1);
  json["parameters"].push_back({{"name", "MANY"}, {"values", values}, {"default", 1}, {"description", "more of them"}});
  return {Space::parse(json.dump(), "toy.json")};
}

TEST(PartitionTest, AProblemThatTakesLongerThanAShardsShareIsDivided) {
  SweepOptions options;
  options.trials = 200;
  const std::vector<SweepProblem> problems{problem_of(1000), problem_of(2'000'000'000), problem_of(1100)};
  const DividedWork divided = divide(problems, large_spaces(), options, 4);
  ASSERT_EQ(divided.shards.size(), 4U);
  std::set<int> parts;
  std::multiset<std::int64_t> whole;
  for (const auto& shard : divided.shards) {
    std::set<std::string> of_shard;
    for (const SweepProblem& problem : shard) {
      EXPECT_TRUE(of_shard.insert(problem.problem.text()).second) << "two parts of one problem in a shard";
      if (problem.part.is_whole()) {
        whole.insert(problem.problem.dimension("N"));
      } else {
        EXPECT_EQ(problem.problem.dimension("N"), 2'000'000'000);
        EXPECT_EQ(problem.part.count, 4);
        EXPECT_TRUE(parts.insert(problem.part.index).second);
      }
    }
  }
  EXPECT_EQ(parts, (std::set<int>{1, 2, 3, 4}));
  EXPECT_EQ(whole, (std::multiset<std::int64_t>{1000, 1100}));
  const auto [least, most] = std::ranges::minmax(divided.expected_s);
  EXPECT_LT(most, 2 * least);
}

TEST(PartitionTest, ProblemsStayWholeWhereDividingGainsLittle) {
  SweepOptions options;
  options.trials = 200;
  const std::vector<SweepProblem> problems{problem_of(1000), problem_of(1010), problem_of(1020), problem_of(1030)};
  for (const auto& shard : divide(problems, large_spaces(), options, 2).shards) {
    EXPECT_EQ(shard.size(), 2U);
    for (const SweepProblem& problem : shard) {
      EXPECT_TRUE(problem.part.is_whole());
    }
  }
}

TEST(PartitionTest, OneProblemIsSharedByAsManyShardsAsItsTrialsAllow) {
  SweepOptions options;
  options.trials = 60;
  const std::vector<SweepProblem> one{problem_of(1000)};
  const DividedWork divided = divide(one, large_spaces(), options, 3);
  for (int shard = 0; shard < 3; ++shard) {
    ASSERT_EQ(divided.shards[static_cast<std::size_t>(shard)].size(), 1U);
    EXPECT_EQ(divided.shards[static_cast<std::size_t>(shard)][0].part, (SpacePart{shard + 1, 3}));
  }
  EXPECT_THROW((void)divide(one, large_spaces(), options, 4), Error);
}

TEST(PartitionTest, LargerProblemsAndMoreTrialsCostMore) {
  const Space space = toy_spaces().front();
  EXPECT_GT(expected_cost_s(problem_of(1'000'000'000), space, 3), expected_cost_s(problem_of(1000), space, 3));
  EXPECT_GT(expected_cost_s(problem_of(1000), space, 2), expected_cost_s(problem_of(1000), space, 1));
  // The space has three configurations, however many trials are allowed.
  EXPECT_EQ(expected_cost_s(problem_of(1000), space, 3), expected_cost_s(problem_of(1000), space, kUnlimitedTrials));
}

TEST(PartitionTest, ShapesInBetweenGoWhereTheirNeighboursAre) {
  const std::vector<SweepProblem> problems{problem_of(1000), problem_of(64000), problem_of(1500, true),
                                           problem_of(50000, true)};
  const DividedWork divided = divide(problems, toy_spaces(), {}, 2);
  ASSERT_EQ(divided.shards.size(), 2U);
  for (const auto& shard : divided.shards) {
    ASSERT_EQ(shard.size(), 2U);
    EXPECT_FALSE(shard[0].between);
    EXPECT_TRUE(shard[1].between);
    EXPECT_EQ(shard[0].problem.dimension("N") == 1000, shard[1].problem.dimension("N") == 1500);
  }
}

TEST(PartitionTest, MoreShardsThanProblemsAreRefused) {
  EXPECT_EQ(shard_error(3, {problem_of(1), problem_of(2), problem_of(3, true)}),
            "3 shards are more than there is to divide: the plan has 2 problems, and a problem is shared only in parts "
            "of 20 trials or more; give at most 2");
  EXPECT_EQ(shard_error(2, {problem_of(1), problem_of(2)}), "");
}

TEST(PartitionTest, AFleetIsNamedAfterWhatItTunesAndHow) {
  const std::vector<SweepProblem> problems{problem_of(1), problem_of(2), problem_of(3)};
  SweepOptions options;
  const std::string id = fleet_id(problems, options, 2);
  EXPECT_EQ(id.size(), 16U);
  std::set<std::string> ids{id};
  ids.insert(fleet_id(problems, options, 3));
  ids.insert(fleet_id(std::span(problems).first(2), options, 2));
  options.search.seed = 2;
  ids.insert(fleet_id(problems, options, 2));
  options = {};
  options.trials = 7;
  ids.insert(fleet_id(problems, options, 2));
  options = {};
  options.search.searcher = "random";
  ids.insert(fleet_id(problems, options, 2));
  EXPECT_EQ(ids.size(), 6U);
  options = {};
  options.devices = {"cuda:3"};
  options.compile.jobs = 99;
  std::vector<SweepProblem> more = problems;
  more.push_back(problem_of(4, true));
  EXPECT_EQ(fleet_id(more, options, 2), id) << "neither the machine nor shapes in between belong to it";
}

}  // namespace
}  // namespace pascaline::testing
