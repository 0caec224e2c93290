#include "tuner/search/model_searcher.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <ctime>

#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

/// A smooth landscape over a thousand configurations.
class ModelSearcherTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSeeds = kAddressSanitizer ? 3 : 9;
  SearchDomain domain_ = full_domain({10, 10, 10});
  Point best_{7, 2, 5};

  [[nodiscard]] Observation smooth(const Point& point) const { return {TrialStatus::ok, bowl_us(point, best_)}; }

  [[nodiscard]] double median_trials(const std::string& name, const std::vector<Prior>& priors = {},
                                     std::size_t batch = 1, std::size_t most = 150) const {
    std::vector<double> trials;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SearchOptions options;
      options.seed = seed;
      options.priors = priors;
      const auto search = make_searcher(name, domain_, options);
      PointSet out;
      std::vector<Point> run;
      while (run.size() < most && (run.empty() || !out.contains(best_))) {
        for (const Point& point : search->propose(batch)) {
          run.push_back(point);
          out.insert(point);
        }
        for (std::size_t i = run.size() - std::min(batch, run.size()); i < run.size(); ++i) {
          search->observe(run[i], smooth(run[i]));
        }
      }
      trials.push_back(trials_until(run, best_));
    }
    return median_of(trials);
  }
};

TEST_F(ModelSearcherTest, FindsTheBestInFarFewerTrialsThanChance) {
  const double model = median_trials("model");
  const double batches = median_trials("model", {}, 5);
  constexpr double kExpectedOfRandom = 500;
  std::printf("model %.0f trials, in batches of five %.0f, random %.0f\n", model, batches, kExpectedOfRandom);
  EXPECT_LT(model, 50);
  EXPECT_LT(batches, 80);
  EXPECT_LT(8 * model, kExpectedOfRandom) << "of a thousand, half are tried before one of them is hit";
}

TEST_F(ModelSearcherTest, GoodPriorHelpsAndAMisleadingOneIsSeenThrough) {
  const auto with = [&](double factor, const Point& where, double trust, double off) {
    Prior prior;
    prior.log_time = [=](const Point& point) {
      const double noise = off * (static_cast<double>(PointHash()(point) % 1000) / 500 - 1);
      return factor * std::log(bowl_us(point, where)) + noise;
    };
    prior.trust = trust;
    return median_trials("auto", {prior});
  };
  const double none = median_trials("auto");
  const double good = with(1, {6, 3, 4}, 1, 0.1);
  const double hinted = with(1, {6, 3, 4}, 0, 0.1);
  const double reversed = with(-1, best_, 1, 0.1);
  const double elsewhere = with(1, {0, 9, 0}, 1, 0.1);
  const double rough = with(1, best_, 1, 0.5);
  std::printf("no prior %.0f trials, a good one %.0f, as a hint %.0f, reversed %.0f, misleading %.0f, rough %.0f\n",
              none, good, hinted, reversed, elsewhere, rough);
  EXPECT_LT(good, none);
  EXPECT_LT(reversed, 120);
  EXPECT_LT(elsewhere, 120);
  EXPECT_LT(rough, 120);
}

TEST_F(ModelSearcherTest, ModelAloneDoesNotAskThePriors) {
  SearchOptions options;
  options.priors.push_back({[](const Point&) -> double { throw std::runtime_error("asked"); }, 1});
  EXPECT_EQ(make_searcher("model", domain_, options)->propose(9).size(), 9U);
  EXPECT_THROW(std::ignore = make_searcher("auto", domain_, options), std::runtime_error);
}

TEST_F(ModelSearcherTest, PriorsBestComesFirst) {
  SearchOptions options;
  options.priors.push_back({[this](const Point& point) { return std::log(bowl_us(point, best_)); }, 1});
  EXPECT_EQ(make_searcher("auto", domain_, options)->propose(1), std::vector<Point>{best_});
}

