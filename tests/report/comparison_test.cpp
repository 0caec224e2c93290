#include "report/comparison.hpp"

#include <cmath>

#include "core/error.hpp"
#include "tests/report/comparison_fixture.hpp"

namespace pascaline::testing {
namespace {

using ComparisonTest = ComparisonFixture;

TEST_F(ComparisonTest, EmptyDatabasesHaveNothingToCompare) {
  const ReportComparison comparison = compared();
  EXPECT_TRUE(comparison.rows.empty());
  EXPECT_FALSE(comparison.geometric_mean_ratio);
}

TEST_F(ComparisonTest, FasterSlowerAndSame) {
  a_.win({.median_us = 90}, {.m = 1});
  b_.win({.median_us = 100, .seed = 2}, {.m = 1});
  a_.win({.median_us = 110}, {.m = 2});
  b_.win({.median_us = 100, .seed = 2}, {.m = 2});
  a_.win({.median_us = 100}, {.m = 3});
  b_.win({.median_us = 100, .seed = 2}, {.m = 3});
  const ReportComparison comparison = compared();
  ASSERT_EQ(comparison.rows.size(), 3U);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::faster);
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::slower);
  EXPECT_EQ(comparison.rows[2].verdict, Verdict::same);
  EXPECT_EQ(comparison.rows[0].problem, example_problem(1).text());
  EXPECT_EQ(comparison.rows[0].kernel, "matmul");
  EXPECT_EQ(comparison.rows[0].target, "sm_61");
  EXPECT_EQ(comparison.rows[0].device_label, "NVIDIA GeForce GTX 1080 Ti");
  const ComparisonRow& row = comparison.rows[0];
  EXPECT_DOUBLE_EQ(row.ratio->value, row.b->best.median_us / row.a->best.median_us);
  EXPECT_DOUBLE_EQ(row.ratio->low, row.b->best.low_us / row.a->best.high_us);
  EXPECT_DOUBLE_EQ(row.ratio->high, row.b->best.high_us / row.a->best.low_us);
  EXPECT_LE(*row.p_value, 0.05);
  EXPECT_TRUE(row.a->decided);
  EXPECT_EQ(row.a->baseline->median_us, 200);
  EXPECT_EQ(row.same_config, true);
  EXPECT_EQ(row.same_source, true);
  EXPECT_EQ(row.same_toolkit, true);
  EXPECT_EQ(row.same_clock, std::nullopt) << "no sample tells its clock";
  double product = 1;
  for (const ComparisonRow& each : comparison.rows) {
    product *= each.ratio->value;
  }
  EXPECT_NEAR(*comparison.geometric_mean_ratio, std::cbrt(product), 1e-12);
}

TEST_F(ComparisonTest, FewOrNoSamplesAreUnclear) {
  a_.win({.median_us = 50, .count = 40}, {.m = 1});
  b_.win({.median_us = 100, .count = 5}, {.m = 1});
  a_.win({.median_us = 50, .count = 6}, {.m = 2});
  b_.win({.median_us = 100, .count = 6, .seed = 2}, {.m = 2});
  Trial summary_only = example_trial(8);
  summary_only.samples.clear();
  summary_only.problem = example_problem(3);
  a_.win({.median_us = 50}, {.m = 3});
  const ContextIds context = b_.context_of(3);
  b_.store.set_winner(context, b_.store.add_trial(b_.session, context, summary_only), std::nullopt, 0.9);
  const ReportComparison comparison = compared();
  ASSERT_EQ(comparison.rows.size(), 3U);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::unclear);
  EXPECT_EQ(comparison.rows[0].p_value, std::nullopt);
  EXPECT_TRUE(comparison.rows[0].ratio) << "the medians are known";
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::faster);
  EXPECT_EQ(comparison.rows[2].verdict, Verdict::unclear);
  EXPECT_FALSE(comparison.rows[2].b->baseline);
}

TEST_F(ComparisonTest, MarkedSamplesDoNotCountAndScalesDo) {
  Trial scaled = example_trial(8);
  scaled.clock_scale = 0.5;
  for (Sample& sample : scaled.samples) {
    sample.time_us *= 2;
  }
  scaled.time = TimeSummary{101.9, 101.0, 102.8, 28};
  Trial plain = example_trial(8);
  plain.clock_scale = 1;
  plain.time = scaled.time;
  for (Sample& sample : plain.samples) {
    sample.time_us = sample.counted() ? sample.time_us : 1e6;
  }
  for (const auto& [made, trial] : {std::pair(&a_, &scaled), std::pair(&b_, &plain)}) {
    made->store.set_winner(made->context, made->store.add_trial(made->session, made->context, *trial), std::nullopt,
                           0.9);
  }
  const ComparisonRow row = only_row();
  EXPECT_EQ(row.p_value, 1.0) << "counted and scaled, both are the same";
  EXPECT_EQ(row.verdict, Verdict::same);
  EXPECT_EQ(row.same_clock, true);
  EXPECT_EQ(row.a->sm_clock_mhz, 1911);
}

