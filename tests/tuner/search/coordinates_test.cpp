#include "tuner/search/coordinates.hpp"

#include <gtest/gtest.h>

namespace pascaline::testing {
namespace {

Axis numbers(const std::vector<std::int64_t>& values) { return {"P", {values.begin(), values.end()}}; }

std::vector<float> of(const Coordinates& coordinates, std::uint16_t index) {
  std::vector<float> out(coordinates.size());
  coordinates.write({index}, out);
  return out;
}

TEST(CoordinatesTest, PowersOfTwoLieEvenly) {
  const Coordinates coordinates({numbers({1, 2, 4, 8, 16})});
  EXPECT_EQ(coordinates.kinds(), (std::vector{CoordinateKind::ordered, CoordinateKind::category}))
      << "how often two divides them tells nothing new";
  for (std::uint16_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(of(coordinates, i)[0], 0.25 * i, 1e-6);
    EXPECT_EQ(of(coordinates, i)[1], i);
  }
}

TEST(CoordinatesTest, PlaceIsBetweenRankAndLogarithm) {
  const Coordinates coordinates({numbers({1, 10, 100, 10'000})});
  EXPECT_NEAR(of(coordinates, 1)[0], 0.5 * (1.0 / 3 + 0.25), 1e-6);
  EXPECT_NEAR(of(coordinates, 2)[0], 0.5 * (2.0 / 3 + 0.5), 1e-6);
  EXPECT_EQ(of(coordinates, 3)[0], 1);
}

TEST(CoordinatesTest, OrderOfTheFileDoesNotMatterToSites) {
  const Coordinates coordinates({numbers({8, 1, 4, 2})});
  EXPECT_EQ(of(coordinates, 0)[0], 1);
  EXPECT_EQ(of(coordinates, 1)[0], 0);
  EXPECT_LT(of(coordinates, 3)[0], of(coordinates, 2)[0]);
}

TEST(CoordinatesTest, ZeroAndNegativeValuesLieByRank) {
  const Coordinates coordinates({numbers({0, 32, 64}), numbers({-4, 0, 4})});
  std::vector<float> out(coordinates.size());
  coordinates.write({1, 2}, out);
  EXPECT_EQ(out[0], 0.5F);
  const auto second = static_cast<std::size_t>(
      std::find(coordinates.kinds().begin() + 1, coordinates.kinds().end(), CoordinateKind::ordered) -
      coordinates.kinds().begin());
  EXPECT_LT(second, coordinates.size());
}

TEST(CoordinatesTest, DivisibilityByTwo) {
  const Coordinates coordinates({numbers({16, 24, 33, 48})});
  ASSERT_EQ(coordinates.kinds(),
            (std::vector{CoordinateKind::ordered, CoordinateKind::category, CoordinateKind::ordered}));
  EXPECT_EQ(of(coordinates, 0)[2], 1);
  EXPECT_EQ(of(coordinates, 1)[2], 0.75F);
  EXPECT_EQ(of(coordinates, 2)[2], 0);
  EXPECT_EQ(of(coordinates, 3)[2], 1);
}

TEST(CoordinatesTest, TextTruthAndReals) {
  const Coordinates text({{"MODE", {std::string("a"), std::string("b"), std::string("c")}}});
  EXPECT_EQ(text.kinds(), std::vector{CoordinateKind::category});
  const Coordinates mixed({{"MIXED", {std::int64_t{1}, std::string("b")}}});
  EXPECT_EQ(mixed.kinds(), std::vector{CoordinateKind::category});
  const Coordinates truth({{"ON", {false, true}}});
  EXPECT_EQ(truth.kinds(), std::vector{CoordinateKind::ordered});
  EXPECT_EQ(of(truth, 1)[0], 1);
  const Coordinates reals({{"RATIO", {0.25, 0.5, 1.0}}});
  EXPECT_EQ(reals.kinds(), (std::vector{CoordinateKind::ordered, CoordinateKind::category}));
  EXPECT_NEAR(of(reals, 1)[0], 0.5, 1e-6);
}

TEST(CoordinatesTest, OneValueTellsNothing) {
  EXPECT_EQ(Coordinates({numbers({7}), {"MODE", {std::string("a")}}}).size(), 0U);
  EXPECT_EQ(Coordinates(std::vector<Axis>()).size(), 0U);
}

}  // namespace
}  // namespace pascaline::testing
