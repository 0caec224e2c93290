#include "tuner/search/searcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "core/error.hpp"
#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const SearcherName& searcher : searcher_names()) {
    names.emplace_back(searcher.name);
  }
  return names;
}

// Some work, some fail, and of those that work some are equal.
Observation mixed_outcome(const Point& point) {
  std::size_t hash = PointHash()(point) % 100;
  if (hash < 30) {
    return {hash < 10 ? TrialStatus::crashed : TrialStatus::wrong_result, 0};
  }
  return {TrialStatus::ok, static_cast<double>(10 + hash / 2)};
}

class EverySearcherTest : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::vector<Point> sorted(std::vector<Point> points) {
    std::sort(points.begin(), points.end());
    return points;
  }
  [[nodiscard]] std::vector<Point> run(const SearchDomain& domain, const Outcome& outcome, std::uint64_t seed,
                                       std::size_t batch = 1, std::size_t most = 1000) const {
    return run_search(GetParam(), domain, outcome, seed, most, batch);
  }
};

TEST_P(EverySearcherTest, ProposesEveryValidConfigurationOnce) {
  int spaces = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    const BoundDomain bound(chance_space(seed), seed % 2 == 0 ? 4 : SearchDomain::kMaxTuples);
    const std::vector<Point> valid = enumerated(bound.bound);
    if (valid.empty()) {
      continue;
    }
    const std::size_t batch = seed % 3 == 0 ? 7 : seed % 3;
    ASSERT_EQ(sorted(run(bound.domain, mixed_outcome, seed, batch)), valid) << "seed " << seed;
    ++spaces;
  }
  EXPECT_GE(spaces, 4);
}

TEST_P(EverySearcherTest, LearnsFromDroppedTrialsAsFromCompleteOnes) {
  const SearchDomain domain = full_domain({5, 4, 3, 2});
  const Outcome complete = [](const Point& point) {
    return Observation{TrialStatus::ok, bowl_us(point, {2, 1, 1, 0})};
  };
  const Outcome raced = [&](const Point& point) {
    Observation seen = complete(point);
    seen.status = seen.time_us > 1200 ? TrialStatus::dropped : TrialStatus::ok;
    return seen;
  };
  EXPECT_EQ(run(domain, raced, 7), run(domain, complete, 7));
}

TEST_P(EverySearcherTest, SpentSpaceStaysSpent) {
  const SearchDomain domain = full_domain({3, 2});
  const auto search = make_searcher(GetParam(), domain, {});
  EXPECT_TRUE(search->propose(0).empty());
  const std::vector<Point> all = search->propose(100);
  EXPECT_EQ(sorted(all), numbered(domain));
  EXPECT_TRUE(search->propose(3).empty());
  for (const Point& point : all) {
    search->observe(point, {TrialStatus::ok, 5});
  }
  EXPECT_TRUE(search->propose(1).empty());
}

TEST_P(EverySearcherTest, WhatWasObservedIsNotProposed) {
  const SearchDomain domain = full_domain({4, 4, 3});
  const std::vector<Point> all = numbered(domain);
  const auto search = make_searcher(GetParam(), domain, {});
  PointSet known;
  for (std::size_t i = 0; i < all.size(); i += 3) {
    search->observe(all[i], mixed_outcome(all[i]));
    search->observe(all[i], {TrialStatus::ok, 12});  // measured again
    known.insert(all[i]);
  }
  for (const Point& point : run_search(*search, domain, mixed_outcome, 1000, 2)) {
    EXPECT_TRUE(known.insert(point).second) << point_text(point) << " was known";
  }
  EXPECT_EQ(known.size(), all.size());
}

TEST_P(EverySearcherTest, SameSeedSameProposals) {
  const SearchDomain domain = full_domain({5, 5, 4});
  for (const std::size_t batch : {1U, 6U}) {
    const auto one = run(domain, mixed_outcome, 7, batch, 40);
    EXPECT_EQ(one, run(domain, mixed_outcome, 7, batch, 40));
    if (GetParam() != "exhaustive") {
      EXPECT_NE(one, run(domain, mixed_outcome, 8, batch, 40));
    }
  }
}

TEST_P(EverySearcherTest, OneThatDoesNotLearnProposesTheSameWhateverComes) {
  const SearchDomain domain = full_domain({5, 5, 4});
  const Outcome upside_down = [](const Point& point) {
    const Observation mixed = mixed_outcome(point);
    return Observation{mixed.status, 1000 / (1 + mixed.time_us)};
  };
  const bool same = run(domain, mixed_outcome, 7, 1, 100) == run(domain, upside_down, 7, 1, 100);
  EXPECT_EQ(same, !make_searcher(GetParam(), domain, {})->learns());
}

