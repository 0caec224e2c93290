#include "core/config.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace pascaline {
namespace {

using Settings = std::vector<Config::Setting>;

TEST(ConfigTest, OrderDoesNotMatter) {
  const Config a(Settings{{"B", std::int64_t{2}}, {"A", std::int64_t{1}}});
  const Config b(Settings{{"A", std::int64_t{1}}, {"B", std::int64_t{2}}});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.text(), "A=1 B=2");
  EXPECT_EQ(Config().text(), "");
}

TEST(ConfigTest, RefusesTheSameNameTwice) {
  EXPECT_THROW(Config(Settings{{"A", std::int64_t{1}}, {"B", true}, {"A", std::int64_t{1}}}), Error);
}

TEST(ConfigTest, TextsOfValuesAreWhatACompilerReads) {
  EXPECT_EQ(to_text(Value(std::int64_t{-5})), "-5");
  EXPECT_EQ(to_text(Value(true)), "1");
  EXPECT_EQ(to_text(Value(false)), "0");
  EXPECT_EQ(to_text(Value(0.1)), "0.1");
  EXPECT_EQ(to_text(Value(1.0)), "1.0") << "an integer would divide as one";
  EXPECT_EQ(to_text(Value(1e30)), "1e+30");
  EXPECT_EQ(to_text(Value(std::string("ca"))), "ca");
}

TEST(ConfigTest, TextWithSpacesCannotPassForTwoSettings) {
  const Config a(Settings{{"A", std::string("x B=y")}, {"B", std::string("z")}});
  const Config b(Settings{{"A", std::string("x")}, {"B", std::string("y B=z")}});
  EXPECT_NE(a.text(), b.text());
  EXPECT_EQ(a.text(), "A=\"x B=y\" B=z");
  EXPECT_EQ(setting_text(std::string("Shape<2,1>")), "\"Shape<2,1>\"");
  EXPECT_EQ(setting_text(std::string("say \"a\\b\"")), "\"say \\\"a\\\\b\\\"\"");
  EXPECT_EQ(setting_text(std::string()), "\"\"");
  EXPECT_EQ(setting_text(std::string("a::b")), "a::b");
  const Config c(Settings{{"A", std::string("\"")}});
  const Config d(Settings{{"A", std::string("\\\"")}});
  EXPECT_NE(c.text(), d.text());
}

TEST(ConfigTest, FindsByName) {
  const Config config(Settings{{"N", std::int64_t{8}}, {"FLAG", true}, {"MODE", std::string("ca")}});
  ASSERT_NE(config.find("N"), nullptr);
  EXPECT_EQ(std::get<std::int64_t>(*config.find("N")), 8);
  EXPECT_EQ(config.find("M"), nullptr);
  EXPECT_EQ(config.find(""), nullptr);
  EXPECT_EQ(config.integer("N"), 8);
  EXPECT_EQ(config.integer("FLAG"), 1);
  EXPECT_THROW((void)config.integer("MODE"), Error);
  EXPECT_THROW((void)config.integer("Z"), Error);
}

TEST(ConfigTest, JsonRoundTripKeepsTypes) {
  const Config config(Settings{{"I", std::int64_t{INT64_MIN}},
                               {"B", false},
                               {"R", 1.0},
                               {"S", std::string("a \"b\" \xC3\xA9")},
                               {"Z", std::int64_t{0}}});
  const Config back = Config::from_json(nlohmann::json::parse(config.json().dump()));
  EXPECT_EQ(back, config);
  EXPECT_EQ(back.find("R")->index(), config.find("R")->index());
}

TEST(ConfigTest, JsonOfAnythingElseIsRefused) {
  for (const char* text : {"[]", "1", "null", R"({"A": null})", R"({"A": [1]})", R"({"A": {}})",
                           R"({"A": 9223372036854775808})", R"({"A": 18446744073709551615})"}) {
    EXPECT_THROW((void)Config::from_json(nlohmann::json::parse(text)), Error) << text;
  }
  EXPECT_EQ(Config::from_json(nlohmann::json::parse("{}")), Config());
}

}  // namespace
}  // namespace pascaline
