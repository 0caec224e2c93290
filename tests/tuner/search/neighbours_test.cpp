#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

bool is_near(const Point& a, const Point& b, Reach reach) {
  std::size_t differing = 0;
  bool steps = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int apart = std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i]));
    differing += apart == 0 ? 0 : 1;
    steps = steps && apart <= 1;
  }
  switch (reach) {
    case Reach::step:
      return differing == 1 && steps;
    case Reach::any:
      return differing == 1;
    case Reach::pair:
      return differing == 2 && steps;
  }
  return false;
}

// Of every valid configuration, and of every third that is none: a search may ask about either.
std::size_t expect_all_neighbours(const SearchDomain& domain, const std::vector<Point>& valid,
                                  const std::vector<Point>& of) {
  std::size_t count = 0;
  for (const Point& point : of) {
    for (const Reach reach : {Reach::step, Reach::any, Reach::pair}) {
      std::vector<Point> expected;
      std::copy_if(valid.begin(), valid.end(), std::back_inserter(expected),
                   [&](const Point& other) { return is_near(point, other, reach); });
      std::vector<Point> found = domain.neighbours(point, reach);
      std::sort(found.begin(), found.end());
      EXPECT_TRUE(found == expected) << point_text(point) << ": " << found.size() << " of " << expected.size();
      count += found.size();
    }
  }
  return count;
}

std::vector<Point> some_of(const std::vector<Point>& points, std::size_t most) {
  std::vector<Point> out;
  const std::size_t step = points.size() / most + 1;
  for (std::size_t i = 0; i < points.size(); i += step) {
    out.push_back(points[i]);
  }
  return out;
}

TEST(NeighboursTest, AsBruteForceFindsThem) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const BoundDomain bound(chance_space(seed), seed % 3 == 0 ? 4 : SearchDomain::kMaxTuples);
    const std::vector<Point> valid = enumerated(bound.bound);
    std::vector<int> sizes;
    for (const Axis& axis : bound.domain.axes()) {
      sizes.push_back(static_cast<int>(axis.values.size()));
    }
    found += expect_all_neighbours(bound.domain, valid, some_of(valid, 25));
    found += expect_all_neighbours(bound.domain, valid, some_of(numbered(full_domain(sizes)), 15));
  }
  EXPECT_GT(found, 1000U);
}

TEST(NeighboursTest, OfRecordedPoints) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const BoundDomain bound(chance_space(seed));
    const std::vector<Point> valid = enumerated(bound.bound);
    const SearchDomain recorded(bound.domain.axes(), valid);
    found += expect_all_neighbours(recorded, valid, some_of(valid, 40));
  }
  EXPECT_GT(found, 200U);
}

TEST(NeighboursTest, PairsMoveWhatIsTiedTogether) {
  nlohmann::json text = bare_space();
  add_parameter(text, "A", {1, 2, 4, 8});
  add_parameter(text, "B", {1, 2, 4, 8});
  add_constraint(text, "A * B == 8");
  const BoundDomain bound(text);
  EXPECT_TRUE(bound.domain.neighbours({1, 2}, Reach::any).empty());
  EXPECT_EQ(bound.domain.neighbours({1, 2}, Reach::pair), (std::vector<Point>{{0, 3}, {2, 1}}));
}

}  // namespace
}  // namespace pascaline::testing