TEST_F(ComparisonTest, OtherClockIsNamed) {
  Trial slow = example_trial(8);
  slow.samples[7].sm_clock_mhz = 1607;
  b_.store.set_winner(b_.context, b_.store.add_trial(b_.session, b_.context, slow), std::nullopt, 0.9);
  a_.store.set_winner(a_.context, a_.store.add_trial(a_.session, a_.context, example_trial(8)), std::nullopt, 0.9);
  const ComparisonRow row = only_row();
  EXPECT_EQ(row.same_clock, false);
  EXPECT_EQ(row.b->sm_clock_mhz, 1607);
}

TEST_F(ComparisonTest, ResultOfAnIdenticalBinaryIsTestedByItsSamples) {
  const std::int64_t original = a_.add({.median_us = 90}, {.tile = 4, .stage = TrialStage::search});
  Trial twin = example_trial(5);
  twin.samples.clear();
  twin.time = TimeSummary{80, 79, 81, 40};
  twin.shared_trial = original;
  a_.store.add_trial(a_.session, a_.context, twin);
  b_.win({.median_us = 100});
  const ComparisonRow row = only_row();
  EXPECT_FALSE(row.a->decided);
  EXPECT_EQ(row.a->best.median_us, 80);
  ASSERT_TRUE(row.p_value);
  EXPECT_LT(*row.p_value, 1e-6);
}

TEST_F(ComparisonTest, WinnerFromTheSearchIsComparedAsOneThatNoFinalsDecided) {
  a_.win({.median_us = 90}, {.stage = TrialStage::search});
  b_.win({.median_us = 100, .seed = 2});
  const ComparisonRow row = only_row();
  EXPECT_FALSE(row.a->decided);
  EXPECT_TRUE(row.b->decided);
  EXPECT_EQ(row.a->baseline->median_us, 200) << "it is a winner all the same";
  EXPECT_EQ(row.verdict, Verdict::faster);
}

TEST_F(ComparisonTest, NewAndVanished) {
  a_.win({}, {.m = 1});
  b_.win({}, {.m = 2});
  b_.store.add_trial(b_.session, b_.context_of(3), [] {
    Trial failed = failed_trial(1, TrialStatus::crashed, "fell over");
    failed.problem = example_problem(3);
    return failed;
  }());
  const ReportComparison comparison = compared();
  ASSERT_EQ(comparison.rows.size(), 2U) << "a problem that never ran is on neither side";
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::appeared);
  EXPECT_FALSE(comparison.rows[0].b);
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::vanished);
  EXPECT_FALSE(comparison.rows[1].a);
  EXPECT_FALSE(comparison.rows[1].same_config);
  EXPECT_FALSE(comparison.geometric_mean_ratio);
  EXPECT_EQ(count_of_verdict(comparison, Verdict::appeared), 1U);
  EXPECT_EQ(count_of_verdict(comparison, Verdict::vanished), 1U);
}

TEST_F(ComparisonTest, AnotherWinnerWithTheSameTime) {
  a_.win({}, {.tile = 8});
  b_.win({.seed = 2}, {.tile = 16});
  const ReportComparison comparison = compared();
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::same);
  EXPECT_EQ(comparison.rows[0].same_config, false);
  EXPECT_EQ(comparison.changed_winners, 1U);
}

TEST_F(ComparisonTest, OtherSourceAndToolkitAreNamedAndOtherTargetIsNotMatched) {
  a_.context.kernel = a_.store.kernel_id({"matmul", "source-b"});
  a_.context.toolkit = a_.store.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  a_.win({}, {.m = 1});
  a_.context.toolkit = a_.store.toolkit_id({"nvrtc", "12.9", "compute_61", "12.9"});
  a_.win({}, {.m = 2});
  b_.win({}, {.m = 1});
  b_.win({}, {.m = 2});
  const ReportComparison comparison = compared();
  ASSERT_EQ(comparison.rows.size(), 3U);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::appeared);
  EXPECT_EQ(comparison.rows[0].target, "compute_61");
  EXPECT_EQ(comparison.rows[1].same_source, false);
  EXPECT_EQ(comparison.rows[1].same_toolkit, false);
  EXPECT_EQ(comparison.rows[1].a->source_hash, "source-b");
  EXPECT_EQ(comparison.rows[1].a->toolkit.version, "11.8");
  EXPECT_EQ(comparison.rows[2].verdict, Verdict::vanished);
  EXPECT_EQ(comparison.rows[2].problem, example_problem(2).text());
}

TEST_F(ComparisonTest, OtherDeviceIsNeverMatched) {
  const auto on = [](MadeDatabase& made, DeviceRow device) {
    made.context.device = made.store.device_id(device);
    made.win({});
  };
  DeviceRow smaller = example_device();
  smaller.sm_count = 20;
  on(a_, smaller);
  on(b_, example_device());
  const ReportComparison comparison = compared();
  ASSERT_EQ(comparison.rows.size(), 2U);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::appeared);
  EXPECT_EQ(comparison.rows[0].device_label, "NVIDIA GeForce GTX 1080 Ti (cuda 6.1, 20 SMs)");
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::vanished);
  EXPECT_EQ(comparison.rows[1].device_label, "NVIDIA GeForce GTX 1080 Ti (cuda 6.1, 28 SMs)");
  on(b_, {"host", "Some CPU", "", 8, 0, "{}"});
  EXPECT_EQ(compared({.device = "Some CPU"}).rows.size(), 1U);
  EXPECT_EQ(compared({.kernel = "softmax"}).rows.size(), 0U);
}

