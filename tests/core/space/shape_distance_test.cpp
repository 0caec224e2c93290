#include "core/space/shape_distance.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/space/small_space.hpp"

namespace pascaline {
namespace {

class ShapeDistance : public ::testing::Test {
 protected:
  // The small space with a second dimension that is free, beside WIDTH, which is fixed.
  ShapeDistance() {
    nlohmann::json text = testing::small_space();
    text["dimensions"].push_back({{"name", "K"}});
    space_ = Space::parse(text.dump(), "small.json");
  }
  [[nodiscard]] Problem at(const char* n, const char* k, const char* width = "4", const char* type = "float32") const {
    return space_.problem({{"N", n}, {"K", k}, {"WIDTH", width}, {"STORAGE", type}});
  }
  [[nodiscard]] double distance(const Problem& a, const Problem& b) const {
    const auto there = shape_distance(space_, a, b);
    const auto back = shape_distance(space_, b, a);
    EXPECT_TRUE(there && back);
    EXPECT_DOUBLE_EQ(*there, *back);
    return *there;
  }
  Space space_;
};

TEST_F(ShapeDistance, IsEuclideanInOctaves) {
  EXPECT_EQ(distance(at("1000", "16"), at("1000", "16")), 0);
  EXPECT_DOUBLE_EQ(distance(at("1000", "16"), at("2000", "16")), 1);
  EXPECT_DOUBLE_EQ(distance(at("1000", "16"), at("125", "16")), 3);
  EXPECT_DOUBLE_EQ(distance(at("1000", "16"), at("8000", "1")), 5);
  EXPECT_LT(distance(at("1000", "16"), at("2000", "32")), distance(at("1000", "16"), at("4000", "16")))
      << "a little off in two dimensions is nearer than as much in one";
  EXPECT_NEAR(distance(at("1", "1"), at("3", "1")), std::log2(3), 1e-12);
}

TEST_F(ShapeDistance, FixedDimensionsTypesAndKernelsMustBeEqual) {
  const Problem here = at("1000", "16");
  EXPECT_FALSE(shape_distance(space_, here, at("1000", "16", "8"))) << "WIDTH is fixed";
  EXPECT_FALSE(shape_distance(space_, here, at("1000", "16", "4", "float16")));
  Problem other = here;
  other.kernel = "another";
  EXPECT_FALSE(shape_distance(space_, here, other));
  other = here;
  other.dimensions.pop_back();
  EXPECT_FALSE(shape_distance(space_, here, other)) << "of a space that had a dimension less";
  other = here;
  other.dimensions.front().first = "M";
  EXPECT_FALSE(shape_distance(space_, here, other));
}

TEST_F(ShapeDistance, ZeroIsAnOctaveBelowOne) {
  Problem none = at("1", "1");
  none.dimensions.back().second = 0;
  Problem one = at("1", "1");
  EXPECT_DOUBLE_EQ(shape_distance(space_, none, one).value(), 1);
  EXPECT_EQ(shape_distance(space_, none, none).value(), 0);
}

}  // namespace
}  // namespace pascaline
