#include "tuner/sweep/shapes_between.hpp"

#include <gtest/gtest.h>

#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// The toy kernel with three dimensions: N and M vary, of which K is fixed and W is not.
class ShapesBetweenTest : public ::testing::Test {
 protected:
  Space space_ = Space::parse(three_dimensions().dump(), "toy.json");

  static nlohmann::json three_dimensions() {
    nlohmann::json document = toy_json({kRight});
    document["dimensions"] = {
        {{"name", "N"}, {"description", "elements"}, {"example", 1000}, {"varies", true}},
        {{"name", "M"}, {"description", "more"}, {"example", 8}, {"varies", true}},
        {{"name", "W"}, {"description", "width"}, {"example", 8}},
        {{"name", "K"}, {"description", "kind"}, {"example", 8}, {"varies", true}, {"fixed", true}}};
    return document;
  }
  [[nodiscard]] SweepProblem problem(int n, int m, int w = 1, int k = 1) const {
    return {
        space_.problem(
            {{"N", std::to_string(n)}, {"M", std::to_string(m)}, {"W", std::to_string(w)}, {"K", std::to_string(k)}}),
        3, ""};
  }
  [[nodiscard]] std::vector<std::string> between(const std::vector<SweepProblem>& problems) const {
    std::vector<std::string> texts;
    for (const SweepProblem& found : shapes_between(space_, problems)) {
      EXPECT_TRUE(found.between);
      EXPECT_EQ(found.count, 0);
      EXPECT_TRUE(found.phases.empty());
      texts.push_back(found.problem.text());
    }
    return texts;
  }
};

TEST(MiddleTest, IsTheGeometricOneAlignedAsBothAre) {
  EXPECT_EQ(middle_of(128, 512), 256);
  EXPECT_EQ(middle_of(512, 1024), 704) << "724, to a multiple of 64";
  EXPECT_EQ(middle_of(1024, 2048), 1408);
  EXPECT_EQ(middle_of(100, 3000), 548);
  EXPECT_EQ(middle_of(1, 4), 2);
  EXPECT_EQ(middle_of(7, 9), 8);
  EXPECT_EQ(middle_of(7, 8), std::nullopt);
  EXPECT_EQ(middle_of(5, 5), std::nullopt);
  EXPECT_EQ(middle_of(0, 100), std::nullopt) << "nothing is geometrically between";
  const std::int64_t large = std::int64_t{1} << 60U;
  EXPECT_EQ(middle_of(large, 4 * large), 2 * large);
}

TEST(ValuesBetweenTest, TheWidestGapComesFirst) {
  const std::vector<ValueBetween> found = values_between({2048, 128, 512, 1024}, 16);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[0], (ValueBetween{256, 128, 512}));
  EXPECT_EQ(found[1].high - found[1].low, 128) << "then gaps of an octave, from the smallest on";
  EXPECT_EQ(values_between({128, 512, 1024, 2048}, 1).size(), 1U);
  EXPECT_TRUE(values_between({512}, 16).empty());
  EXPECT_TRUE(values_between({100, 120}, 16).empty()) << "narrow enough";
}

TEST_F(ShapesBetweenTest, WhatVariesGrowsTogether) {
  EXPECT_EQ(between({problem(100, 200), problem(200, 400)}),
            std::vector<std::string>{space_.problem({{"N", "140"}, {"M", "280"}, {"W", "1"}, {"K", "1"}}).text()});
  const auto found = shapes_between(space_, {problem(100, 200), problem(200, 400)});
  EXPECT_EQ(found.at(0).label, "between N=100 M=200 and N=200 M=400");
}

TEST_F(ShapesBetweenTest, OnlyWhatVariesAndIsNotFixedIsChanged) {
  EXPECT_TRUE(between({problem(100, 8, 1), problem(100, 8, 100)}).empty()) << "a width is the model's";
  EXPECT_TRUE(between({problem(100, 8, 1, 1), problem(100, 8, 1, 100)}).empty()) << "no winner serves another kind";
  EXPECT_TRUE(between({problem(100, 8, 1, 1), problem(400, 8, 2, 1)}).empty()) << "two families";
  EXPECT_TRUE(between({problem(100, 800), problem(400, 200)}).empty()) << "one grows, the other shrinks";
  EXPECT_TRUE(between({problem(100, 8)}).empty());
}

TEST_F(ShapesBetweenTest, WhatIsThereAlreadyIsNotAdded) {
  std::vector<SweepProblem> problems{problem(100, 8), problem(400, 8)};
  add_between(space_, problem(100, 8).problem, "", problems);
  EXPECT_EQ(problems.size(), 2U);
  add_between(space_, problem(200, 8, 1, 7).problem, "", problems);
  EXPECT_EQ(problems.size(), 2U) << "of another kind: nothing tuned could be near it";
  add_between(space_, problem(200, 8).problem, "a label", problems);
  add_between(space_, problem(200, 8).problem, "again", problems);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_TRUE(problems[2].between);
  EXPECT_EQ(problems[2].label, "a label");
}

}  // namespace
}  // namespace pascaline::testing
