#include "tuner/portfolio/choose_portfolio.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

TimeMatrix matrix(const std::vector<std::vector<double>>& rows) {
  TimeMatrix times;
  times.configs = rows.empty() ? 0 : rows.front().size();
  for (const auto& row : rows) {
    times.rows.push_back({row, *std::min_element(row.begin(), row.end()), 0});
  }
  return times;
}

TimeMatrix random_matrix(std::mt19937& random, std::size_t rows, std::size_t configs, double unknown) {
  std::vector<std::vector<double>> times(rows);
  for (auto& row : times) {
    for (std::size_t i = 0; i < configs; ++i) {
      const bool is_known = i == 0 || std::uniform_real_distribution<double>()(random) >= unknown;
      row.push_back(is_known ? std::uniform_real_distribution<double>(1, 4)(random) : kUnknownTime);
    }
  }
  return matrix(times);
}

// The least mean of all portfolios of the default and `size` others.
double least_mean(const TimeMatrix& times, std::size_t size) {
  double least = kUnknownTime;
  std::vector<bool> chosen(times.configs - 1, false);
  std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(size), true);
  do {
    std::vector<std::size_t> members{0};
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i]) {
        members.push_back(i + 1);
      }
    }
    least = std::min(least, portfolio_quality(times, members).mean);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return least;
}

TEST(ChoosePortfolioTest, IsNearTheBestOfAllPortfolios) {
  std::mt19937 random(7);
  int exact = 0;
  for (int round = 0; round < 60; ++round) {
    const TimeMatrix times = random_matrix(random, 8, 9, round % 2 == 0 ? 0 : 0.3);
    const PortfolioChoice choice = choose_portfolio(times, {0}, 3);
    const double best = least_mean(times, 3);
    EXPECT_GE(choice.quality.back().mean, best * (1 - 1e-9));
    EXPECT_LE(choice.quality.back().mean, best * 1.03) << "round " << round;
    exact += choice.quality.back().mean < best * 1.002 ? 1 : 0;
  }
  EXPECT_GE(exact, 50);
}

TEST(ChoosePortfolioTest, TheFirstHelpsMost) {
  std::mt19937 random(3);
  const TimeMatrix times = random_matrix(random, 20, 30, 0);
  const PortfolioChoice choice = choose_portfolio(times, {0}, 6);
  ASSERT_EQ(choice.members.size(), 7U);
  ASSERT_EQ(choice.quality.size(), 7U);
  for (std::size_t i = 1; i < choice.quality.size(); ++i) {
    EXPECT_LT(choice.quality[i].mean, choice.quality[i - 1].mean);
  }
  for (std::size_t i = 2; i < choice.members.size(); ++i) {
    EXPECT_LE(choice.quality[1].mean, portfolio_quality(times, {0, choice.members[i]}).mean * (1 + 1e-9));
  }
}

TEST(ChoosePortfolioTest, ExchangesAMemberThatOthersMakeSuperfluous) {
  // 3 is good everywhere and comes first; 1 and 2 together are best everywhere.
  const TimeMatrix times = matrix({{9, 1, 4, 1.5}, {9, 1, 4, 1.5}, {9, 4, 1, 1.5}, {9, 4, 1, 1.5}});
  const PortfolioChoice one = choose_portfolio(times, {0}, 1);
  EXPECT_EQ(one.members, (std::vector<std::size_t>{0, 3}));
  const PortfolioChoice two = choose_portfolio(times, {0}, 2);
  EXPECT_EQ(two.members, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(two.quality.back().mean, 1);
}

TEST(ChoosePortfolioTest, EndsWhereNothingHelpsAndOfEqualOnesTakesTheFirst) {
  const TimeMatrix times = matrix({{2, 1, 1, 3}, {2, 2, 2, 2}});
  const PortfolioChoice choice = choose_portfolio(times, {0}, 3);
  EXPECT_EQ(choice.members, (std::vector<std::size_t>{0, 1}));
  const TimeMatrix best = matrix({{1, 1, 2}});
  EXPECT_EQ(choose_portfolio(best, {0}, 2).members, std::vector<std::size_t>{0}) << "the default is the best";
}

TEST(ChoosePortfolioTest, WhatIsNotKnownCoversNothing) {
  const TimeMatrix times = matrix({{2, 1, kUnknownTime}, {kUnknownTime, kUnknownTime, 8}, {kUnknownTime, 3, 1}});
  const PortfolioQuality alone = portfolio_quality(times, {0});
  EXPECT_EQ(alone.uncovered, 2U);
  EXPECT_DOUBLE_EQ(alone.worst, 3) << "the slowest known";
  EXPECT_EQ(alone.worst_row, 2U);
  EXPECT_NEAR(alone.mean, std::cbrt(2.0 * 1 * 3), 1e-12);
  const PortfolioChoice choice = choose_portfolio(times, {0}, 2);
  EXPECT_EQ(choice.members, (std::vector<std::size_t>{0, 2, 1}));
  EXPECT_EQ(choice.quality.back().uncovered, 0U);
  EXPECT_DOUBLE_EQ(choice.quality.back().worst, 1);
}

TEST(ChoosePortfolioTest, TheBestMayBeOfNoConfigurationHere) {
  TimeMatrix times = matrix({{4, 2}});
  times.rows[0].best_us = 1;
  const PortfolioChoice choice = choose_portfolio(times, {0}, 1);
  EXPECT_DOUBLE_EQ(choice.quality[0].mean, 4);
  EXPECT_DOUBLE_EQ(choice.quality[1].mean, 2);
}

TEST(ChoosePortfolioTest, OneProblemTakesItsBest) {
  EXPECT_EQ(choose_portfolio(matrix({{5, 3, 2, 4}}), {0}, 3).members, (std::vector<std::size_t>{0, 2}));
}

TEST(ChoosePortfolioTest, TheWorstGroupCountsAsMuchAsAllTogether) {
  TimeMatrix times = matrix({{2, 1, 2}, {2, 1, 2}, {2, 1, 2}, {6, 6, 1}});
  EXPECT_EQ(choose_portfolio(times, {0}, 1).members.back(), 1U);
  times.rows[3].group = 1;
  const PortfolioChoice choice = choose_portfolio(times, {0}, 1);
  EXPECT_EQ(choice.members.back(), 2U);
  EXPECT_DOUBLE_EQ(choice.quality.back().worst_group, 2);
}

TEST(ChoosePortfolioTest, WithoutAProblemThereIsNothingToChooseFor) {
  EXPECT_THROW((void)choose_portfolio({}, {}, 3), Error);
}

}  // namespace
}  // namespace pascaline::testing
