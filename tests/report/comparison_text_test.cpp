#include <nlohmann/json.hpp>

#include "tests/report/comparison_fixture.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

using ComparisonTextTest = ComparisonFixture;

TEST_F(ComparisonTextTest, EmptySides) {
  const std::string text = markdown_comparison(compared());
  EXPECT_HOLDS(text, "## Comparison\n\nNow is a.db, before is b.db. **0 slower, 0 faster**");
  EXPECT_HOLDS(text, "Neither side has a configuration that ran correctly.");
  const auto json = comparison_json(compared());
  EXPECT_TRUE(json["rows"].is_array() && json["rows"].empty());
  EXPECT_TRUE(json["summary"]["geometric_mean_ratio"].is_null());
}

TEST_F(ComparisonTextTest, SectionsHaveTheirRowsAndOnlyThose) {
  a_.win({.median_us = 120}, {.m = 1, .tile = 16});
  b_.win({.median_us = 100, .seed = 2}, {.m = 1});
  a_.win({.median_us = 80}, {.m = 2});
  b_.win({.median_us = 100, .seed = 2}, {.m = 2});
  a_.win({}, {.m = 3, .tile = 32});
  b_.win({.seed = 2}, {.m = 3, .tile = 16});
  a_.win({}, {.m = 4});
  b_.win({.seed = 2}, {.m = 4});
  a_.win({.count = 3}, {.m = 5});
  b_.add({.seed = 2}, {.m = 5, .stage = TrialStage::search});
  a_.win({}, {.m = 6});
  b_.win({}, {.m = 7});
  const std::string text = markdown_comparison(compared());
  EXPECT_HOLDS(text, "**1 slower, 1 faster**, 2 the same, 1 unclear, 1 new, 1 vanished; 2 with a different winner.");
  EXPECT_HOLDS(text, "The geometric mean over 5 problems in both is a change of -");
  const std::size_t slower =
      text.find("### Slower: 1\n\n| Problem | Before, µs | Now, µs | Time (interval) | p | Notes |");
  const std::size_t faster = text.find("### Faster: 1\n");
  const std::size_t unclear = text.find("### Unclear: 1\n");
  const std::size_t appeared = text.find("### New: 1\n\n| Problem | Default, µs |");
  const std::size_t vanished = text.find("### Vanished: 1\n");
  const std::size_t winners = text.find("### As fast, with a different winner: 1\n");
  ASSERT_NE(winners, std::string::npos) << text;
  EXPECT_TRUE(slower < faster && faster < unclear && unclear < appeared && appeared < vanished && vanished < winners)
      << text;
  EXPECT_HOLDS(text.substr(slower, faster - slower), "| matmul M=1 ");
  EXPECT_HOLDS(text.substr(slower, faster - slower), "| < 0.001 | winner: TILE 8 → 16 |");
  EXPECT_HOLDS(text.substr(slower, faster - slower), " % (+");
  EXPECT_HOLDS(text.substr(faster, unclear - faster), "| matmul M=2 ");
  EXPECT_HOLDS(text.substr(faster, unclear - faster), "| < 0.001 |  |");
  EXPECT_HOLDS(text.substr(unclear, appeared - unclear), "| – | too few samples; undecided before |");
  EXPECT_HOLDS(text.substr(appeared, vanished - appeared), "| matmul M=6 ");
  EXPECT_HOLDS(text.substr(appeared, vanished - appeared), "LAYOUT=row SCALE=0.5 TILE=8 UNROLL=1 |");
  EXPECT_HOLDS(text.substr(vanished, winners - vanished), "| matmul M=7 ");
  EXPECT_HOLDS(text.substr(winners), "| matmul M=3 ");
  EXPECT_HOLDS(text.substr(winners), "winner: TILE 16 → 32 |");
  EXPECT_LACKS(text, "M=4 ");
  EXPECT_LACKS(text, "| Device |");
  EXPECT_LACKS(text, "<details>");
}

TEST_F(ComparisonTextTest, WhatDiffersIsNamedAndNothingBreaksTheTable) {
  const std::string nasty = "a|b</details>\n# *x* @you";
  a_.context.kernel = a_.store.kernel_id({"matmul", "<s>|new0"});
  a_.context.toolkit = a_.store.toolkit_id({"nvrtc", "11|8", "sm_61", "12.9"});
  a_.context.device = a_.store.device_id({"cuda", nasty, "6.1", 28, 0, "{}"});
  b_.context.device = b_.store.device_id({"cuda", nasty, "6.1", 28, 0, "{}"});
  a_.win({.median_us = 120});
  b_.win({.seed = 2});
  const std::string text = markdown_comparison(compared());
  EXPECT_HOLDS(
      text, "| source: source-a → &lt;s&gt;\\|new0; toolkit: nvrtc 12.9, driver 12.9 → nvrtc 11\\|8, driver 12.9 |\n");
  a_.context.device = a_.store.device_id(example_device());
  a_.win({}, {.m = 1});
  const std::string two_devices = markdown_comparison(compared());
  EXPECT_HOLDS(two_devices, "| Device | Problem | Before");
  EXPECT_HOLDS(two_devices, "| a\\|b&lt;/details&gt; &#35; \\*x\\* &#64;you, sm_61 | matmul M=512 ");
  EXPECT_HOLDS(two_devices, "|---|---|--:|--:|--:|--:|---|\n");
}

