#include "tuner/searcher.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "core/error.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// Three blocks times four faults, without those that BLOCK 32 rules out: ten valid configurations.
class SearcherTest : public ::testing::Test {
 protected:
  static nlohmann::json json() {
    nlohmann::json json = toy_json({kRight, kNotANumber, kLastElementLeftOut, kWriteBehind});
    json["constraints"].push_back({{"require", "BLOCK > 32 || FAULT < 2"}, {"because", "small blocks do little"}});
    return json;
  }

  Space space_ = Space::parse(json().dump(), "toy.json");
  BoundSpace bound_{space_, space_.example_problem(), DeviceLimits()};

  [[nodiscard]] std::vector<std::string> all(std::string_view searcher, std::uint64_t seed,
                                             std::size_t at_once = 3) const {
    const auto search = make_searcher(searcher, bound_, seed);
    std::vector<std::string> texts;
    for (auto some = search->propose(at_once); !some.empty(); some = search->propose(at_once)) {
      EXPECT_LE(some.size(), at_once);
      for (const Config& config : some) {
        EXPECT_FALSE(bound_.why_invalid(config)) << config.text();
        texts.push_back(config.text());
      }
    }
    EXPECT_TRUE(search->propose(1).empty()) << "a spent space stays spent";
    return texts;
  }
};

TEST_F(SearcherTest, ExhaustiveFollowsTheOrderOfTheSpace) {
  const std::vector<std::string> texts = all("exhaustive", 1);
  ASSERT_EQ(texts.size(), 10U);
  EXPECT_EQ(texts[0], "BLOCK=32 FAULT=0");
  EXPECT_EQ(texts[1], "BLOCK=32 FAULT=1");
  EXPECT_EQ(texts[2], "BLOCK=64 FAULT=0");
  EXPECT_EQ(texts[9], "BLOCK=128 FAULT=3");
  EXPECT_EQ(texts, all("exhaustive", 2, 10));
}

TEST_F(SearcherTest, RandomProposesEveryValidConfigurationOnce) {
  const std::vector<std::string> in_order = all("exhaustive", 1);
  const std::vector<std::string> drawn = all("random", 7);
  EXPECT_NE(drawn, in_order);
  EXPECT_EQ(drawn.size(), in_order.size());
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()), std::set(in_order.begin(), in_order.end()));
}

TEST_F(SearcherTest, SameSeedSameOrderHoweverManyAreAskedForAtOnce) {
  EXPECT_EQ(all("random", 7, 1), all("random", 7, 10));
  EXPECT_NE(all("random", 7), all("random", 8));
}

// Chi-squared over the ten configurations drawn first and last: 9 degrees of freedom, 27.9 at 0.1 %.
TEST_F(SearcherTest, RandomDrawsUniformly) {
  constexpr int kDraws = 5000;
  std::map<std::string, std::array<int, 2>> counts;
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    const std::vector<Config> order = make_searcher("random", bound_, seed)->propose(10);
    ++counts[order.front().text()][0];
    ++counts[order.back().text()][1];
  }
  ASSERT_EQ(counts.size(), 10U);
  for (const std::size_t place : {0U, 1U}) {
    double chi_squared = 0;
    for (const auto& [text, count] : counts) {
      const double difference = count[place] - kDraws / 10.0;
      chi_squared += difference * difference / (kDraws / 10.0);
    }
    EXPECT_LT(chi_squared, 27.9);
  }
}

TEST_F(SearcherTest, ObservationsOfStrangersAreTaken) {
  const auto search = make_searcher("random", bound_, 1);
  search->observe(toy_config(64), {TrialStatus::ok, 5});
  search->observe(toy_config(32, kWriteBehind), {TrialStatus::crashed, 0});
  EXPECT_EQ(search->propose(100).size(), 10U);
}

TEST_F(SearcherTest, NothingValidNamesTheConstraint) {
  nlohmann::json json = SearcherTest::json();
  json["constraints"].push_back({{"require", "N > 5000 + BLOCK"}, {"because", "small problems are for others"}});
  const Space space = Space::parse(json.dump(), "spaces/toy.json");
  const BoundSpace bound(space, space.example_problem(), DeviceLimits());
  for (const std::string_view name : searcher_names()) {
    try {
      std::ignore = make_searcher(name, bound, 1);
      FAIL() << "nothing is valid";
    } catch (const SpaceError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.rfind("spaces/toy.json:/constraints", 0), 0U) << message;
      EXPECT_NE(message.find("toy N=1000"), std::string::npos) << message;
      EXPECT_NE(message.find("small problems are for others"), std::string::npos) << message;
    }
  }
}

TEST_F(SearcherTest, UnknownNameListsTheKnown) {
  try {
    std::ignore = make_searcher("genetic", bound_, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown searcher 'genetic' (known: random, exhaustive)");
  }
}

}  // namespace
}  // namespace pascaline::testing
