#include "db/taken_over.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

std::string options_with(const nlohmann::json& entries) {
  return nlohmann::json{{"trials", 100}, {"other_devices", entries}}.dump();
}

TEST(TakenOverTest, OptionsTellWhatTheyWereGiven) {
  const std::vector<TakenOver> all{{"toy N=1", "P40", "toy N=1", 143, true},
                                   {"toy N=1", "MX330", "toy N=2", 20, false},
                                   {"toy N=9", "P40", "toy N=9", 0, true},
                                   {"toy N=8", "P40", "toy N=8 TYPE=float16", 20, true, true}};
  const std::string options = options_with(taken_over_json(all));
  EXPECT_EQ(taken_over_of(options, "toy N=1"), (std::vector<TakenOver>{all[0], all[1]}));
  EXPECT_EQ(taken_over_of(options, "toy N=9"), (std::vector<TakenOver>{all[2]}));
  EXPECT_EQ(taken_over_of(options, "toy N=8"), (std::vector<TakenOver>{all[3]}));
  EXPECT_TRUE(taken_over_of(options, "toy N=3").empty());
}

TEST(TakenOverTest, WhatAnybodyMayHaveWrittenIsNoFault) {
  for (const char* const options : {"", "no json", "[]", "3", "{}", R"({"other_devices": 3})",
                                    R"({"other_devices": {}})", R"({"other_devices": [1, "a", null, [], {}]})"}) {
    EXPECT_TRUE(taken_over_of(options, "p").empty()) << options;
  }
  const auto one = [](const nlohmann::json& trials, const nlohmann::json& winner) {
    return taken_over_of(options_with({{{"problem", "p"}, {"device", "P40"}, {"trials", trials}, {"winner", winner}}}),
                         "p");
  };
  EXPECT_TRUE(one(-4, false).empty());
  EXPECT_TRUE(one("many", "yes").empty());
  EXPECT_TRUE(one(18'446'744'073'709'551'615U, false).empty());
  EXPECT_EQ(one(4, nullptr).size(), 1U);
  EXPECT_TRUE(taken_over_of(options_with({{{"problem", "p"}, {"trials", 4}}}), "p").empty()) << "of no device";
}

TEST(TakenOverTest, SaysItInWords) {
  EXPECT_EQ(taken_over_text({"toy N=1", "P40", "toy N=1", 143, true}),
            "what P40 measured of this shape (143 trials), its winner among the first");
  EXPECT_EQ(taken_over_text({"toy N=1", "P40", "toy N=2", 15, false}), "what P40 measured of toy N=2 (15 trials)");
  EXPECT_EQ(taken_over_text({"toy N=1", "P40", "toy N=1", 0, true}), "the winner of P40 among the first");
  EXPECT_EQ(taken_over_text({"toy N=1", "P40", "toy N=1 TYPE=float16", 0, true, true}),
            "the winner of toy N=1 TYPE=float16 among the first");
  EXPECT_EQ(taken_over_text({"toy N=1", "P40", "toy N=1 TYPE=float16", 20, true, true}),
            "what P40 measured of toy N=1 TYPE=float16 (20 trials), its winner among the first");
}

}  // namespace
}  // namespace pascaline::testing
