#include "tuner/search/search_domain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/error.hpp"
#include "core/space/enumeration.hpp"
#include "core/util/paths.hpp"
#include "tests/tuner/search/domains.hpp"
#include "tuner/search/constraint_groups.hpp"

namespace pascaline::testing {
namespace {

double product(const std::vector<TupleList>& groups) {
  return std::accumulate(groups.begin(), groups.end(), 1.0,
                         [](double all, const TupleList& group) { return all * static_cast<double>(group.size()); });
}

// That the domain's numbers are the valid configurations, all of them, and that it tells others from them.
void expect_valid_ones(const SearchDomain& domain, const std::vector<Point>& valid, const std::string& what) {
  const std::vector<Point> found = numbered(domain);
  ASSERT_TRUE(found == valid) << what << ": " << found.size() << " of " << valid.size();
  for (const Point& point : valid) {
    ASSERT_TRUE(domain.contains(point)) << what << ": " << point_text(point);
  }
  if (domain.exact()) {
    EXPECT_EQ(domain.combinations(), static_cast<double>(valid.size())) << what;
  } else {
    EXPECT_GE(domain.combinations(), static_cast<double>(valid.size())) << what;
  }
}

TEST(SearchDomainTest, ShippedSpacesAsEnumerated) {
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("search_spaces"))) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    const Space space = Space::load(entry.path());
    if (space.raw_size() > 10'000) {
      continue;
    }
    const BoundSpace bound(space, space.example_problem(), *limits_of_architecture("sm_61"));
    const std::vector<Point> valid = enumerated(bound);
    const SearchDomain domain(bound);
    EXPECT_TRUE(domain.exact()) << space.kernel;
    expect_valid_ones(domain, valid, space.kernel);
    expect_valid_ones(SearchDomain(bound, 40), valid, space.kernel + ", 40 tuples");
    ++checked;
  }
  EXPECT_GE(checked, 10);
}

TEST(SearchDomainTest, ChanceSpacesAsEnumerated) {
  std::size_t some = 0;
  std::size_t inexact = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const nlohmann::json text = chance_space(seed);
    const BoundDomain whole(text);
    const std::vector<Point> valid = enumerated(whole.bound);
    EXPECT_TRUE(whole.domain.exact());
    ASSERT_NO_FATAL_FAILURE(expect_valid_ones(whole.domain, valid, text.dump()));
    for (const std::size_t most_tuples : {1U, 4U, 20U}) {
      const SearchDomain part(whole.bound, most_tuples);
      inexact += part.exact() ? 0 : 1;
      ASSERT_NO_FATAL_FAILURE(expect_valid_ones(part, valid, text.dump() + std::to_string(most_tuples)));
    }
    some += valid.empty() ? 0 : 1;
  }
  EXPECT_GT(some, 30U);
  EXPECT_GT(inexact, 60U);
}

