#include "runtime/thermal/thermal_policy.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/core/util/message_of.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

std::string refusal_of(const std::string& text) {
  return message_of<SpaceError>([&] { std::ignore = parse_thermal_policy(text, "policy.json"); });
}

TEST(ThermalPolicy, WhatIsNotSaidIsAsByDefault) {
  const ThermalPolicy usual;
  const ThermalPolicy policy = parse_thermal_policy("{}", "policy.json");
  EXPECT_EQ(policy.objectives, usual.objectives);
  EXPECT_EQ(policy.thresholds.margin_c, usual.thresholds.margin_c);
  EXPECT_EQ(policy.period_s, usual.period_s);
  EXPECT_EQ(policy.file, "policy.json");
  EXPECT_EQ(usual.of(ThermalState::cool), ThermalPolicy::Objectives{Objective::time});
  EXPECT_TRUE(usual.names(Objective::sustained));
  EXPECT_FALSE(usual.names(Objective::edp));
}

TEST(ThermalPolicy, SaysWhichWinnersRunWhenAndWhenAStateBegins) {
  const ThermalPolicy policy = parse_thermal_policy(R"({
    "states": {"cool": "edp", "throttled": ["energy", "sustained"]}, "margin_c": 8, "resume_c": 20, "limit_c": 75,
    "processor_margin_c": 4, "processor_resume_c": 9, "power_throttle": false, "rise_s": 0, "fall_s": 30, "dwell_s": 2,
    "keep_s": 60, "period_s": 1})",
                                                    "policy.json");
  EXPECT_EQ(policy.of(ThermalState::cool), ThermalPolicy::Objectives{Objective::edp});
  EXPECT_EQ(policy.of(ThermalState::hot), ThermalPolicy{}.of(ThermalState::hot));
  EXPECT_EQ(policy.of(ThermalState::throttled), (ThermalPolicy::Objectives{Objective::energy, Objective::sustained}));
  EXPECT_EQ(policy.thresholds.margin_c, 8);
  EXPECT_EQ(policy.thresholds.resume_c, 20);
  EXPECT_EQ(policy.thresholds.limit_c, 75);
  EXPECT_EQ(policy.thresholds.processor_margin_c, 4);
  EXPECT_EQ(policy.thresholds.processor_resume_c, 9);
  EXPECT_FALSE(policy.thresholds.power_throttle);
  EXPECT_EQ(policy.thresholds.rise_s, 0);
  EXPECT_EQ(policy.thresholds.fall_s, 30);
  EXPECT_EQ(policy.thresholds.dwell_s, 2);
  EXPECT_EQ(policy.thresholds.keep_s, 60);
  EXPECT_EQ(policy.period_s, 1);
}

TEST(ThermalPolicy, TellsWhichObjectivesTheFileItselfNames) {
  const ThermalPolicy one = parse_thermal_policy(R"({"states": {"cool": "energy", "hot": ["edp", "time"]}})", "p.json");
  EXPECT_TRUE(one.file_names(Objective::energy));
  EXPECT_TRUE(one.file_names(Objective::edp));
  EXPECT_FALSE(one.file_names(Objective::sustained)) << "though the state that is not there asks for it";
  EXPECT_TRUE(one.names(Objective::sustained));
  EXPECT_FALSE(parse_thermal_policy(R"({"rise_s": 0})", "p.json").file_names(Objective::sustained));
}

TEST(ThermalPolicy, RefusalsNameThePlaceInALine) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"margin_c": 5)", "policy.json: not valid JSON at line 1"},
      {R"([])", "policy.json: expected an object"},
      {R"({"margin": 5})", "policy.json: unknown key 'margin'"},
      {R"({"states": {"warm": "time"}})",
       "policy.json:/states: there is no state 'warm'; there are: cool, hot, throttled"},
      {R"({"states": {"hot": "engery"}})",
       "policy.json:/states/hot: there is no objective 'engery' (did you mean 'energy'?); there are: time"},
      {R"({"states": {"hot": []}})", "policy.json:/states/hot: expected at least one"},
      {R"({"states": {"hot": ["time", "time"]}})", "policy.json:/states/hot/1: 'time' is a duplicate"},
      {R"({"states": {"hot": 7}})", "policy.json:/states/hot: "},
      {R"({"states": "hot"})", "policy.json:/states: "},
      {R"({"margin_c": -1})", "policy.json:/margin_c: expected a number from 0 to 60, not -1"},
      {R"({"margin_c": "5"})", "policy.json:/margin_c: "},
      {R"({"margin_c": 12})", "policy.json: 'resume_c' (10) must be at least 'margin_c' (12)"},
      {R"({"processor_resume_c": 2})", "policy.json: 'processor_resume_c' (2) must be at least"},
      {R"({"limit_c": 300})", "policy.json:/limit_c: "},
      {R"({"period_s": 0})", "policy.json:/period_s: "},
      {R"({"period_s": 3})", "policy.json:/period_s: "},
      {R"({"fall_s": 1e9})", "policy.json:/fall_s: "},
      {R"({"power_throttle": 1})", "policy.json:/power_throttle: "},
      {R"({"rise_s": 1, "rise_s": 2})", "policy.json:/rise_s: "},
  };
  for (const auto& [text, start] : cases) {
    EXPECT_EQ(refusal_of(text).rfind(start, 0), 0U) << text << " gives " << refusal_of(text);
    EXPECT_EQ(refusal_of(text).find('\n'), std::string::npos) << text;
  }
}

TEST(ThermalPolicy, FilesAreReadAndThoseThatCannotBeAreNamed) {
  const TemporaryFolder folder;
  write_bytes(folder / "own.json", R"({"margin_c": 7})");
  EXPECT_EQ(load_thermal_policy(folder / "own.json").thresholds.margin_c, 7);
  EXPECT_THROW(std::ignore = load_thermal_policy(folder / "none.json"), SpaceError);
}

}  // namespace
}  // namespace pascaline::testing
