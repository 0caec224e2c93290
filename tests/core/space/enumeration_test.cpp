#include "core/space/enumeration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/util/paths.hpp"
#include "tests/core/space/small_space.hpp"
#include "tests/share.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::small_space;
using Indices = std::vector<std::uint16_t>;

std::vector<Indices> enumerated(const BoundSpace& bound) {
  std::vector<Indices> out;
  Enumerator enumerator(bound);
  const std::uint64_t visited = enumerator.for_each([&](std::span<const std::uint16_t> indices) {
    out.emplace_back(indices.begin(), indices.end());
    return true;
  });
  EXPECT_EQ(visited, out.size());
  return out;
}

// Every combination, asked one by one.
std::vector<Indices> by_brute_force(const BoundSpace& bound) {
  const Space& space = bound.space();
  std::vector<Indices> out;
  Indices indices(space.parameters.size(), 0);
  for (;;) {
    if (!bound.why_invalid(space.config_at(indices))) {
      out.push_back(indices);
    }
    std::size_t i = indices.size();
    while (i > 0 && ++indices[i - 1] == space.parameters[i - 1].values.size()) {
      indices[--i] = 0;
    }
    if (i == 0) {
      return out;
    }
  }
}

json matmul_text() { return json::parse(read_file(data_folder("search_spaces") / "matmul.json")); }

// Keeps the default and a random choice of the other values, so that the raw product is small enough to walk.
void thin_out(json& parameters, std::mt19937& random) {
  for (json& parameter : parameters) {
    json kept = json::array();
    for (const json& value : parameter["values"]) {
      if (value == parameter["default"] || random() % 3 == 0) {
        kept.push_back(value);
      }
    }
    parameter["values"] = kept;
  }
}

TEST(EnumerationTest, SmallSpaceEqualsBruteForce) {
  const Space space = Space::parse(small_space().dump(), "scale.json");
  for (const char* n : {"1", "2", "6", "1000", "4096"}) {
    const BoundSpace bound(space, space.problem({{"N", n}, {"WIDTH", "3"}}), *limits_of_architecture("sm_61"));
    EXPECT_EQ(enumerated(bound), by_brute_force(bound)) << n;
  }
}

TEST(EnumerationTest, ThinnedMatmulEqualsBruteForce) {
  std::mt19937 random(1);
  std::size_t found = 0;
  for (int round = 0; round < 12; ++round) {
    json text = matmul_text();
    thin_out(text["parameters"], random);
    for (const char* key : {"defaults", "portfolio", "portfolios"}) {
      text.erase(key);  // may name values that are left out
    }
    const Space space = Space::parse(text.dump(), "matmul.json");
    if (space.raw_size() > 30'000) {
      continue;
    }
    for (const auto& [m, k] : {std::pair{"1", "2048"}, {"512", "2048"}, {"2048", "24"}}) {
      const BoundSpace bound(space, space.problem({{"M", m}, {"N", "2048"}, {"K", k}}),
                             *limits_of_architecture(round % 2 == 0 ? "sm_61" : "sm_75"));
      const std::vector<Indices> all = enumerated(bound);
      ASSERT_EQ(all, by_brute_force(bound)) << "round " << round << ", M " << m;
      found += all.size();
    }
  }
  EXPECT_GT(found, 100U);
}

// Constraints drawn at random, whose comparisons are numbers to what follows (hence the `+`), launches that break
// limits at random.
json random_space(std::mt19937& random) {
  json space = small_space();
  const char* operators[] = {"+", "-", "*", "/", "%", "<", "<=", "==", "!=", "&", "|", "&&", "||", "<<"};
  const char* names[] = {"BLOCK", "ITEMS", "CACHED", "MAX_REGISTERS", "N", "WIDTH", "3", "64", "device_warp_size"};
  const auto pick = [&](const auto& list) { return std::string(list[random() % std::size(list)]); };
  space["constraints"] = json::array();
  for (unsigned i = 0; i < 1 + random() % 3; ++i) {
    std::string text = pick(names);
    for (unsigned j = 0; j < 1 + random() % 4; ++j) {
      text = "+(" + text + ") " + pick(operators) + " " + pick(names);
    }
    // Tied to the problem, as one over parameters alone would have to hold for the default.
    space["constraints"].push_back({{"require", "N < 0 || (" + text + ")"}, {"because", "chance"}});
  }
  space["launch"]["block"] = {"BLOCK", pick(names), "ITEMS"};
  return space;
}