TEST(SearchDomainTest, GroupsAreWhatConstraintsTieTogether) {
  nlohmann::json text = bare_space();
  for (const char* name : {"A", "B", "C", "D", "E"}) {
    add_parameter(text, name, {1, 2, 3, 4});
  }
  add_constraint(text, "A <= D");
  add_constraint(text, "B * E <= 4");
  const BoundDomain bound(text);
  const ConstraintGroups found = constraint_groups(bound.bound, SearchDomain::kMaxTuples);
  EXPECT_TRUE(found.exact);
  ASSERT_EQ(found.groups.size(), 3U);
  EXPECT_EQ(found.groups[0].axes, (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(found.groups[0].size(), 10U);
  EXPECT_EQ(found.groups[1].axes, (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(found.groups[1].size(), 8U);
  EXPECT_EQ(found.groups[2].axes, std::vector<std::size_t>{2});
  EXPECT_EQ(product(found.groups), static_cast<double>(enumerated(bound.bound).size()));
  EXPECT_EQ(bound.domain.combinations(), 320);
  EXPECT_TRUE(std::ranges::equal(found.groups[0].at(1), Point{0, 1})) << "in the order of the space";
}

TEST(SearchDomainTest, LimitOfTuplesLeavesParametersAlone) {
  nlohmann::json text = bare_space();
  add_parameter(text, "A", {1, 2, 3, 4});
  add_parameter(text, "B", {1, 2, 3, 4});
  add_constraint(text, "A <= B");
  const BoundDomain bound(text, 9);
  EXPECT_FALSE(bound.domain.exact()) << "ten tuples are more than nine";
  EXPECT_EQ(bound.domain.combinations(), 16);
  EXPECT_TRUE(BoundDomain(text, 10).domain.exact());
  const ConstraintGroups loose = constraint_groups(bound.bound, 2);
  ASSERT_EQ(loose.groups.size(), 2U) << "not even one parameter's values may be listed";
  EXPECT_EQ(product(loose.groups), 16);
}

TEST(SearchDomainTest, NothingValid) {
  nlohmann::json text = bare_space();
  add_parameter(text, "A", {1, 2});
  add_parameter(text, "B", {1, 2});
  nlohmann::json by_parameters = text;
  add_constraint(by_parameters, "A * B > 4");
  nlohmann::json by_problem = text;
  add_constraint(by_problem, "N < 1000");
  nlohmann::json by_launch = text;
  by_launch["launch"]["block"] = {"A * 1024 + N"};
  nlohmann::json one_by_one = text;
  add_constraint(one_by_one, "A > 2");
  for (const nlohmann::json& each : {by_parameters, by_problem, by_launch, one_by_one}) {
    const BoundDomain bound(each);
    EXPECT_EQ(bound.domain.combinations(), 0);
    SearchRandom random(1);
    EXPECT_FALSE(bound.domain.sample(random));
    EXPECT_TRUE(bound.domain.neighbours({0, 0}, Reach::any).empty());
    EXPECT_FALSE(bound.domain.contains({0, 0}));
  }
  const BoundDomain inexact(by_parameters, 1);
  SearchRandom random(1);
  EXPECT_FALSE(inexact.domain.sample(random)) << "ends, though nothing is listed";
}

TEST(SearchDomainTest, NoParameters) {
  SearchRandom random(1);
  const BoundDomain bound(bare_space());
  EXPECT_EQ(bound.domain.combinations(), 1);
  EXPECT_EQ(bound.domain.at(0), Point());
  EXPECT_EQ(bound.domain.sample(random), Point());
  EXPECT_TRUE(bound.domain.neighbours({}, Reach::any).empty());
  EXPECT_TRUE(bound.domain.neighbours({}, Reach::pair).empty());
  nlohmann::json never = bare_space();
  add_constraint(never, "N < 1000");
  EXPECT_EQ(BoundDomain(never).domain.combinations(), 0);
  const SearchDomain recorded({}, {Point()});
  EXPECT_EQ(recorded.combinations(), 1);
  EXPECT_EQ(recorded.at(0), Point());
  EXPECT_EQ(recorded.sample(random), Point());
}

TEST(SearchDomainTest, OneParameter) {
  nlohmann::json text = bare_space();
  add_parameter(text, "A", {1, 2, 3, 4, 5});
  add_constraint(text, "A != 3");
  const BoundDomain bound(text);
  EXPECT_EQ(numbered(bound.domain), (std::vector<Point>{{0}, {1}, {3}, {4}}));
  EXPECT_EQ(bound.domain.at(2), Point{3});
  EXPECT_EQ(bound.domain.neighbours({1}, Reach::step), std::vector<Point>{{0}});
  EXPECT_EQ(bound.domain.neighbours({1}, Reach::any).size(), 3U);
  EXPECT_TRUE(bound.domain.neighbours({1}, Reach::pair).empty()) << "there is no second parameter";
}

TEST(SearchDomainTest, TextRealsAndTruthValues) {
  nlohmann::json text = bare_space();
  add_parameter(text, "MODE", {"ca", "cg", "cs"});
  add_parameter(text, "RATIO", {0.5, 1.0});
  add_parameter(text, "CACHED", {false, true});
  add_parameter(text, "A", {1, 2, 3});
  add_constraint(text, "CACHED || A < 3");
  const BoundDomain bound(text);
  EXPECT_TRUE(bound.domain.exact());
  EXPECT_EQ(bound.domain.combinations(), 30);
  EXPECT_EQ(numbered(bound.domain), enumerated(bound.bound));
  ASSERT_EQ(bound.domain.axes().size(), 4U);
  EXPECT_EQ(bound.domain.axes()[0].name, "MODE");
  EXPECT_EQ(std::get<std::string>(bound.domain.axes()[0].values[1]), "cg");
  EXPECT_EQ(bound.domain.space(), &bound.bound);
  EXPECT_EQ(bound.domain.neighbours({0, 0, 1, 2}, Reach::any).size(), 5U) << "without CACHED, A is too large";
}

TEST(SearchDomainTest, NumbersOverTheRangeAreRefused) {
  nlohmann::json text = bare_space();
  nlohmann::json values = nlohmann::json::array();
  for (int i = 0; i < 128; ++i) {
    values.push_back(i);
  }
  for (int i = 0; i < 10; ++i) {
    add_parameter(text, "P" + std::to_string(i), values);
  }
  const BoundDomain bound(text);
  EXPECT_EQ(bound.domain.combinations(), std::pow(128.0, 10));
  EXPECT_TRUE(bound.domain.exact());
  EXPECT_THROW(std::ignore = bound.domain.at(0), Error);
  SearchRandom random(1);
  const auto point = bound.domain.sample(random);
  ASSERT_TRUE(point);
  EXPECT_TRUE(bound.domain.contains(*point));
}

TEST(SearchDomainTest, RecordedPoints) {
  const std::vector<Axis> axes{{"A", {std::int64_t{1}, std::int64_t{2}}}, {"B", {std::string("x"), std::string("y")}}};
  const SearchDomain domain(axes, {{0, 1}, {1, 0}, {0, 1}});
  EXPECT_TRUE(domain.exact());
  EXPECT_EQ(domain.combinations(), 2) << "one stands there twice";
  EXPECT_EQ(domain.space(), nullptr);
  EXPECT_EQ(domain.at(0), (Point{0, 1}));
  EXPECT_FALSE(domain.contains({0, 0}));
  EXPECT_TRUE(domain.neighbours({0, 1}, Reach::any).empty());
  EXPECT_EQ(domain.neighbours({0, 1}, Reach::pair), (std::vector<Point>{{1, 0}}));
  EXPECT_EQ(SearchDomain(axes, {}).combinations(), 0);
}

TEST(SearchDomainTest, RecordedPointsThatDoNotFit) {
  const std::vector<Axis> axes{{"A", {std::int64_t{1}, std::int64_t{2}}}, {"B", {std::int64_t{1}}}};
  const auto message = [&](const Point& point) -> std::string {
    try {
      const SearchDomain domain(axes, {{0, 0}, point});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message({0}), "a point has 1 indices, the domain 2 parameters");
  EXPECT_EQ(message({0, 1}), "parameter B has 1 values, a point has the index 1");
  EXPECT_EQ(message({1, 0}), "accepted");
}

}  // namespace
}  // namespace pascaline::testing
