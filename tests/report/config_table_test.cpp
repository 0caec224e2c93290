#include "report/config_table.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace pascaline {
namespace {

TEST(ConfigTableTest, HoldsWhatConfigurationsSay) {
  const Config config({{"A", std::int64_t{-3}}, {"B", true}, {"C", 0.5}, {"D", std::string("a \"b\" é")}});
  ConfigTable table;
  table.add(config.json().dump());
  table.add(Config({{"A", std::int64_t{4}}, {"B", true}}).json().dump());
  ASSERT_EQ(table.size(), 2U);
  ASSERT_EQ(table.parameters(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.name(i), config.settings()[i].first);
    EXPECT_EQ(table.values(i)[table.index(i, 0).value()], config.settings()[i].second);
  }
  EXPECT_EQ(table.values(0).size(), 2U);
  EXPECT_EQ(table.values(1).size(), 1U);
  EXPECT_EQ(table.index(1, 1), std::optional<std::size_t>(0));
  EXPECT_FALSE(table.index(2, 1));
}

TEST(ConfigTableTest, AParameterThatComesLaterIsAbsentBefore) {
  ConfigTable table;
  table.add(R"({"B":1})");
  table.add(R"({"A":1,"B":2})");
  table.add(R"({"B":1})");
  table.add(R"({"A":2,"B":2})");
  ASSERT_EQ(table.parameters(), 2U);
  EXPECT_EQ(table.name(1), "A");
  EXPECT_FALSE(table.index(1, 0));
  EXPECT_EQ(table.index(1, 1), std::optional<std::size_t>(0));
  EXPECT_FALSE(table.index(1, 2));
  EXPECT_EQ(table.index(1, 3), std::optional<std::size_t>(1));
  EXPECT_EQ(table.index(0, 2), std::optional<std::size_t>(0));
}

TEST(ConfigTableTest, NumberTrueAndRealAreDifferentValues) {
  ConfigTable table;
  table.add(R"({"A":1})");
  table.add(R"({"A":true})");
  table.add(R"({"A":1.0})");
  EXPECT_EQ(table.values(0).size(), 3U);
}

TEST(ConfigTableTest, OtherTextsAreRefused) {
  for (const char* text : {"", "{", "3", "[1]", R"({"A":null})", R"({"A":[1]})", R"({"A":{"B":1}})",
                           R"({"A":18446744073709551615})", R"({"A":1} 2)"}) {
    ConfigTable table;
    EXPECT_THROW(table.add(text), Error) << text;
  }
  ConfigTable table;
  table.add("{}");
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.parameters(), 0U);
}

TEST(ConfigTableTest, NumbersComeBeforeTexts) {
  EXPECT_TRUE(value_less(std::int64_t{2}, 2.5));
  EXPECT_TRUE(value_less(true, std::int64_t{2}));
  EXPECT_TRUE(value_less(std::int64_t{10}, std::string("1")));
  EXPECT_FALSE(value_less(std::string("1"), std::int64_t{10}));
  EXPECT_TRUE(value_less(std::string("a"), std::string("b")));
  EXPECT_FALSE(value_less(true, std::int64_t{1}));
  EXPECT_FALSE(value_less(std::int64_t{1}, true));
}

}  // namespace
}  // namespace pascaline