TEST_F(ComparisonTest, MemoryAndLimitsAreNotTheIdentityOfADevice) {
  DeviceRow other_driver = example_device();
  other_driver.memory_bytes -= 4096;
  other_driver.limits_json = "{}";
  Store(folder_ / "c.db", OpenMode::create).device_id(other_driver);
  MadeDatabase c(folder_ / "c.db");
  a_.win({});
  c.win({});
  EXPECT_EQ(compare({&a_.store}, {&c.store}).rows.size(), 1U);
}

TEST_F(ComparisonTest, SessionsOfOneDatabase) {
  const std::int64_t before = a_.session;
  a_.add({.median_us = 100}, {.tile = 4, .stage = TrialStage::search});
  a_.win({.median_us = 110, .seed = 2}, {.tile = 4});
  a_.add({.median_us = 220, .seed = 3}, {.tile = 1, .is_default = true});
  a_.session = begin_example_session(a_.store, a_.context);
  a_.win({.median_us = 90, .seed = 4}, {.tile = 8});
  const ReportComparison comparison = compare({&a_.store, {a_.session}}, {&a_.store, {before}});
  ASSERT_EQ(comparison.rows.size(), 1U);
  const ComparisonRow& row = comparison.rows[0];
  EXPECT_EQ(row.verdict, Verdict::faster);
  EXPECT_TRUE(row.a->decided);
  EXPECT_TRUE(row.b->decided) << "its finals are kept, though the decision was replaced";
  EXPECT_NEAR(row.b->best.median_us, 110, 1) << "not the time of the search";
  EXPECT_NEAR(row.b->baseline->median_us, 220, 2);
  EXPECT_EQ(side_label(comparison.a), "session 2 of a.db");
  EXPECT_EQ(side_label({&a_.store, {1, 2, 5}}), "sessions 1, 2 and 5 of a.db");
  EXPECT_EQ(side_label({&b_.store, {}}), "b.db");
}

TEST_F(ComparisonTest, RegressionsAreCountedByTheirPercentage) {
  a_.win({.median_us = 104}, {.m = 1});
  b_.win({.median_us = 100, .seed = 2}, {.m = 1});
  a_.win({.median_us = 120}, {.m = 2});
  b_.win({.median_us = 100, .seed = 2}, {.m = 2});
  a_.win({.median_us = 50}, {.m = 3});
  b_.win({.median_us = 100, .seed = 2}, {.m = 3});
  a_.win({.median_us = 300, .count = 3}, {.m = 4});
  b_.win({.median_us = 100, .seed = 2}, {.m = 4});
  const ReportComparison comparison = compared();
  EXPECT_EQ(count_regressions(comparison, 0), 2U);
  EXPECT_EQ(count_regressions(comparison, 10), 1U);
  EXPECT_EQ(count_regressions(comparison, 25), 0U);
}

TEST_F(ComparisonTest, SessionsAreFoundByIdAndBeginningOfAUuid) {
  const auto begin = [&](const std::string& uuid, const std::string& run) {
    SessionRow session;
    session.uuid = uuid;
    session.run_uuid = run;
    session.searcher = "auto";
    return b_.store.begin_session(session, b_.context.device, b_.context.toolkit);
  };
  const std::int64_t one = begin("aaaa1111-0000", "cccc1111-0000");
  const std::int64_t two = begin("aaaa2222-0000", "cccc1111-0000");
  const std::int64_t three = begin("dddd3333-0000", "eeee3333-0000");
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(find_sessions(b_.store, std::to_string(two)), Ids{two});
  EXPECT_EQ(find_sessions(b_.store, "aaaa1"), Ids{one});
  EXPECT_EQ(find_sessions(b_.store, "DDDD"), Ids{three});
  EXPECT_EQ(find_sessions(b_.store, "cccc"), (Ids{one, two})) << "all of a run";
  const auto fault = [&](const std::string& word) {
    try {
      std::ignore = find_sessions(b_.store, word);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(fault("aaaa").find("several"), std::string::npos) << fault("aaaa");
  for (const char* word : {"9", "aaa", "ffff", "-1", "aaaa1111-0000-longer", "%"}) {
    EXPECT_NE(fault(word).find(std::string("no session '") + word), std::string::npos) << fault(word);
    EXPECT_NE(fault(word).find("it has 4 (begun "), std::string::npos) << fault(word);
  }
  const Store empty(folder_ / "empty.db", OpenMode::create);
  EXPECT_THROW(std::ignore = find_sessions(empty, "1"), Error);
}

}  // namespace
}  // namespace pascaline::testing
