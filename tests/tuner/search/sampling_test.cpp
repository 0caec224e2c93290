#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>

#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

// Ties A with B and C with D, and leaves E alone; the launch ties A with E where `tied`.
nlohmann::json tied_space(bool tied) {
  nlohmann::json text = bare_space();
  for (const char* name : {"A", "B", "C", "D"}) {
    add_parameter(text, name, {1, 2, 3, 4});
  }
  add_parameter(text, "E", {1, 2, 3});
  add_constraint(text, "A <= B");
  add_constraint(text, "(C * D) % 2 == 0");
  if (tied) {
    text["launch"]["block"] = {"A * 128", "E"};
  }
  return text;
}

void expect_uniform(const SearchDomain& domain, const std::vector<Point>& valid, std::uint64_t seed) {
  SearchRandom random(seed);
  std::map<Point, int> counts;
  const double draws = 25 * static_cast<double>(valid.size());
  for (int i = 0; i < static_cast<int>(draws); ++i) {
    const auto point = domain.sample(random);
    ASSERT_TRUE(point);
    ASSERT_TRUE(domain.contains(*point)) << point_text(*point);
    ++counts[*point];
  }
  EXPECT_LT(chi_squared(counts, valid.size(), draws), chi_squared_limit(static_cast<double>(valid.size() - 1)));
}

TEST(SamplingTest, UniformOverListedGroups) {
  const BoundDomain bound(tied_space(false));
  ASSERT_TRUE(bound.domain.exact());
  expect_uniform(bound.domain, enumerated(bound.bound), 1);
}

TEST(SamplingTest, UniformOverGroupsListedInPart) {
  for (const std::size_t most_tuples : {1U, 3U, 8U}) {
    const BoundDomain bound(tied_space(true), most_tuples);
    ASSERT_FALSE(bound.domain.exact());
    expect_uniform(bound.domain, enumerated(bound.bound), most_tuples);
  }
}

TEST(SamplingTest, UniformOverRecordedPoints) {
  const BoundDomain bound(tied_space(true));
  const std::vector<Point> valid = enumerated(bound.bound);
  const SearchDomain recorded(bound.domain.axes(), valid);
  expect_uniform(recorded, valid, 5);
}

TEST(SamplingTest, UniformOverAPartOfTheSpace) {
  const BoundDomain bound(tied_space(false));
  const std::vector<Point> valid = enumerated(bound.bound);
  std::size_t all = 0;
  for (int part = 1; part <= 3; ++part) {
    const SearchDomain domain(bound.bound, {part, 3}, bound.space.parameters.size());
    std::vector<Point> own;
    std::copy_if(valid.begin(), valid.end(), std::back_inserter(own),
                 [&](const Point& point) { return domain.contains(point); });
    EXPECT_GT(own.size(), valid.size() / 4);
    EXPECT_EQ(numbered(domain), own);
    all += own.size();
    expect_uniform(domain, own, static_cast<std::uint64_t>(part));
    for (const Point& neighbour : domain.neighbours(own.front(), Reach::any)) {
      EXPECT_TRUE(domain.contains(neighbour));
    }
  }
  EXPECT_EQ(all, valid.size());
}

// The test can tell: draws by parameter after parameter, each uniform among what the others leave, are not uniform.
TEST(SamplingTest, DrawsThatFavourSomeAreSeen) {
  const BoundDomain bound(tied_space(false));
  const std::vector<Point> valid = enumerated(bound.bound);
  SearchRandom random(1);
  std::map<Point, int> counts;
  const double draws = 25 * static_cast<double>(valid.size());
  for (int i = 0; i < static_cast<int>(draws);) {
    Point point(5);
    point[0] = static_cast<std::uint16_t>(below(random, 4));
    point[1] = static_cast<std::uint16_t>(point[0] + below(random, 4U - point[0]));
    for (const std::size_t axis : {2U, 3U, 4U}) {
      point[axis] = static_cast<std::uint16_t>(below(random, axis == 4 ? 3 : 4));
    }
    if (bound.domain.contains(point)) {
      ++counts[point];
      ++i;
    }
  }
  EXPECT_GT(chi_squared(counts, valid.size(), draws), chi_squared_limit(static_cast<double>(valid.size() - 1)));
}

TEST(SamplingTest, SameSeedSameDraws) {
  const BoundDomain bound(tied_space(true), 8);
  SearchRandom one(3);
  SearchRandom same(3);
  SearchRandom other(4);
  int differing = 0;
  for (int i = 0; i < 50; ++i) {
    const auto point = bound.domain.sample(one);
    EXPECT_EQ(point, bound.domain.sample(same));
    differing += point == bound.domain.sample(other) ? 0 : 1;
  }
  EXPECT_GT(differing, 40);
}

TEST(SamplingTest, NumbersBelow) {
  SearchRandom random(1);
  std::array<int, 3> counts{};
  for (int i = 0; i < 3000; ++i) {
    ++counts.at(below(random, 3));
    EXPECT_EQ(below(random, 1), 0U);
    const double number = uniform(random);
    EXPECT_TRUE(number >= 0 && number < 1);
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 1000, 100);
  }
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  int upper = 0;
  for (int i = 0; i < 300; ++i) {
    // Of a count that does not divide 2^64, a remainder alone would favour the lower half two to one.
    upper += below(random, most / 3 * 2) >= most / 3 ? 1 : 0;
  }
  EXPECT_NEAR(upper, 150, 45);
}

}  // namespace
}  // namespace pascaline::testing