TEST_F(ModelSearcherTest, LeavesAFailingHalfAlone) {
  // What is fast lies away from what fails, or times fall towards the border, behind which nothing works.
  for (const double lure : {0.0, 0.3}) {
    const auto outcome = [lure](const Point& point) {
      return point[0] >= 5 ? Observation{TrialStatus::launch_failed, 0}
                           : Observation{TrialStatus::ok, 1000 * std::exp(-lure * point[0] + 0.05 * point[1])};
    };
    std::vector<double> failed;
    std::vector<double> found;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto run = run_search("model", domain_, outcome, seed, 60);
      double count = 0;
      double best_us = 1e9;
      for (std::size_t i = 0; i < run.size(); ++i) {
        const Observation observation = outcome(run[i]);
        count += i >= 20 && observation.status != TrialStatus::ok ? 1 : 0;
        best_us = observation.status == TrialStatus::ok ? std::min(best_us, observation.time_us) : best_us;
      }
      failed.push_back(count / 40);
      found.push_back(best_us / (1000 * std::exp(-4 * lure)));
    }
    std::printf("%.0f %% of trials 21 to 60 failed\n", 100 * median_of(failed));
    EXPECT_LT(median_of(failed), lure > 0 ? 0.45 : 0.25) << lure;
    EXPECT_LT(median_of(found), 1.01) << lure;
  }
}

TEST_F(ModelSearcherTest, LargeSpaceIsSearchedThroughSomeOfIt) {
  const SearchDomain domain = full_domain({9, 9, 9, 9, 3});
  ASSERT_GT(domain.combinations(), 12'000) << "as many as are candidates whole";
  const Point best{3, 7, 1, 5, 2};
  const auto outcome = [&](const Point& point) { return Observation{TrialStatus::ok, bowl_us(point, best)}; };
  const auto best_of = [&](const std::string& name) {
    std::vector<double> ratios;
    for (std::uint64_t seed = 1; seed <= (kAddressSanitizer ? 1 : 5); ++seed) {
      double best_us = 1e9;
      for (const Point& point : run_search(name, domain, outcome, seed, 60)) {
        best_us = std::min(best_us, bowl_us(point, best));
      }
      ratios.push_back(best_us / 1000);
    }
    return median_of(ratios);
  };
  const double model = best_of("model");
  const double random = best_of("random");
  std::printf("best of 60 over the optimum: model %.3f, random %.3f\n", model, random);
  EXPECT_LT(model, 1.1);
  EXPECT_LT(model, 1 + 0.3 * (random - 1));
}

// After a thousand observations; a fit, which comes every quarter more of them, is shared out over those.
double proposal_ms(const SearchDomain& domain) {
  const auto now_ms = [] { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };  // of the processor
  const auto search = make_searcher("auto", domain, {});
  SearchRandom random(1);
  PointSet seen;
  const Point best(domain.axes().size(), 2);
  while (seen.size() < 1000) {
    const Point point = domain.sample(random).value();
    if (seen.insert(point).second) {
      search->observe(point, PointHash()(point) % 10 == 0 ? Observation{TrialStatus::crashed, 0}
                                                          : Observation{TrialStatus::ok, bowl_us(point, best)});
    }
  }
  double start_ms = now_ms();
  Point next = search->propose(1).at(0);
  const double fit_ms = (now_ms() - start_ms);
  constexpr int kProposals = 40;
  start_ms = now_ms();
  for (int i = 0; i < kProposals; ++i) {
    search->observe(next, {TrialStatus::ok, bowl_us(next, best)});
    next = search->propose(1).at(0);
  }
  const double plain_ms = (now_ms() - start_ms) / kProposals;
  std::printf("%.0f configurations: %.2f ms a proposal, %.0f ms with a fit, %.2f ms together\n", domain.combinations(),
              plain_ms, fit_ms, plain_ms + fit_ms / 250);
  return plain_ms + fit_ms / 250;
}

TEST(ModelSearcherCostTest, ProposalAtAThousandObservations) {
  if (kAddressSanitizer) {
    GTEST_SKIP() << "times under a sanitizer tell nothing";
  }
  constexpr double kMaxMs = 3 * 5;  // machines differ
  EXPECT_LT(proposal_ms(full_domain({10, 11, 10, 10})), kMaxMs) << "every configuration a candidate";
  EXPECT_LT(proposal_ms(full_domain({8, 8, 8, 8, 8})), kMaxMs) << "some of them candidates";
}

}  // namespace
}  // namespace pascaline::testing