TEST(EnumerationTest, RandomSpacesEqualBruteForce) {
  std::mt19937 random(2);
  std::size_t found = 0;
  for (int round = 0; round < 200; ++round) {
    const Space space = Space::parse(random_space(random).dump(), "scale.json");
    const BoundSpace bound(space, space.problem({{"N", std::to_string(1 + random() % 300)}, {"WIDTH", "4"}}),
                           *limits_of_architecture("sm_61"));
    const std::vector<Indices> all = enumerated(bound);
    ASSERT_EQ(all, by_brute_force(bound)) << space.json;
    found += all.size();
  }
  EXPECT_GT(found, 1000U);
}

TEST(EnumerationTest, OrderIsLexicographic) {
  const Space space = Space::parse(small_space().dump(), "scale.json");
  const BoundSpace bound(space, space.problem({{"N", "64"}, {"WIDTH", "3"}}), {});
  const std::vector<Indices> all = enumerated(bound);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(EnumerationTest, StopsWhenToldTo) {
  const Space space = Space::parse(small_space().dump(), "scale.json");
  const BoundSpace bound(space, space.problem({{"N", "64"}, {"WIDTH", "3"}}), {});
  Enumerator enumerator(bound);
  int calls = 0;
  EXPECT_EQ(enumerator.for_each([&](std::span<const std::uint16_t>) { return ++calls < 5; }), 5U);
  EXPECT_EQ(calls, 5);
}

TEST(EnumerationTest, AskingWhileWalkingDoesNotDisturbTheWalk) {
  const Space space = Space::parse(small_space().dump(), "scale.json");
  const BoundSpace bound(space, space.problem({{"N", "6"}, {"WIDTH", "3"}}), {});
  const std::vector<Indices> undisturbed = enumerated(bound);
  Enumerator enumerator(bound);
  const Indices last{3, 2, 1, 1, 1, 1};
  std::vector<Indices> all;
  enumerator.for_each([&](std::span<const std::uint16_t> indices) {
    EXPECT_TRUE(enumerator.valid(indices));
    EXPECT_FALSE(enumerator.valid(last));
    all.emplace_back(indices.begin(), indices.end());
    return true;
  });
  EXPECT_EQ(all, undisturbed);
}

TEST(EnumerationTest, BranchesFallAtOnce) {
  json text = small_space();
  text["constraints"] = {{{"require", "BLOCK == 64"}, {"because", "of the test"}}};
  const Space space = Space::parse(text.dump(), "scale.json");
  const BoundSpace bound(space, space.problem({{"N", "64"}, {"WIDTH", "3"}}), {});
  Enumerator enumerator(bound);
  EXPECT_EQ(enumerator.for_each([](std::span<const std::uint16_t>) { return true; }), 3U * 2 * 2 * 2 * 2);
  // 1 before any parameter, 4 blocks, then the tree below one of them.
  EXPECT_EQ(enumerator.considered(), 1U + 4 + 3 + 6 + 12 + 24 + 48);
}

TEST(EnumerationTest, ProblemsThatNoConfigurationFitsGiveNone) {
  json text = small_space();
  text["constraints"] = {{{"require", "N > 5"}, {"because", "of the test"}}};
  const Space space = Space::parse(text.dump(), "scale.json");
  const BoundSpace bound(space, space.problem({{"N", "5"}, {"WIDTH", "3"}}), {});
  EXPECT_TRUE(enumerated(bound).empty());
}

TEST(EnumerationTest, SpacesWithoutParametersHaveOneConfiguration) {
  json text = small_space();
  text["parameters"] = json::array();
  text["constraints"] = json::array();
  text["macros"] = json::array();
  text["launch"] = {{"function", "scale"}, {"block", {32}}, {"grid", {"N"}}};
  const Space space = Space::parse(text.dump(), "scale.json");
  const BoundSpace bound(space, space.problem({{"N", "5"}, {"WIDTH", "3"}}), {});
  EXPECT_EQ(enumerated(bound), std::vector<Indices>{Indices{}});
}

TEST(EnumerationTest, MatmulLeavesThousandsOfConfigurations) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const std::vector<std::vector<std::pair<std::string, std::string>>> shapes{
      {{"M", "1"}, {"N", "2048"}, {"K", "2048"}},
      {{"M", "512"}, {"N", "2048"}, {"K", "2048"}},
      {{"M", "4096"}, {"N", "1024"}, {"K", "1536"}},
      {{"M", "127"}, {"N", "1001"}, {"K", "333"}}};
  const std::size_t count = testing::shared_part(shapes.size(), "shapes");
  for (std::size_t i = 0; i < count; ++i) {
    for (const char* architecture : {"sm_61", "sm_62"}) {
      if (i > 0 && architecture != std::string("sm_61")) {
        continue;  // each takes seconds
      }
      const BoundSpace bound(space, space.problem(shapes[i]), *limits_of_architecture(architecture));
      Enumerator enumerator(bound);
      const std::uint64_t valid = enumerator.for_each([](std::span<const std::uint16_t>) { return true; });
      EXPECT_GE(valid, 5000U) << bound.problem().text() << " on " << architecture;
      EXPECT_LT(static_cast<double>(enumerator.considered()), space.raw_size() / 3) << "pruning does little";
      EXPECT_TRUE(enumerator.valid(space.default_indices(bound.limits()))) << bound.problem().text();
    }
  }
}

