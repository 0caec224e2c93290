#include "tuner/search/fresh_points.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

TEST(FreshPointsTest, DrawsWhatIsLeftAndThenNothing) {
  const SearchDomain domain = full_domain({3, 4});
  FreshPoints points(domain, 1);
  EXPECT_TRUE(points.note({2, 3}));
  EXPECT_FALSE(points.note({2, 3}));
  for (int i = 0; i < 11; ++i) {
    const auto point = points.draw();
    ASSERT_TRUE(point);
    EXPECT_FALSE(points.seen(*point));
    EXPECT_TRUE(points.note(*point));
  }
  EXPECT_EQ(points.seen(), 12U);
  EXPECT_FALSE(points.draw());
  EXPECT_FALSE(points.draw());
}

TEST(FreshPointsTest, PointThatIsNotNotedMayComeAgain) {
  const SearchDomain domain = full_domain({2});
  FreshPoints points(domain, 1);
  std::map<Point, int> counts;
  for (int i = 0; i < 1000; ++i) {
    ++counts[points.draw().value()];
  }
  EXPECT_LT(chi_squared(counts, 2, 1000), chi_squared_limit(1));
}

// Also the last ones drawn, and where some numbers stand for nothing valid.
TEST(FreshPointsTest, EveryDrawIsUniformAmongTheRest) {
  nlohmann::json text = bare_space();
  add_parameter(text, "A", {1, 2, 3});
  add_parameter(text, "B", {1, 2, 3});
  add_constraint(text, "A <= B");
  const BoundDomain bound(text, 3);
  ASSERT_FALSE(bound.domain.exact());
  std::vector<std::map<Point, int>> by_turn(6);
  constexpr int kRounds = 1500;
  for (int seed = 1; seed <= kRounds; ++seed) {
    FreshPoints points(bound.domain, static_cast<std::uint64_t>(seed));
    for (auto& counts : by_turn) {
      const Point point = points.draw().value();
      points.note(point);
      ++counts[point];
    }
    EXPECT_FALSE(points.draw());
  }
  for (const auto& counts : by_turn) {
    EXPECT_LT(chi_squared(counts, 6, kRounds), chi_squared_limit(5));
  }
}

// A domain whose numbers are too many to be shuffled: it draws until it finds none any more.
TEST(FreshPointsTest, FewValidAmongManyNumbers) {
  nlohmann::json text = bare_space();
  for (const char* name : {"A", "B", "C"}) {
    nlohmann::json values = nlohmann::json::array();
    for (int i = 0; i < 150; ++i) {
      values.push_back(i);
    }
    add_parameter(text, name, values);
  }
  add_constraint(text, "A * 3 + B * 5 + C * 7 <= 70");
  const BoundDomain bound(text, 150);
  ASSERT_FALSE(bound.domain.exact());
  ASSERT_GT(bound.domain.combinations(), 2e6);
  const std::size_t valid = enumerated(bound.bound).size();
  ASSERT_GT(valid, 300U);
  FreshPoints points(bound.domain, 1);
  for (int i = 0; i < 20; ++i) {
    const auto point = points.draw();
    ASSERT_TRUE(point);
    EXPECT_TRUE(bound.domain.contains(*point) && points.note(*point));
  }
}

}  // namespace
}  // namespace pascaline::testing
