#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

// Six parameters of 32 values, 10^9 combinations, of which those with the sum 0 or 3 are valid: 57.
nlohmann::json small_sums() {
  nlohmann::json text = bare_space();
  nlohmann::json values = nlohmann::json::array();
  for (int value = 0; value < 32; ++value) {
    values.push_back(value);
  }
  std::string sum;
  for (int i = 0; i < 6; ++i) {
    add_parameter(text, "P" + std::to_string(i), values);
    sum += (i == 0 ? "P" : " + P") + std::to_string(i);
  }
  add_constraint(text, sum + " == 3 || " + sum + " == 0");
  return text;
}

// A hundred flags, no two neighbours of which may be set: a great many are valid, hardly any of what is drawn is.
nlohmann::json flags_apart() {
  nlohmann::json text = bare_space();
  for (int i = 0; i < 100; ++i) {
    add_parameter(text, "P" + std::to_string(i), {0, 1});
  }
  for (int i = 0; i < 99; ++i) {
    add_constraint(text, "P" + std::to_string(i) + " + P" + std::to_string(i + 1) + " <= 1");
  }
  return text;
}

TEST(SparseSpaceTest, EachPartIsDrawnFromWhereDrawsAreGivenUp) {
  const BoundDomain bound(small_sums());
  PointSet all;
  std::size_t of_parts = 0;
  for (int part = 1; part <= 2; ++part) {
    const SearchDomain domain(bound.bound, {part, 2}, 6);
    SearchRandom random(1);
    PointSet seen;
    for (int i = 0; i < 400; ++i) {
      const auto point = domain.sample(random);
      ASSERT_TRUE(point && domain.contains(*point));
      seen.insert(*point);
    }
    of_parts += seen.size();
    all.insert(seen.begin(), seen.end());
  }
  EXPECT_EQ(all.size(), 57U);
  EXPECT_EQ(of_parts, 57U);
}

TEST(SparseSpaceTest, EveryConfigurationIsDrawnAboutAsOften) {
  const BoundDomain bound(small_sums());
  ASSERT_FALSE(bound.domain.exact());
  SearchRandom random(1);
  std::map<Point, int> counts;
  constexpr int kEach = 400;
  for (int i = 0; i < 57 * kEach; ++i) {
    const auto point = bound.domain.sample(random);
    ASSERT_TRUE(point && bound.domain.contains(*point));
    ++counts[*point];
  }
  EXPECT_EQ(counts.size(), 57U);
  for (const auto& [point, count] : counts) {  // steps of a walk hang together: more scatter than of free draws
    EXPECT_GT(count, kEach / 2) << point_text(point);
    EXPECT_LT(count, kEach * 2) << point_text(point);
  }
}

TEST(SparseSpaceTest, DrawsDoNotDependOnWhatWasDrawnElsewhere) {
  std::vector<Point> runs[2];
  for (std::vector<Point>& run : runs) {
    const BoundDomain bound(flags_apart());
    SearchRandom random(5);
    for (int i = 0; i < 20; ++i) {
      run.push_back(bound.domain.sample(random).value());
    }
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0].front(), runs[0].back());
}

class SparseSearchTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SparseSearchTest, ProposesBeforeAnythingWasObserved) {
  const BoundDomain bound(flags_apart());
  const auto searcher = make_searcher(GetParam(), bound.domain, {});
  const std::vector<Point> out = searcher->propose(8);
  EXPECT_EQ(out.size(), 8U);
  for (const Point& point : out) {
    EXPECT_TRUE(bound.domain.contains(point));
  }
}

TEST_P(SparseSearchTest, FindsMoreAsItGoes) {
  const BoundDomain flags(flags_apart());
  const auto by_flags = [](const Point& point) {
    return Observation{TrialStatus::ok, 100.0 - static_cast<double>(std::count(point.begin(), point.end(), 1))};
  };
  EXPECT_EQ(run_search(GetParam(), flags.domain, by_flags, 1, 30).size(), 30U);
  const BoundDomain sums(small_sums());
  const auto by_first = [](const Point& point) { return Observation{TrialStatus::ok, 10.0 + point.at(0)}; };
  EXPECT_EQ(run_search(GetParam(), sums.domain, by_first, 1, 100).size(), 57U) << "all there are";
}

TEST_P(SparseSearchTest, OnlyTheDefaultIsValid) {
  nlohmann::json text = small_sums();
  add_constraint(text, "P0 + P1 + P2 + P3 + P4 + P5 != 3");
  const BoundDomain bound(text);
  const auto same = [](const Point& /*point*/) { return Observation{TrialStatus::ok, 1.0}; };
  EXPECT_EQ(run_search(GetParam(), bound.domain, same, 1, 10), (std::vector<Point>{Point(6, 0)}));
}

INSTANTIATE_TEST_SUITE_P(Searchers, SparseSearchTest,
                         ::testing::Values("auto", "genetic", "local", "annealing", "random"));

}  // namespace
}  // namespace pascaline::testing
