#include "tuner/search/transfer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

/// A bowl over 512 configurations, some of which were measured.
class TransferTest : public ::testing::Test {
 protected:
  SearchDomain domain_ = full_domain({8, 8, 8});
  Point best_{5, 1, 3};

  [[nodiscard]] std::vector<RelatedTrial> trials(std::size_t count, std::uint64_t seed = 1) const {
    SearchRandom random(seed);
    std::vector<RelatedTrial> out;
    for (std::size_t i = 0; i < count; ++i) {
      const Point point = domain_.sample(random).value();
      out.push_back({point, bowl_us(point, best_)});
    }
    return out;
  }
  // Share of pairs of configurations that the prior puts in the right order.
  [[nodiscard]] double right_order(const Prior& prior) const {
    SearchRandom random(99);
    int right = 0;
    constexpr int kPairs = 400;
    for (int i = 0; i < kPairs; ++i) {
      const Point one = domain_.sample(random).value();
      const Point other = domain_.sample(random).value();
      const bool faster = bowl_us(one, best_) < bowl_us(other, best_);
      right += faster == (prior.log_time(one) < prior.log_time(other)) ? 1 : 0;
    }
    return static_cast<double>(right) / kPairs;
  }
};

TEST_F(TransferTest, KeepsTheOrderOfWhatItSaw) {
  const auto prior = transfer_prior(domain_, trials(60), 0, 1);
  ASSERT_TRUE(prior);
  const double right = right_order(*prior);
  std::printf("%.0f %% of pairs in the right order\n", 100 * right);
  EXPECT_GT(right, 0.9);
}

TEST_F(TransferTest, NearerProblemsAreTrustedMore) {
  const auto same = transfer_prior(domain_, trials(20), 0, 1);
  const auto near = transfer_prior(domain_, trials(20), 0.7, 1);
  const auto far = transfer_prior(domain_, trials(20), 8, 1);
  ASSERT_TRUE(same && near && far);
  EXPECT_EQ(same->trust, 1);
  EXPECT_LT(near->trust, same->trust);
  EXPECT_LT(far->trust, 0.2);
  EXPECT_GT(far->trust, 0);
}

TEST_F(TransferTest, FewTrialsTellNothing) {
  EXPECT_FALSE(transfer_prior(domain_, {}, 0, 1));
  EXPECT_FALSE(transfer_prior(domain_, trials(kMinRelated - 1), 0, 1));
  EXPECT_TRUE(transfer_prior(domain_, trials(kMinRelated), 0, 1));
  const SearchDomain one = full_domain({1});
  EXPECT_FALSE(transfer_prior(one, std::vector<RelatedTrial>(20, {{0}, 5}), 0, 1)) << "nothing to tell apart";
}

TEST_F(TransferTest, OfManyTheBestAndSomeOthersCount) {
  const auto many = trials(kAddressSanitizer ? 400 : 1500);
  const auto prior = transfer_prior(domain_, many, 0, 1);
  const auto again = transfer_prior(domain_, many, 0, 1);
  ASSERT_TRUE(prior && again);
  EXPECT_GT(right_order(*prior), 0.95);
  EXPECT_EQ(prior->log_time(best_), again->log_time(best_)) << "the same seed";
}

TEST_F(TransferTest, EqualTimesAndRepeatsOfOneConfiguration) {
  const auto prior = transfer_prior(domain_, std::vector<RelatedTrial>(30, {best_, 100}), 0, 1);
  ASSERT_TRUE(prior);
  EXPECT_TRUE(std::isfinite(prior->log_time(best_)));
  EXPECT_TRUE(std::isfinite(prior->log_time({0, 0, 0})));
}

// A neighbouring shape whose optimum lies a step away leads a search to it sooner than none does.
TEST_F(TransferTest, SearchGainsFromANeighbour) {
  SearchOptions options;
  const auto prior = transfer_prior(domain_, trials(60), 0.7, 1);
  ASSERT_TRUE(prior);
  const Point shifted{5, 2, 3};
  std::vector<double> with;
  std::vector<double> without;
  for (std::uint64_t seed = 1; seed <= (kAddressSanitizer ? 3 : 7); ++seed) {
    options.seed = seed;
    for (const bool told : {true, false}) {
      options.priors.clear();
      if (told) {
        options.priors.push_back(*prior);
      }
      const auto run = run_search(
          *make_searcher("auto", domain_, options), domain_,
          [&](const Point& point) {
            return Observation{TrialStatus::ok, bowl_us(point, shifted)};
          },
          60);
      (told ? with : without).push_back(trials_until(run, shifted));
    }
  }
  std::printf("%.0f trials with a neighbour's, %.0f without\n", median_of(with), median_of(without));
  EXPECT_LT(median_of(with), median_of(without));
}

}  // namespace
}  // namespace pascaline::testing
