#include "tuner/sweep/transfer_priors.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/util/paths.hpp"
#include "tests/tuner/search/domains.hpp"
#include "tuner/search/transfer.hpp"
#include "tuner/sweep/other_types.hpp"

namespace pascaline::testing {
namespace {

/// Problems of a space with a dimension N, a fixed one WIDTH, and an element type.
class TransferPriorsTest : public ::testing::Test {
 protected:
  BoundDomain bound_{json()};

  static nlohmann::json json() {
    nlohmann::json text = bare_space();
    text["dimensions"].push_back({{"name", "WIDTH"}, {"fixed", true}, {"example", 8}});
    text["types"] = nlohmann::json::parse(R"([{"name": "STORAGE", "values": ["float32", "float16"]}])");
    add_parameter(text, "A", {1, 2, 3, 4, 5, 6});
    add_parameter(text, "B", {1, 2, 3, 4, 5, 6});
    return text;
  }
  [[nodiscard]] Problem problem(const char* n, const char* width = "8", const char* type = "float32") const {
    return bound_.space.problem({{"N", n}, {"WIDTH", width}, {"STORAGE", type}});
  }
  // So many trials of a bowl, each configuration once, and some of configurations that the space does not have.
  [[nodiscard]] RelatedProblem related(const Problem& of, std::size_t count, std::size_t gone = 0) const {
    RelatedProblem out;
    out.problem = of;
    for (std::size_t i = 0; i < count; ++i) {
      const Point point = bound_.domain.at(i * 7 % 36).value();
      out.times_us.emplace_back(bound_.space.config_at(point), bowl_us(point, {3, 3}));
    }
    for (std::size_t i = 0; i < gone; ++i) {
      out.times_us.emplace_back(i % 2 == 0 ? Config({{"A", 99}, {"B", 1}}) : Config({{"A", 1}, {"C", 1}}), 0.001);
    }
    return out;
  }
  [[nodiscard]] std::vector<Prior> known(const std::vector<RelatedProblem>& related) const {
    return transfer_priors(bound_.domain, {}, related, 1);
  }
};

TEST_F(TransferPriorsTest, NothingIsKnown) {
  EXPECT_TRUE(known({}).empty());
  EXPECT_TRUE(known({related(problem("1000"), kMinRelated - 1)}).empty());
  EXPECT_TRUE(known({related(problem("1000", "9"), 30), related(problem("1000", "9", "float16"), 30)}).empty());
}

TEST_F(TransferPriorsTest, ConfigurationsThatAreGoneDoNotCount) {
  EXPECT_TRUE(known({related(problem("2000"), kMinRelated - 1, 10)}).empty());
  const auto priors = known({related(problem("2000"), kMinRelated, 10)});
  ASSERT_EQ(priors.size(), 1U);
  const auto without = known({related(problem("2000"), kMinRelated)});
  EXPECT_EQ(priors[0].log_time({3, 3}), without.at(0).log_time({3, 3}));
}

TEST_F(TransferPriorsTest, TheTwoNearestWithEnoughTrialsCount) {
  const auto priors = known({related(problem("64000"), 30), related(problem("1010"), 3), related(problem("1000"), 30),
                             related(problem("4000"), 30), related(problem("1001"), 2, 40)});
  ASSERT_EQ(priors.size(), 2U);
  EXPECT_EQ(priors[0].trust, 1) << "the same problem";
  EXPECT_NEAR(priors[1].trust, std::exp(-std::log(4.0) / 2), 1e-3);
  for (const Prior& prior : priors) {
    EXPECT_LT(prior.log_time({3, 3}), prior.log_time({0, 0}));
  }
}

TEST_F(TransferPriorsTest, OtherDevicesAreTrustedLessAndAddToTheSameDevices) {
  const auto elsewhere = [&](const char* n, double octaves) {
    RelatedProblem other = related(problem(n), 30);
    other.device_octaves = octaves;
    return other;
  };
  const auto priors =
      known({elsewhere("1000", 1), elsewhere("1000", 2), elsewhere("1000", 3), related(problem("1000"), 30),
             related(problem("2000"), 30), related(problem("64000"), 30)});
  ASSERT_EQ(priors.size(), 4U) << "two of the same device, two of others";
  EXPECT_EQ(priors[0].trust, 1) << "the same problem on the same device comes first";
  EXPECT_NEAR(priors[1].trust, std::exp(-std::log(2.0) / 2), 1e-3);
  EXPECT_NEAR(priors[2].trust, std::exp(-std::log(2.0) / 2), 1e-3);
  EXPECT_NEAR(priors[3].trust, std::exp(-std::log(4.0) / 2), 1e-3);
  const auto both = known({elsewhere("2000", 1)});
  ASSERT_EQ(both.size(), 1U);
  EXPECT_NEAR(both[0].trust, std::exp(-std::log(4.0) / 2), 1e-3) << "distances of shape and device add up";
}

TEST_F(TransferPriorsTest, OtherTypesAreTrustedLessAndAddToTheSameTypes) {
  const auto priors = known({related(problem("1000", "8", "float16"), 30), related(problem("2000", "8", "float16"), 30),
                             related(problem("4000", "8", "float16"), 30), related(problem("1000"), 30),
                             related(problem("1010"), 30), related(problem("64000"), 30)});
  ASSERT_EQ(priors.size(), 4U) << "two of the same types, two of others";
  const auto trust_at = [](double octaves) { return std::exp(-octaves * std::log(2.0) / 2); };
  EXPECT_EQ(priors[0].trust, 1);
  EXPECT_NEAR(priors[2].trust, trust_at(kOctavesOfOtherType), 1e-3);
  EXPECT_NEAR(priors[3].trust, trust_at(1 + kOctavesOfOtherType), 1e-3) << "distances of shape and types add up";
}

// A space of three parameters with ten values each.
nlohmann::json cube() {
  nlohmann::json text = bare_space();
  for (const char* const name : {"A", "B", "C"}) {
    add_parameter(text, name, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  }
  return text;
}

// What is told of the cube by `reversed`, whose order of configurations is the opposite, costs trials and not the
// result.
void expect_optimum_despite(const BoundDomain& bound, RelatedProblem reversed) {
  const Point best{7, 2, 5};
  for (std::size_t i = 0; i < 150; ++i) {
    const Point point = bound.domain.at(i * 37 % 1000).value();
    reversed.times_us.emplace_back(bound.space.config_at(point), 1e4 / bowl_us(point, best));
  }
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SearchOptions options;
    options.seed = seed;
    options.priors = transfer_priors(bound.domain, {}, {reversed}, seed);
    ASSERT_EQ(options.priors.size(), 1U);
    ASSERT_GT(options.priors[0].log_time(best), options.priors[0].log_time({0, 9, 0})) << "it misleads";
    const auto searcher = make_searcher("auto", bound.domain, options);
    double found_us = 1e9;
    for (int trial = 0; trial < 100; ++trial) {
      const Point point = searcher->propose(1).at(0);
      const double time_us = bowl_us(point, best);
      searcher->observe(point, {TrialStatus::ok, time_us});
      found_us = std::min(found_us, time_us);
    }
    EXPECT_EQ(found_us, bowl_us(best, best)) << "seed " << seed;
  }
}

TEST_F(TransferPriorsTest, MisleadingTypesDoNotKeepFromTheOptimum) {
  nlohmann::json text = cube();
  text["types"] = nlohmann::json::parse(R"([{"name": "STORAGE", "values": ["float32", "float16"]}])");
  const BoundDomain bound{text};
  RelatedProblem reversed{bound.bound.problem(), {}, 0};
  reversed.problem.types.front().second = ElementType::float16;
  ASSERT_NE(reversed.problem, bound.bound.problem());
  expect_optimum_despite(bound, reversed);
}

TEST_F(TransferPriorsTest, MisleadingDeviceDoesNotKeepFromTheOptimum) {
  const BoundDomain bound{cube()};
  expect_optimum_despite(bound, {bound.bound.problem(), {}, 1});
}

TEST_F(TransferPriorsTest, StaticModelComesFirst) {
  const DeviceLimits limits = *limits_of_architecture("sm_61");
  const Space space = Space::load(data_folder("search_spaces") / "transpose.json");
  const BoundSpace bound(space, space.example_problem(), limits);
  const SearchDomain domain(bound);
  const auto priors = transfer_priors(domain, typical_rates("sm_61", limits), {}, 1);
  ASSERT_EQ(priors.size(), 1U);
  EXPECT_TRUE(priors[0].trust > 0 && priors[0].trust < 1) << "it is half right";
  double least = 1e9;
  double most = -1e9;
  for (const Point& point : numbered(domain)) {
    const double log_time = priors[0].log_time(point);
    ASSERT_TRUE(std::isfinite(log_time)) << point_text(point);
    least = std::min(least, log_time);
    most = std::max(most, log_time);
  }
  EXPECT_GT(most, least);
  EXPECT_TRUE(transfer_priors(domain, {}, {}, 1).empty()) << "on the emulator there is no such model";
}

}  // namespace
}  // namespace pascaline::testing
