#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "core/util/paths.hpp"
#include "tests/tuner/search/domains.hpp"

namespace pascaline::testing {
namespace {

// Of the processor, which other processes cannot make longer.
double now_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Ten parameters of eight values, 1.07e9 combinations, each tied to the next: values at most `apart` from one another.
nlohmann::json chain(int apart) {
  nlohmann::json text = bare_space();
  for (int i = 0; i < 10; ++i) {
    add_parameter(text, "P" + std::to_string(i), {0, 1, 2, 3, 4, 5, 6, 7});
  }
  for (int i = 0; i < 9; ++i) {
    const std::string difference = "(P" + std::to_string(i) + " - P" + std::to_string(i + 1) + ")";
    add_constraint(text, difference + " * " + difference + " <= " + std::to_string(apart * apart));
  }
  return text;
}

// Valid configurations of the chain, by the value of each parameter.
std::vector<std::vector<double>> counts_of_chain(int apart) {
  const auto pass = [&](const std::vector<double>& from) {
    std::vector<double> to(8, 0);
    for (int a = 0; a < 8; ++a) {
      for (int b = 0; b < 8; ++b) {
        to[static_cast<std::size_t>(b)] += std::abs(a - b) <= apart ? from[static_cast<std::size_t>(a)] : 0;
      }
    }
    return to;
  };
  std::vector<std::vector<double>> ways{std::vector<double>(8, 1)};
  for (int i = 0; i < 9; ++i) {
    ways.push_back(pass(ways.back()));
  }
  std::vector<std::vector<double>> counts(10, std::vector<double>(8));
  for (std::size_t axis = 0; axis < 10; ++axis) {
    for (std::size_t value = 0; value < 8; ++value) {
      counts[axis][value] = ways[axis][value] * ways[9 - axis][value];
    }
  }
  return counts;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum;
}

// The tenth of what it takes is allowed to be ten times as much: machines differ, orders of magnitude do not.
void expect_quick(double seconds, const std::string& what) {
  std::printf("%s: %.2f s\n", what.c_str(), seconds);
  if (!kAddressSanitizer) {
    EXPECT_LT(seconds, 3) << what;
  }
}

// Where the listed part ends, rejection begins: neither may be seen in how often a value is drawn.
void expect_drawn_by_counts(const SearchDomain& domain, int apart, int draws) {
  const auto counts = counts_of_chain(apart);
  SearchRandom random(1);
  std::vector<std::vector<double>> drawn(10, std::vector<double>(8, 0));
  for (int i = 0; i < draws; ++i) {
    const auto point = domain.sample(random);
    ASSERT_TRUE(point && domain.contains(*point));
    for (std::size_t axis = 0; axis < 10; ++axis) {
      ++drawn[axis][(*point)[axis]];
    }
  }
  for (std::size_t axis = 0; axis < 10; ++axis) {
    double chi = 0;
    for (std::size_t value = 0; value < 8; ++value) {
      const double expected = draws * counts[axis][value] / sum_of(counts[axis]);
      chi += (drawn[axis][value] - expected) * (drawn[axis][value] - expected) / expected;
    }
    EXPECT_LT(chi, chi_squared_limit(7)) << "P" << axis;
  }
}

TEST(LargeSpaceTest, TightChainIsListedWhole) {
  const double start = now_s();
  const BoundDomain bound(chain(1));
  expect_quick(now_s() - start, "1.07e9 combinations, few valid");
  EXPECT_TRUE(bound.domain.exact());
  EXPECT_EQ(bound.domain.combinations(), sum_of(counts_of_chain(1)[0]));
  expect_drawn_by_counts(bound.domain, 1, 4000);
}

TEST(LargeSpaceTest, LooseChainIsDrawnUniformlyAllTheSame) {
  const double start = now_s();
  const BoundDomain bound(chain(3), kAddressSanitizer ? 20'000 : SearchDomain::kMaxTuples);
  SearchRandom random(2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(bound.domain.sample(random));
  }
  expect_quick(now_s() - start, "1.07e9 combinations, 4 % valid, with 100 draws");
  EXPECT_FALSE(bound.domain.exact());
  EXPECT_GT(bound.domain.combinations(), sum_of(counts_of_chain(3)[0]));
  expect_drawn_by_counts(bound.domain, 3, 4000);
}

TEST(LargeSpaceTest, ShippedMatmul) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  ASSERT_GT(space.raw_size(), 1e9);
  const double start = now_s();
  const BoundSpace bound(space, space.example_problem(), *limits_of_architecture("sm_61"));
  const SearchDomain domain(bound, kAddressSanitizer ? 5'000 : SearchDomain::kMaxTuples);
  SearchRandom random(3);
  PointSet different;
  for (int i = 0; i < 200; ++i) {
    const auto point = domain.sample(random);
    ASSERT_TRUE(point);
    EXPECT_FALSE(bound.why_invalid(space.config_at(*point))) << space.config_at(*point).text();
    different.insert(*point);
  }
  expect_quick(now_s() - start, "matmul with 200 draws");
  EXPECT_GT(different.size(), 195U);
}

TEST(LargeSpaceTest, EverySearcherFindsItsWay) {
  const BoundDomain bound(chain(2), 5'000);
  ASSERT_FALSE(bound.domain.exact());
  const Point best(10, 3);
  for (const SearcherName& searcher : searcher_names()) {
    const auto run = run_search(
        searcher.name, bound.domain,
        [&](const Point& point) {
          return Observation{TrialStatus::ok, bowl_us(point, best)};
        },
        1, kAddressSanitizer ? 20 : 60, 4);
    EXPECT_EQ(run.size(), kAddressSanitizer ? 20U : 60U) << searcher.name;
  }
}

TEST(LargeSpaceTest, TooManyToBeTriedOneByOne) {
  nlohmann::json text = bare_space();
  nlohmann::json values = nlohmann::json::array();
  for (int i = 0; i < 100; ++i) {
    values.push_back(i);
  }
  for (int i = 0; i < 8; ++i) {
    add_parameter(text, "P" + std::to_string(i), values);
  }
  const BoundDomain bound(text);
  try {
    std::ignore = make_searcher("exhaustive", bound.domain, {});
    FAIL() << "1e16 configurations";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(),
                 "about 1.0e+16 configurations are too many to try one by one: choose another --searcher");
  }
  EXPECT_EQ(make_searcher("random", bound.domain, {})->propose(5).size(), 5U);
}

}  // namespace
}  // namespace pascaline::testing
