#include "tuner/sweep/other_kernels.hpp"

#include <gtest/gtest.h>

#include "core/util/paths.hpp"
#include "tests/tuner/search/domains.hpp"
#include "tuner/search/transfer.hpp"
#include "tuner/sweep/other_types.hpp"

namespace pascaline::testing {
namespace {

/// Two kernels that share the dimension N, an element type and three of four parameters.
class OtherKernelsTest : public ::testing::Test {
 protected:
  BoundDomain own_{json("own", {"A", "B", "C", "OWN"})};
  BoundDomain other_{json("other", {"A", "B", "C", "OTHER"})};

  static nlohmann::json json(const std::string& kernel, const std::vector<std::string>& parameters) {
    nlohmann::json text = bare_space();
    text["kernel"] = kernel;
    text["types"] = nlohmann::json::parse(R"([{"name": "STORAGE", "values": ["float32", "float16"]}])");
    text["dimensions"].push_back({{"name", "WIDTH"}, {"fixed", true}, {"example", 8}});
    for (const std::string& name : parameters) {
      add_parameter(text, name, kernel == "own" ? nlohmann::json{1, 2, 3, 4} : nlohmann::json{1, 2, 3, 4, 5});
    }
    return text;
  }
  static Problem problem(const Space& space, const char* n, const char* type = "float32", const char* width = "8") {
    return space.problem({{"N", n}, {"WIDTH", width}, {"STORAGE", type}});
  }
  [[nodiscard]] std::optional<double> octaves(const Problem& other) const {
    return kernel_octaves(own_.space, problem(own_.space, "1000"), other_.space, other);
  }
};

TEST_F(OtherKernelsTest, DistanceIsThatOfWhatBothHave) {
  EXPECT_EQ(octaves(problem(other_.space, "1000")), kOctavesOfOtherKernel);
  EXPECT_EQ(octaves(problem(other_.space, "4000")), 2 + kOctavesOfOtherKernel);
  EXPECT_EQ(octaves(problem(other_.space, "1000", "float16")), kOctavesOfOtherType + kOctavesOfOtherKernel);
  EXPECT_FALSE(octaves(problem(other_.space, "1000", "float32", "9"))) << "a fixed dimension differs";
  EXPECT_FALSE(kernel_octaves(own_.space, problem(own_.space, "1000"), own_.space, problem(own_.space, "2000")))
      << "that is for shape_distance";
  const BoundDomain less{json("less", {"A", "B", "LESS", "LEAST"})};
  EXPECT_FALSE(kernel_octaves(own_.space, problem(own_.space, "1000"), less.space, problem(less.space, "1000")))
      << "half of the parameters";
  const BoundDomain more{json("more", {"A", "B", "C", "OWN", "D", "E"})};
  EXPECT_FALSE(kernel_octaves(own_.space, problem(own_.space, "1000"), more.space, problem(more.space, "1000")))
      << "all of its own, but not most of the other's";
}

TEST_F(OtherKernelsTest, TrialsAreMappedByNameAndValue) {
  RelatedProblem related{problem(other_.space, "1000"), {}, 0, {}};
  for (std::int64_t a = 1; a <= 5; ++a) {
    for (std::int64_t b = 1; b <= 4; ++b) {
      for (const std::int64_t other : {3, 2}) {
        related.times_us.emplace_back(Config({{"A", a}, {"B", b}, {"C", 2}, {"OTHER", other}}),
                                      static_cast<double>(100 * a + 10 * b + other));
      }
    }
  }
  const auto found = of_other_kernel(own_.bound, other_.space, related);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->times_us.size(), 16U) << "A=5 is no value here, and OTHER no parameter";
  EXPECT_EQ(found->times_us[0].first, Config({{"A", 1}, {"B", 1}, {"C", 2}, {"OWN", 1}}));
  EXPECT_EQ(found->times_us[0].second, 112) << "the faster of the two";
  EXPECT_EQ(found->kernel_octaves, kernel_octaves(own_.space, own_.bound.problem(), other_.space, related.problem));
  const auto priors = transfer_priors(own_.domain, {}, {*found}, 1);
  ASSERT_EQ(priors.size(), 1U);
  EXPECT_GT(priors[0].trust, 0);
  EXPECT_LT(priors[0].log_time(own_.space.indices_of(Config({{"A", 1}, {"B", 1}, {"C", 2}, {"OWN", 1}}))),
            priors[0].log_time(own_.space.indices_of(Config({{"A", 4}, {"B", 4}, {"C", 2}, {"OWN", 1}}))));
  related.times_us.erase(related.times_us.begin(), related.times_us.begin() + 8);
  EXPECT_FALSE(of_other_kernel(own_.bound, other_.space, related)) << "too few: " << kMinRelated << " at least";
}

}  // namespace
}  // namespace pascaline::testing
