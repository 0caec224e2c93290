#include "tuner/search/stop_rule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

/// Expects what it is told to.
class TellingSearcher : public Searcher {
 public:
  std::optional<double> gain;
  mutable int asked = 0;
  std::vector<Point> propose(std::size_t) override { return {}; }
  void observe(const Point&, const Observation&) override {}
  [[nodiscard]] std::optional<double> expected_improvement() const override {
    ++asked;
    return gain;
  }
};

TEST(StopRuleTest, LittleIsExpectedSeveralTimesInARow) {
  TellingSearcher searcher;
  StopRule rule(0.001);
  searcher.gain = 0.0005;
  for (int i = 1; i < StopRule::kInARow; ++i) {
    EXPECT_FALSE(rule.is_reached(searcher)) << i;
  }
  searcher.gain = 0.01;
  EXPECT_FALSE(rule.is_reached(searcher)) << "a fit changed its mind";
  searcher.gain = 0.0005;
  for (int i = 1; i < StopRule::kInARow; ++i) {
    EXPECT_FALSE(rule.is_reached(searcher)) << i;
  }
  EXPECT_TRUE(rule.is_reached(searcher));
}

TEST(StopRuleTest, WhatExpectsNothingOrHasNoThresholdGoesOn) {
  TellingSearcher searcher;
  StopRule rule(0.001);
  StopRule never(0);
  for (int i = 0; i < 2 * StopRule::kInARow; ++i) {
    searcher.gain.reset();
    EXPECT_FALSE(rule.is_reached(searcher)) << "no model";
    searcher.gain = 0;
    const int asked = searcher.asked;
    EXPECT_FALSE(never.is_reached(searcher));
    EXPECT_EQ(searcher.asked, asked) << "without a threshold nothing is computed";
  }
}

// Times of two parameters of 30 values each, of which the second changes nothing.
double valley_us(const Point& point) { return 100 * std::exp(0.002 * std::pow(point[0] - 12.0, 2)); }

TEST(StopRuleTest, TheModelExpectsLessTheMoreItKnows) {
  const SearchDomain domain = full_domain({30, 30});
  const auto search = make_searcher("model", domain, {});
  std::vector<double> gains;
  StopRule rule(0.0003);
  int trials = 0;
  double best_us = 1e9;
  for (bool over = false; !over && trials < 900; ++trials) {
    const Point point = search->propose(1).front();
    over = rule.is_reached(*search);
    const auto gain = search->expected_improvement();
    EXPECT_EQ(gain.has_value(), trials >= 8) << trials;
    gains.push_back(gain.value_or(1));
    best_us = std::min(best_us, valley_us(point));
    search->observe(point, {TrialStatus::ok, valley_us(point)});
  }
  EXPECT_LT(trials, 100) << "of 900";
  EXPECT_LT(best_us, 100.1);
  EXPECT_GT(gains[8], 0.001);
  EXPECT_LT(gains.back(), 0.0003);
}

// What is expected is computed when it is asked for, of the last proposal: later observations change nothing of it, and
// asking changes nothing of the search.
TEST(StopRuleTest, AskingChangesNothing) {
  const SearchDomain domain = full_domain({30, 30});
  const auto asked = make_searcher("model", domain, {});
  const auto unasked = make_searcher("model", domain, {});
  for (int i = 0; i < 40; ++i) {
    const Point point = asked->propose(1).front();
    ASSERT_EQ(unasked->propose(1).front(), point) << i;
    const auto before = asked->expected_improvement();
    asked->observe(point, {TrialStatus::ok, valley_us(point)});
    unasked->observe(point, {TrialStatus::ok, valley_us(point)});
    EXPECT_EQ(asked->expected_improvement(), before) << i;
    if (i == 39) {
      EXPECT_NEAR(unasked->expected_improvement().value(), before.value(), 1e-12) << "asked late";
    }
  }
}

TEST(StopRuleTest, OthersExpectNothing) {
  const SearchDomain domain = full_domain({5, 5});
  for (const char* name : {"genetic", "local", "annealing", "random", "exhaustive"}) {
    const auto search = make_searcher(name, domain, {});
    for (int i = 0; i < 20; ++i) {
      const Point point = search->propose(1).front();
      search->observe(point, {TrialStatus::ok, valley_us(point)});
    }
    EXPECT_FALSE(search->expected_improvement()) << name;
  }
}

}  // namespace
}  // namespace pascaline::testing