TEST_P(EverySearcherTest, OutcomesThatTellNothing) {
  const SearchDomain domain = full_domain({4, 3, 3});
  const double most = std::numeric_limits<double>::max();
  const double least = std::numeric_limits<double>::denorm_min();
  const std::vector<Outcome> outcomes{
      [](const Point&) {
        return Observation{TrialStatus::compile_failed, 0};
      },
      [](const Point&) {
        return Observation{TrialStatus::ok, 42};
      },
      [](const Point&) {
        return Observation{TrialStatus::ok, 0};
      },
      [&](const Point& point) {
        return Observation{TrialStatus::ok, point[0] % 2 == 0 ? most : least};
      },
      [](const Point& point) {
        return Observation{TrialStatus::ok, point[0] == 0 ? 0 : 1e300};
      },
      [](const Point& point) {
        return Observation{TrialStatus::ok, std::numeric_limits<double>::infinity() / point[0]};
      },
  };
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(run(domain, outcomes[i], 3, 2).size(), 36U) << "outcome " << i;
  }
}

TEST_P(EverySearcherTest, ResultsComeInAnyOrderOrNever) {
  const SearchDomain domain = full_domain({5, 4, 3});
  const auto search = make_searcher(GetParam(), domain, {});
  std::vector<Point> out;
  PointSet known;
  for (int round = 0;; ++round) {
    const auto proposals = search->propose(static_cast<std::size_t>(1 + round % 5));
    if (proposals.empty()) {
      break;
    }
    for (const Point& point : proposals) {
      EXPECT_TRUE(domain.contains(point) && known.insert(point).second) << point_text(point);
      out.push_back(point);
    }
    // The last ones first, two fewer than there are, and every seventh never.
    while (out.size() > 2) {
      if (PointHash()(out.back()) % 7 != 0) {
        search->observe(out.back(), mixed_outcome(out.back()));
      }
      out.pop_back();
    }
  }
  EXPECT_EQ(known.size(), 60U);
}

TEST_P(EverySearcherTest, OneConfiguration) {
  for (const std::vector<int>& sizes : {std::vector<int>{1}, std::vector<int>{1, 1}, std::vector<int>{}}) {
    const SearchDomain domain = full_domain(sizes);
    EXPECT_EQ(run(domain, mixed_outcome, 1).size(), 1U) << sizes.size();
  }
  EXPECT_EQ(run(BoundDomain(bare_space()).domain, mixed_outcome, 1).size(), 1U);
}

TEST_P(EverySearcherTest, TextRealsAndTruthValues) {
  nlohmann::json text = bare_space();
  add_parameter(text, "MODE", {"ca", "cg", "cs"});
  add_parameter(text, "RATIO", {0.5, 1.0, -3.5});
  add_parameter(text, "CACHED", {false, true});
  add_parameter(text, "A", {0, 3, 12});
  add_constraint(text, "CACHED || A < 12");
  const BoundDomain bound(text);
  EXPECT_EQ(sorted(run(bound.domain, mixed_outcome, 1, 3)), enumerated(bound.bound));
}

TEST_P(EverySearcherTest, NothingValidNamesTheConstraint) {
  nlohmann::json text = chance_space(1);
  add_constraint(text, "N > 5000 + A");
  const BoundDomain bound(text);
  try {
    std::ignore = make_searcher(GetParam(), bound.domain, {});
    FAIL() << "nothing is valid";
  } catch (const SpaceError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("bare.json:/constraints", 0), 0U) << message;
    EXPECT_NE(message.find("bare N=1000"), std::string::npos) << message;
    EXPECT_NE(message.find("because"), std::string::npos) << message;
  }
  const SearchDomain recorded({{"A", {std::int64_t{1}}}}, {});
  EXPECT_THROW(std::ignore = make_searcher(GetParam(), recorded, {}), Error);
}

INSTANTIATE_TEST_SUITE_P(Searchers, EverySearcherTest, ::testing::ValuesIn(all_names()),
                         [](const auto& parameter) { return parameter.param; });

TEST(SearcherTest, NamesAreDistinctAndTold) {
  const std::vector<std::string> names = all_names();
  EXPECT_EQ(names.front(), "auto");
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  for (const SearcherName& searcher : searcher_names()) {
    EXPECT_FALSE(searcher.summary.empty());
  }
}

TEST(SearcherTest, UnknownNameListsTheKnown) {
  const SearchDomain domain = full_domain({2});
  try {
    std::ignore = make_searcher("tabu", domain, {});
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("unknown searcher 'tabu' (known: auto, model, ", 0), 0U) << message;
    for (const std::string& name : all_names()) {
      EXPECT_NE(message.find(name), std::string::npos) << message;
    }
  }
}