// A hundred million combinations, of which one is valid: minutes without an end.
json sparse_text() {
  json text = small_space();
  text["parameters"] = json::array();
  std::string sum;
  json values = json::array();
  for (int value = 1; value <= 100; ++value) {
    values.push_back(value);
  }
  for (const char* name : {"A", "B", "C", "D"}) {
    text["parameters"].push_back({{"name", name}, {"values", values}, {"default", 100}, {"description", ""}});
    sum += (sum.empty() ? "" : " + ") + std::string(name);
  }
  text["constraints"] = {{{"require", sum + " == 400"}, {"because", "only the end is possible"}}};
  text.erase("macros");
  text["launch"] = {{"function", "scale"}, {"block", {32}}, {"grid", {"N"}}};
  return text;
}

TEST(EnumerationTest, AStopCheckEndsItBetweenConfigurations) {
  const Space space = Space::parse(sparse_text().dump(), "scale.json");
  const BoundSpace bound(space, space.problem({{"N", "5"}, {"WIDTH", "3"}}), {});
  int calls = 0;
  Enumerator enumerator(bound, [&] {
    if (++calls == 3) {
      throw StoppedError("told to");
    }
  });
  const auto none = [](std::span<const std::uint16_t>) -> bool { throw Error("nothing is valid so early"); };
  EXPECT_THROW((void)enumerator.for_each(none), StoppedError);
  EXPECT_EQ(calls, 3);
  EXPECT_GT(enumerator.considered(), 1000U) << "it is asked seldom";
  EXPECT_LT(enumerator.considered(), 100'000U) << "and often enough";
  calls = 0;
  const std::vector<std::uint16_t> first(4, 0);
  const auto ask = [&] {
    while (!enumerator.valid(first)) {
    }
  };
  EXPECT_THROW(ask(), StoppedError) << "draws are steps, too";
}

}  // namespace
}  // namespace pascaline
