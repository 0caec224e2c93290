#include "tuner/sweep/other_types.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/util/paths.hpp"
#include "tests/tuner/search/domains.hpp"
#include "tuner/search/transfer.hpp"

namespace pascaline::testing {
namespace {

/// Problems of a space with two element types, one of which excludes values of A, and a fixed dimension.
class OtherTypesTest : public ::testing::Test {
 protected:
  BoundDomain bound_{json()};
  DeviceRow here_{"cuda", "here", "6.1", 20, 0, "{}"};

  static nlohmann::json json() {
    nlohmann::json text = bare_space();
    text["dimensions"].push_back({{"name", "WIDTH"}, {"fixed", true}, {"example", 8}});
    text["types"] = nlohmann::json::parse(R"([{"name": "STORAGE", "values": ["float32", "float16"]},
                                              {"name": "WEIGHT", "values": ["float32", "float16"], "like": "STORAGE"}])");
    add_parameter(text, "A", {1, 2, 3, 4, 5, 6});
    add_parameter(text, "B", {1, 2, 3, 4, 5, 6});
    add_constraint(text, "A * sizeof(STORAGE) <= 16");
    return text;
  }
  [[nodiscard]] Problem problem(const char* n, const char* storage, const char* weight, const char* width = "8") const {
    return bound_.space.problem({{"N", n}, {"WIDTH", width}, {"STORAGE", storage}, {"WEIGHT", weight}});
  }
  // Every configuration of A up to that value, the first of them the fastest.
  [[nodiscard]] static RelatedProblem related(const Problem& of, std::int64_t most_a) {
    RelatedProblem out{of, {}, 0};
    for (std::int64_t a = 1; a <= most_a; ++a) {
      for (std::int64_t b = 1; b <= 6; ++b) {
        out.times_us.emplace_back(Config({{"A", a}, {"B", b}}), 10.0 * static_cast<double>(a + b));
      }
    }
    return out;
  }
  [[nodiscard]] std::vector<RelatedProblem> nearest(const std::vector<RelatedProblem>& related) const {
    const BoundSpace bound(bound_.space, problem("1000", "float32", "float32"), DeviceLimits{});
    return nearest_of_other_types(bound, related);
  }
};

TEST_F(OtherTypesTest, EachTypeThatDiffersCountsAndAddsToTheShape) {
  const Problem own = problem("1000", "float32", "float32");
  const auto octaves = [&](const Problem& other) { return transfer_octaves(bound_.space, own, other); };
  EXPECT_EQ(octaves(own), 0);
  EXPECT_EQ(octaves(problem("1000", "float32", "float16")), kOctavesOfOtherType);
  EXPECT_EQ(octaves(problem("1000", "float16", "float16")), 2 * kOctavesOfOtherType);
  EXPECT_EQ(octaves(problem("4000", "float32", "float16")), 2 + kOctavesOfOtherType);
  EXPECT_FALSE(octaves(problem("1000", "float32", "float16", "9"))) << "a fixed dimension differs";
  Problem foreign = own;
  foreign.types.pop_back();
  EXPECT_FALSE(octaves(foreign)) << "not the same type variables";
  foreign = own;
  foreign.kernel = "another";
  EXPECT_FALSE(octaves(foreign));
  EXPECT_GT(kOctavesOfOtherType, 0) << "less trusted than the types themselves";
}

TEST_F(OtherTypesTest, TheTwoNearestWithOtherTypesCount) {
  const auto found = nearest(
      {related(problem("1000", "float16", "float16"), 4), related(problem("8000", "float32", "float16"), 4),
       related(problem("1000", "float32", "float32"), 4), related(problem("1000", "float32", "float16", "9"), 4),
       related(problem("1000", "float32", "float16"), 4)});
  ASSERT_EQ(found.size(), kMaxOtherTypes);
  EXPECT_EQ(found[0].problem, problem("1000", "float32", "float16"));
  EXPECT_EQ(found[1].problem, problem("1000", "float16", "float16"));
}

TEST_F(OtherTypesTest, WhatIsInvalidForTheTypesIsLeftOut) {
  auto other = related(problem("1000", "float16", "float16"), 6);  // A up to 4 is valid with float32
  other.times_us.emplace_back(Config({{"A", 99}, {"B", 1}}), 1);   // nor has the space this
  other.times_us.emplace_back(Config({{"A", 1}, {"C", 1}}), 1);
  const auto found = nearest({other});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].times_us, related(problem("1000", "float16", "float16"), 4).times_us);
  other.times_us.erase(other.times_us.begin(), other.times_us.begin() + 24 - static_cast<int>(kMinRelated) + 1);
  EXPECT_TRUE(nearest({other}).empty()) << "too few valid ones, whatever else there is";
}

TEST_F(OtherTypesTest, WinnersAreOfTheShapeItselfOnThisDevice) {
  const auto winner = [&](const DeviceRow& device, const Problem& of, std::int64_t a) {
    Winner out;
    out.device = device;
    out.trial.problem = of;
    out.trial.config = Config({{"A", a}, {"B", 1}});
    return out;
  };
  DeviceRow other = here_;
  other.name = "other";
  const std::vector<Winner> winners{
      winner(here_, problem("1000", "float16", "float16"), 1), winner(here_, problem("1000", "float32", "float16"), 2),
      winner(here_, problem("1000", "float32", "float16"), 3), winner(here_, problem("1000", "float32", "float32"), 4),
      winner(here_, problem("2000", "float32", "float16"), 5), winner(other, problem("1000", "float32", "float16"), 6)};
  const auto found = winners_of_other_types(bound_.space, problem("1000", "float32", "float32"), here_, winners);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], &winners[1]) << "the nearest, decided last";
  EXPECT_EQ(found[1], &winners[0]);
}

}  // namespace
}  // namespace pascaline::testing