TEST_F(ComparisonTextTest, OfManyChangedParametersTheFirstAreNamed) {
  const auto win_with = [](MadeDatabase& made, std::vector<Config::Setting> settings) {
    Trial trial = example_trial(8);
    trial.config = Config(std::move(settings));
    trial.stage = TrialStage::finals;
    made.store.set_winner(made.context, made.store.add_trial(made.session, made.context, trial), std::nullopt, 0.9);
  };
  using Number = std::int64_t;
  win_with(a_, {{"A", Number{2}}, {"B", Number{2}}, {"C", Number{2}}, {"D", Number{2}}, {"Z", Number{9}}});
  win_with(b_, {{"A", Number{1}},
                {"B", Number{1}},
                {"C", Number{1}},
                {"E", Number{1}},
                {"F", std::string("x|")},
                {"Z", Number{9}}});
  const std::string text = markdown_comparison(compared());
  EXPECT_HOLDS(text, "| winner: A 1 → 2, B 1 → 2, C 1 → 2, D – → 2, E 1 → – and 1 more |\n");
}

TEST_F(ComparisonTextTest, WinnerFromTheSearchIsUndecided) {
  a_.win({.median_us = 50}, {.stage = TrialStage::search});
  b_.win({.seed = 2});
  EXPECT_HOLDS(markdown_comparison(compared()), "| < 0.001 | undecided now |\n");
  EXPECT_EQ(comparison_json(compared())["rows"][0]["a"]["decided"], false);
}

TEST_F(ComparisonTextTest, WorstTwentyStandOpenAndTheRestIsFolded) {
  for (std::int64_t m = 1; m <= 25; ++m) {
    a_.win({.median_us = 110.0 + static_cast<double>(m)}, {.m = m});
    b_.win({.seed = 2}, {.m = m});
  }
  const std::string text = markdown_comparison(compared());
  const std::size_t fold = text.find("\n\n<details><summary>5 more</summary>\n\n| Problem |");
  ASSERT_NE(fold, std::string::npos) << text;
  EXPECT_LT(text.find("M=25 "), text.find("M=24 "));
  EXPECT_LT(text.find("M=6 "), fold);
  EXPECT_GT(text.find("M=5 "), fold);
  EXPECT_EQ(count_of(text, "| matmul M="), 25U);
  EXPECT_EQ(count_of(text, "</details>"), 1U);
}

TEST_F(ComparisonTextTest, JsonHasTheNamesOfTheDocument) {
  a_.win({.median_us = 120}, {.tile = 16});
  b_.win({.seed = 2});
  a_.win({.median_us = 120}, {.m = 1});
  const ReportComparison comparison = compared();
  const auto json = comparison_json(comparison);
  EXPECT_EQ(json["a"], (nlohmann::ordered_json{{"label", "a.db"}, {"sessions", nlohmann::ordered_json::array()}}));
  ASSERT_EQ(json["rows"].size(), 2U);
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["device"], "NVIDIA GeForce GTX 1080 Ti");
  EXPECT_EQ(row["target"], "sm_61");
  EXPECT_EQ(row["kernel"], "matmul");
  EXPECT_EQ(row["problem"], example_problem().text());
  EXPECT_EQ(row["verdict"], "slower");
  EXPECT_NEAR(row["a"]["best"]["median_us"].get<double>(), comparison.rows[0].a->best.median_us, 1e-6);
  EXPECT_EQ(row["a"]["best"]["count"], 40);
  EXPECT_EQ(row["a"]["default"]["high_us"], 210);
  EXPECT_EQ(row["a"]["config"],
            (nlohmann::ordered_json{{"LAYOUT", "row"}, {"SCALE", 0.5}, {"TILE", 16}, {"UNROLL", true}}));
  EXPECT_EQ(row["a"]["toolkit"], "nvrtc 12.9, driver 12.9");
  EXPECT_EQ(row["a"]["decided"], true);
  EXPECT_TRUE(row["a"]["sm_clock_mhz"].is_null());
  EXPECT_FLOAT_EQ(row["ratio"]["low"].get<float>(), static_cast<float>(comparison.rows[0].ratio->low));
  EXPECT_FLOAT_EQ(row["p_value"].get<float>(), static_cast<float>(*comparison.rows[0].p_value));
  EXPECT_EQ(row["same_config"], false);
  EXPECT_EQ(row["same_source"], true);
  EXPECT_TRUE(row["same_clock"].is_null());
  const auto& appeared = json["rows"][1];
  EXPECT_EQ(appeared["verdict"], "new");
  EXPECT_TRUE(appeared["b"].is_null() && appeared["ratio"].is_null() && appeared["same_config"].is_null());
  EXPECT_EQ(json["summary"]["slower"], 1);
  EXPECT_EQ(json["summary"]["new"], 1);
  EXPECT_EQ(json["summary"]["changed_winner"], 1);
  EXPECT_NEAR(json["summary"]["geometric_mean_ratio"].get<double>(), 1 / 1.2, 0.01);
}

TEST_F(ComparisonTextTest, TextThatIsNoUtf8StillBecomesJson) {
  a_.context.device = a_.store.device_id({"cuda", "bad \xff\x1b name", "6.1", 28, 0, "{}"});
  a_.win({});
  EXPECT_NO_THROW(std::ignore = comparison_json(compared()).dump());
}

}  // namespace
}  // namespace pascaline::testing