TEST(SearcherTest, ExhaustiveFollowsTheOrderOfTheSpace) {
  nlohmann::json text = bare_space();
  add_parameter(text, "A", {1, 2, 3});
  add_parameter(text, "B", {1, 2, 3});
  add_constraint(text, "A != B");
  const BoundDomain bound(text);
  EXPECT_EQ(make_searcher("exhaustive", bound.domain, {})->propose(100), enumerated(bound.bound));
  const auto step_by_step = run_search("exhaustive", bound.domain, mixed_outcome, 9, 100, 2);
  EXPECT_EQ(step_by_step, enumerated(bound.bound));
}

TEST(SearcherTest, RandomOrderDoesNotDependOnHowManyAreAskedFor) {
  const SearchDomain domain = full_domain({3, 3, 3});
  EXPECT_EQ(run_search("random", domain, mixed_outcome, 7, 27, 1),
            run_search("random", domain, mixed_outcome, 7, 27, 9));
}

TEST(SearcherTest, RandomDrawsUniformly) {
  constexpr int kDraws = 3000;
  const SearchDomain domain = full_domain({5, 2});
  std::map<Point, int> first;
  std::map<Point, int> last;
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    SearchOptions options;
    options.seed = seed;
    const std::vector<Point> order = make_searcher("random", domain, options)->propose(10);
    ++first[order.front()];
    ++last[order.back()];
  }
  EXPECT_LT(chi_squared(first, 10, kDraws), chi_squared_limit(9));
  EXPECT_LT(chi_squared(last, 10, kDraws), chi_squared_limit(9));
}

// What goes downhill finds the bottom of one bowl in fewer trials than chance does.
TEST(SearcherTest, WalkingFindsABowlsBottom) {
  const SearchDomain domain = full_domain({8, 8, 8});
  const Point best{5, 2, 6};
  const Outcome bowl = [&](const Point& point) { return Observation{TrialStatus::ok, bowl_us(point, best)}; };
  const auto median_trials = [&](const std::string& name) {
    std::vector<double> trials;
    for (std::uint64_t seed = 1; seed <= 11; ++seed) {
      trials.push_back(trials_until(run_search(name, domain, bowl, seed, 512), best));
    }
    return median_of(trials);
  };
  const double random = median_trials("random");
  EXPECT_GT(random, 120);
  for (const char* name : {"local", "annealing", "genetic"}) {
    const double trials = median_trials(name);
    std::printf("%s: %.0f trials, random: %.0f\n", name, trials, random);
    EXPECT_LT(trials, 0.7 * random) << name;
  }
}

// Of 20^5 combinations the last alone is valid, and few tuples are listed.
nlohmann::json sparse_space() {
  nlohmann::json space = bare_space();
  nlohmann::json values = nlohmann::json::array();
  for (int value = 1; value <= 20; ++value) {
    values.push_back(value);
  }
  for (const char* name : {"A", "B", "C", "D", "E"}) {
    add_parameter(space, name, values);
    space["parameters"].back()["default"] = 20;
  }
  add_constraint(space, "A + B + C + D + E == 100");
  return space;
}

TEST(SearcherTest, ExhaustiveComesBackWhileItLooksForAConfiguration) {
  const BoundDomain bound(sparse_space(), 400);
  const auto searcher = make_searcher("exhaustive", bound.domain, {});
  int calls = 1;
  std::vector<Point> found = searcher->propose(1);
  for (; found.empty() && searcher->looking(); ++calls) {
    found = searcher->propose(1);
  }
  EXPECT_EQ(found, std::vector<Point>{Point(5, 19)});
  EXPECT_GT(calls, 10) << "three million combinations are not looked at in one call";
  EXPECT_FALSE(searcher->looking());
  EXPECT_TRUE(searcher->propose(1).empty());
  EXPECT_FALSE(searcher->looking()) << "the space is spent";
}

TEST(SearcherTest, AStopCheckEndsEverySearcher) {
  const Space space = Space::parse(sparse_space().dump(), "bare.json");
  const BoundSpace bound(space, space.example_problem(), {});
  bool stop = false;
  const SearchDomain domain(bound, 400, [&] {
    if (stop) {
      throw StoppedError("told to");
    }
  });
  for (const std::string& name : all_names()) {
    stop = false;
    const auto searcher = make_searcher(name, domain, {});
    searcher->observe(Point(5, 19), {TrialStatus::ok, 10});
    stop = true;
    const auto ask_again = [&] {
      do {
        std::ignore = searcher->propose(100);
      } while (searcher->looking());
    };
    EXPECT_THROW(ask_again(), StoppedError) << name;
  }
  EXPECT_THROW(SearchDomain(bound, SearchDomain::kMaxTuples, [] { throw StoppedError("told to"); }), StoppedError)
      << "listing tuples";
}

}  // namespace
}  // namespace pascaline::testing
