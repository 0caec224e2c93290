#include "app/sweep/phase_table.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pascaline::testing {
namespace {

std::vector<PhaseTime> example_phases() {
  return {{"NVIDIA H200", "prompt", 56, 12000, 8000, 12, 0, 0, 1.4, 1.6},
          {"NVIDIA H200", "token", 10, 900, 600, 8, 2, 90, 1.3, 1.7}};
}

std::vector<ModelResult> example_models() {
  return {{{"NVIDIA H200", "all", 66, 12900, 8600, 18, 2, 90, 1.42, 1.58}, {{0, 12900, 12900}, {60, 8600, 12900}}, {}}};
}

SweepSummary example_summary() {
  SweepSummary summary;
  summary.models = example_models();
  summary.problems.planned = 22;
  summary.problems.decided = 20;
  return summary;
}

TEST(PhaseTableTest, PhasesAndTheirSumAreRows) {
  EXPECT_EQ(phase_table(example_phases(), example_models()),
            "model time, before (defaults) and after (winners), summed over the calls:\n"
            "phase   calls   before   after  speedup  problems\n"
            "prompt     56    12 ms    8 ms    1.50x        12\n"
            "token      10   900 us  600 us    1.50x   8 of 10\n"
            "all        66  12.9 ms  8.6 ms    1.50x  18 of 20\n");
}

TEST(PhaseTableTest, NothingToShow) {
  EXPECT_EQ(phase_table({}, {}), "");
  EXPECT_TRUE(model_lines({}).empty());
  EXPECT_EQ(left_text({}), "");
}

TEST(PhaseTableTest, EachDeviceHasItsTable) {
  std::vector<PhaseTime> phases = example_phases();
  phases[1].device = "GTX 1080";
  const std::string text = phase_table(phases, example_models());
  EXPECT_NE(text.find("model time on NVIDIA H200, before"), std::string::npos) << text;
  EXPECT_NE(text.find("model time on GTX 1080, before"), std::string::npos) << text;
  EXPECT_EQ(text.find("all "), std::string::npos) << "of one phase there is no sum";
}

TEST(PhaseTableTest, APhaseWithoutResultsIsPartOfTheSum) {
  std::vector<PhaseTime> phases = example_phases();
  phases.push_back({"NVIDIA H200", "image", 3, 700, 700, 0, 2, 700});
  const std::string text = phase_table(phases, example_models());
  EXPECT_NE(text.find("image       3   700 us  700 us    1.00x    0 of 2\n"), std::string::npos) << text;
  const std::vector<PhaseTime> without{phases.back()};
  EXPECT_EQ(phase_table(without, {}), "") << "nothing has a result";
  const nlohmann::json json = phases_json(without);
  EXPECT_TRUE(json.at(0).at("speedup").is_null());
  EXPECT_EQ(json.at(0).at("at_default"), 2);
  EXPECT_EQ(phases_json(example_phases()).at(0).at("speedup"), 1.5);
}

TEST(PhaseTableTest, TheWholeModelHasAnInterval) {
  EXPECT_EQ(
      model_lines(example_models()),
      std::vector<std::string>{"whole model: 1.50x as fast as with the defaults, 1.42x to 1.58x (95 %); results for "
                               "99.3 % of its time"});
  std::vector<ModelResult> none = example_models();
  none[0].total.problems = 0;
  EXPECT_TRUE(model_lines(none).empty());
  const nlohmann::json json = models_json(example_models());
  EXPECT_EQ(json.at(0).at("speedup_low"), 1.42);
  EXPECT_EQ(json.at(0).at("curve").at(1),
            nlohmann::json({{"elapsed_s", 60}, {"model_us", 8600}, {"default_us", 12900}}));
}

TEST(PhaseTableTest, WhatWasLeftHasItsShare) {
  SweepSummary summary = example_summary();
  EXPECT_EQ(left_text(summary), "2 of 22 shapes, 0.7 % of the model's time, were left at their defaults");
  summary.models[0].total.at_default_us = 3870;
  summary.problems.decided = 21;
  EXPECT_EQ(left_text(summary), "1 of 22 shapes, 30 % of the model's time, was left at its default");
  summary.models[0].total.at_default_us = 0.1;
  EXPECT_EQ(left_text(summary), "1 of 22 shapes, less than 0.1 % of the model's time, was left at its default");
  summary.models.clear();
  EXPECT_EQ(left_text(summary), "1 of 22 shapes was left at its default");
  summary.problems.decided = 22;
  EXPECT_EQ(left_text(summary), "");
}

TEST(PhaseTableTest, ForecastsAreAList) {
  const nlohmann::json json = forecasts_json({{"NVIDIA H200", 60, 4, 106, std::nullopt, 1500}});
  EXPECT_EQ(json.at(0).at("reached"), 4);
  EXPECT_TRUE(json.at(0).at("model_share").is_null());
  EXPECT_EQ(forecasts_json({}), nlohmann::json::array());
}

}  // namespace
}  // namespace pascaline::testing
