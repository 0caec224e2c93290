#include "report/gather.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "report/document_json.hpp"
#include "report/gather_parts.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

using GatherJson = nlohmann::ordered_json;

class GatherTest : public ReportFixture {
 protected:
  [[nodiscard]] ReportDocument gathered(ReportOptions options = {}) const { return gather_report(store_, options); }
  [[nodiscard]] GatherJson json(const ReportOptions& options = {}) const {
    // Text that cannot be dumped would throw here.
    return GatherJson::parse(document_json(gathered(options)).dump());
  }
  [[nodiscard]] ReportProblem only_problem(const ReportOptions& options = {}) const {
    const ReportDocument document = gathered(options);
    EXPECT_EQ(document.contexts.size(), 1U);
    EXPECT_EQ(document.contexts.at(0).kernels.size(), 1U);
    EXPECT_EQ(document.contexts.at(0).kernels.at(0).problems.size(), 1U);
    return document.contexts.at(0).kernels.at(0).problems.at(0);
  }
};

const ReportParameter& parameter(const ReportProblem& problem, std::string_view name) {
  return *std::find_if(problem.parameters.begin(), problem.parameters.end(),
                       [&](const ReportParameter& one) { return one.name == name; });
}

TEST_F(GatherTest, EmptyDatabase) {
  const Store empty(folder_ / "empty.db", OpenMode::create);
  const ReportDocument document = gather_report(empty);
  EXPECT_TRUE(document.contexts.empty());
  EXPECT_TRUE(document.sessions.empty());
  EXPECT_EQ(document.database, "empty.db");
  EXPECT_EQ(document_json(document)["contexts"].dump(), "[]");
}

TEST_F(GatherTest, DecidedProblemHasTheFiguresOfItsFinals) {
  store_.problem_id(example_problem(), 2e9, 4e8);
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 80));
  const std::int64_t winner = store_.add_trial(session_, context_, finalist(8, 100));
  store_.set_winner(context_, winner, TimeSummary{200, 180, 220, 30}, 0.987);
  const ReportProblem problem = only_problem();
  EXPECT_TRUE(problem.decided);
  EXPECT_EQ(problem.confidence, 0.987);
  EXPECT_EQ(problem.best_trial, winner);
  EXPECT_EQ(problem.best_config, example_config(8));
  EXPECT_EQ(problem.baseline->median_us, 200);
  EXPECT_EQ(problem.best->median_us, 100);
  EXPECT_EQ(problem.speedup->value, 2);
  EXPECT_NEAR(problem.speedup->low, 180 / 110.0, 1e-12);
  EXPECT_NEAR(problem.speedup->high, 220 / 90.0, 1e-12);
  EXPECT_NEAR(*problem.gflops, 20000, 1e-9);
  EXPECT_NEAR(*problem.gbs, 4000, 1e-9);
  // 28 SMs of 128 lanes at 1582 MHz, 484 GB/s: the bytes take longer.
  EXPECT_NEAR(*problem.roofline_us, 4e8 / 484e3, 1e-9);
  EXPECT_NEAR(*problem.roofline_share, 4e8 / 484e3 / 100, 1e-9);
  EXPECT_EQ(problem.energy_mj, 18.25);
  EXPECT_TRUE(problem.configurations.at(0).best);
  EXPECT_EQ(problem.configurations.at(0).trial_id, winner);
}

TEST_F(GatherTest, LimitsAreAskedOfWinnerAndDefault) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 80));
  EXPECT_TRUE(only_problem().limits.empty()) << "nothing was asked";
  ReportOptions options;
  std::vector<LimitRequest> asked;
  options.limit_of = [&](const LimitRequest& request) {
    asked.push_back(request);
    ReportLimit limit;
    limit.config = request.config.value_or(example_config(1));
    limit.least_limit = limit.most_limit = "launch";
    return limit;
  };
  const ReportDocument document = gather_report(store_, options);
  const ReportProblem& problem = document.contexts.at(0).kernels.at(0).problems.at(0);
  ASSERT_EQ(problem.limits.size(), 2U);
  EXPECT_EQ(problem.limits[0].role, "winner");
  EXPECT_EQ(problem.limits[0].config, example_config(4));
  EXPECT_EQ(problem.limits[1].role, "default");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_FALSE(asked[0].config) << "the default is the space's";
  EXPECT_EQ(asked[1].problem, example_problem());
  EXPECT_EQ(asked[1].toolkit.target, "sm_61");
  const auto json = document_json(document)["contexts"][0]["kernels"][0]["problems"][0]["limits"];
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["most"]["limit"], "launch");
  EXPECT_EQ(json[0]["missing"], false);
  EXPECT_NE(json[0]["text"].get<std::string>().find("Limited by launch."), std::string::npos);
}

TEST_F(GatherTest, CompilersAreComparedAsInMarkdown) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 80));
  EXPECT_TRUE(document_json(gather_report(store_, {}))["compilers"].empty()) << "there is one";
  ContextIds other = context_;
  ToolkitRow older = example_toolkit();
  older.version = "11.8";
  other.toolkit = store_.toolkit_id(older);
  const std::int64_t session = begin_example_session(store_, other);
  store_.add_trial(session, other, timed(1, 180));
  store_.add_trial(session, other, timed(8, 100));
  const auto compilers = document_json(gather_report(store_, {}))["compilers"];
  ASSERT_EQ(compilers.size(), 1U);
  const auto& comparison = compilers[0];
  EXPECT_EQ(comparison["device"], example_device().name);
  EXPECT_EQ(comparison["target"], "sm_61");
  ASSERT_EQ(comparison["compilers"].size(), 2U);
  EXPECT_EQ(comparison["compilers"][0]["name"], "nvrtc 12.9");
  EXPECT_EQ(comparison["compilers"][0]["fastest_of"], 1);
  EXPECT_EQ(comparison["compilers"][0]["gain"], 1);
  EXPECT_EQ(comparison["compilers"][1]["name"], "nvrtc 11.8");
  EXPECT_EQ(comparison["compilers"][1]["gain"], 1.25);
  ASSERT_EQ(comparison["rows"].size(), 1U);
  EXPECT_EQ(comparison["rows"][0]["best"][0]["median_us"], 80);
  EXPECT_EQ(comparison["rows"][0]["best"][1]["median_us"], 100);
  EXPECT_EQ(comparison["rows"][0]["fastest"], 0);
  EXPECT_EQ(comparison["rows"][0]["speedup"], 1.25);
  EXPECT_NE(markdown_report(store_).find("choosing for each problem is 1.25× as fast"), std::string::npos);
}

TEST_F(GatherTest, DevicesStandSideBySideAsInMarkdown) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 80));
  EXPECT_TRUE(document_json(gather_report(store_, {}))["devices"].empty()) << "there is one";
  EXPECT_EQ(markdown_report(store_).find("By device"), std::string::npos);
  DeviceRow small = example_device();
  small.sm_count = 3;  // of the same name
  ContextIds other = context_;
  other.device = store_.device_id(small);
  const std::int64_t session = begin_example_session(store_, other);
  store_.add_trial(session, other, timed(1, 900));
  store_.add_trial(session, other, timed(8, 600));
  // A slower one of another toolkit there, another source, and a problem that only one device has.
  ContextIds slower = other;
  slower.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "driver"});
  store_.add_trial(session, slower, timed(2, 700));
  const auto devices = document_json(gather_report(store_, {}))["devices"];
  ASSERT_EQ(devices.size(), 1U);
  const auto& comparison = devices[0];
  EXPECT_EQ(comparison["kind"], "cuda");
  ASSERT_EQ(comparison["devices"].size(), 2U);
  EXPECT_NE(comparison["devices"][0]["name"], comparison["devices"][1]["name"]);
  EXPECT_NE(comparison["devices"][1]["name"].get<std::string>().find("3 multiprocessors"), std::string::npos);
  ASSERT_EQ(comparison["rows"].size(), 1U);
  const auto& row = comparison["rows"][0];
  EXPECT_EQ(row["devices"][0]["best"]["median_us"], 80);
  EXPECT_EQ(row["devices"][0]["default"]["median_us"], 190);
  EXPECT_EQ(row["devices"][1]["best"]["median_us"], 600) << "the best of its toolkits";
  EXPECT_EQ(row["devices"][1]["speedup"], 1.5);
  EXPECT_EQ(row["devices"][1]["config"]["TILE"], 8);
  EXPECT_EQ(row["same_config"], false);
  EXPECT_EQ(comparison["same_config"], 0);
  const std::string report = markdown_report(store_);
  EXPECT_NE(report.find("## By device"), std::string::npos);
  EXPECT_NE(report.find("| 80 (2.38×) | 600 (1.50×) | no |"), std::string::npos) << report;
  store_.add_trial(session, other, timed(4, 500));
  EXPECT_EQ(document_json(gather_report(store_, {}))["devices"][0]["same_config"], 1);
}

TEST_F(GatherTest, DevicesOfAnotherKindOrSourceAreNotSetSideBySide) {
  store_.add_trial(session_, context_, timed(4, 80));
  DeviceRow emulated = example_device();
  emulated.kind = "host";
  ContextIds other = context_;
  other.device = store_.device_id(emulated);
  store_.add_trial(begin_example_session(store_, other), other, timed(4, 80));
  DeviceRow card = example_device();
  card.name = "another card";
  other.device = store_.device_id(card);
  other.kernel = store_.kernel_id({"matmul", "source-b"});
  store_.add_trial(begin_example_session(store_, other), other, timed(4, 80));
  EXPECT_TRUE(document_json(gather_report(store_, {}))["devices"].empty());
}

TEST_F(GatherTest, OnlyCodeThatIsReadIsAskedAbout) {
  for (const char* target : {"sm_50", "sm_61", "sm_62", "compute_61"}) {
    EXPECT_TRUE(has_limits(target)) << target;
  }
  for (const char* target : {"sm_70", "sm_90", "host", "", "sm_6", "sm_611"}) {
    EXPECT_FALSE(has_limits(target)) << target;
  }
}

TEST_F(GatherTest, RooflineIsThatOfAProbeWhereThereIsOne) {
  store_.problem_id(example_problem(), 2e9, 4e8);
  store_.add_trial(session_, context_, timed(1, 100));
  Probe probe;
  probe.started_unix_ms = 1000;
  probe.values = {{ProbeQuantity::sm_clock_mhz, 1500, 1499, 1501, 0.01, 9, true},
                  {ProbeQuantity::ffma_per_clock, 127, 126, 128, 0.01, 9, true},
                  {ProbeQuantity::read_gbps, 400, 399, 401, 0.01, 9, true}};
  store_.add_probe(probe, context_.device, context_.toolkit);
  const ReportDocument document = gathered();
  const ReportRoofline roofline = document.contexts.at(0).roofline.value();
  EXPECT_NEAR(roofline.peak_gflops, 2 * 127 * 28 * 1.5, 1e-9);
  EXPECT_EQ(roofline.memory_gbps, 400);
  EXPECT_NE(roofline.source.find("1500 MHz, 400 GB/s of memory: measured by pascaline probe"), std::string::npos)
      << roofline.source;
  EXPECT_NEAR(*only_problem().roofline_us, 4e8 / 400e3, 1e-9);
}

TEST_F(GatherTest, UndecidedProblemHasTheFastestTrialAndTheLatestDefault) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 95));
  store_.add_trial(session_, context_, timed(1, 180));
  store_.add_trial(session_, context_, failed_trial(1, TrialStatus::crashed, "signal 11"));
  const ReportProblem problem = only_problem();
  EXPECT_FALSE(problem.decided);
  EXPECT_FALSE(problem.confidence);
  EXPECT_EQ(problem.baseline->median_us, 180);
  EXPECT_EQ(problem.best_trial, 2);
  EXPECT_EQ(problem.counts.trials, 4);
  EXPECT_EQ(problem.statuses[static_cast<std::size_t>(TrialStatus::crashed)], 1U);
}

TEST_F(GatherTest, OnlyFailures) {
  for (int i = 0; i < 3; ++i) {
    store_.add_trial(session_, context_, failed_trial(i, TrialStatus::rejected, "<b>'rule' \"1\""));
  }
  store_.add_trial(session_, context_, failed_trial(7, TrialStatus::timed_out, "2 s"));
  const ReportProblem problem = only_problem();
  EXPECT_FALSE(problem.best || problem.baseline || problem.speedup || problem.best_trial || problem.gflops);
  const GatherJson context = json()["contexts"][0];
  EXPECT_EQ(context["statuses"]["rejected"], 3);
  EXPECT_EQ(context["statuses"]["ok"], 0);
  EXPECT_EQ(context["failures"][0]["reason"], "<b>'rule' \"1\"");
  EXPECT_EQ(context["failures"][0]["count"], 3);
  EXPECT_EQ(context["failures"][0]["kernels"].dump(), "[\"matmul\"]");
  EXPECT_EQ(context["failures"][0]["config"], example_config(0).text());
  EXPECT_EQ(context["failures"][1]["status"], "timed_out");
  EXPECT_TRUE(context["kernels"][0]["problems"][0]["best"].is_null());
  EXPECT_EQ(context["kernels"][0]["problems"][0]["searches"][0]["total"], 4);
  EXPECT_EQ(context["kernels"][0]["problems"][0]["searches"][0]["best_us"].dump(), "[]");
}

TEST_F(GatherTest, DroppedTrialsAreUsableAndCountedSeparately) {
  Trial dropped = timed(2, 100);
  dropped.status = TrialStatus::dropped;
  dropped.reason = "slower than the best so far";
  store_.add_trial(session_, context_, timed(16, 50));
  store_.add_trial(session_, context_, dropped);
  const GatherJson context = json()["contexts"][0];
  EXPECT_EQ(context["statuses"]["ok"], 1);
  EXPECT_EQ(context["statuses"]["dropped"], 1);
  EXPECT_EQ(context["ok"], 2);
  EXPECT_EQ(context["dropped"], 1);
  EXPECT_TRUE(context["failures"].empty());
  const GatherJson shown = context["kernels"][0]["problems"][0];
  EXPECT_EQ(shown["configurations"]["rows"][1]["status"], "dropped");
  EXPECT_EQ(shown["configurations"]["rows"][1]["median_us"], 100);
  const ReportProblem problem = only_problem();
  EXPECT_EQ(parameter(problem, "TILE").ok, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(parameter(problem, "TILE").best_us, (std::vector<std::optional<double>>{100, 50}));
}

TEST_F(GatherTest, RareReasonsAreLeftOutAndCounted) {
  for (int i = 0; i < 210; ++i) {
    store_.add_trial(session_, context_, failed_trial(i, TrialStatus::rejected, "rule " + std::to_string(i)));
  }
  const ReportDocument document = gathered();
  EXPECT_EQ(document.contexts[0].failures.size(), 200U);
  EXPECT_EQ(document.contexts[0].failures_more, 10U);
}

TEST_F(GatherTest, BestSoFarCountsFailuresAndIsOfOneSession) {
  const auto at = [](Trial trial, std::int64_t started_ms) {
    trial.started_unix_ms = started_ms;
    return trial;
  };
  Trial failed = failed_trial(3, TrialStatus::crashed, "");
  failed.started_unix_ms = 1'000'000;
  store_.add_trial(session_, context_, failed);
  store_.add_trial(session_, context_, at(timed(1, 90), 1'001'000));
  store_.add_trial(session_, context_, at(timed(2, 95), 1'002'000));
  store_.add_trial(session_, context_, at(timed(4, 80), 1'003'000));
  store_.add_trial(session_, context_, at(finalist(4, 10), 1'004'000));
  store_.add_trial(session_, context_, at(timed(5, 85), 900'000));  // the clock stepped back
  const std::int64_t other = begin_example_session(store_, context_);
  store_.add_trial(other, context_, at(timed(8, 70), 2'000'000));
  const ReportProblem problem = only_problem();
  ASSERT_EQ(problem.searches.size(), 2U);
  const ReportSearch& search = problem.searches[0];
  EXPECT_EQ(search.session, session_);
  EXPECT_EQ(search.searcher, "random");
  EXPECT_EQ(search.total, 5);
  EXPECT_EQ(search.trials, (std::vector<std::int64_t>{2, 4, 5}));
  EXPECT_EQ(search.best_us, (std::vector<double>{90, 80, 80}));
  EXPECT_NEAR(*search.elapsed_s[0], 1.045, 1e-9);  // 3.5 + 41.25 ms, rounded
  EXPECT_EQ(search.elapsed_s[1], search.elapsed_s[2]);
  EXPECT_EQ(problem.searches[1].trials, (std::vector<std::int64_t>{1}));
}

TEST_F(GatherTest, ParametersOfTheSearchInOrderOfTheSpace) {
  context_.space =
      store_.space_id("matmul", "ordered", R"({"parameters":[{"name":"UNROLL"},{"name":"TILE"},{"name":"NEVER"}]})");
  store_.add_trial(session_, context_, timed(16, 100));
  store_.add_trial(session_, context_, timed(16, 120));
  store_.add_trial(session_, context_, timed(2, 50));
  store_.add_trial(session_, context_, timed(2, 60));
  store_.add_trial(session_, context_, timed(2, 90));
  store_.add_trial(session_, context_, failed_trial(8, TrialStatus::rejected, ""));
  store_.add_trial(session_, context_, finalist(32, 5));
  const ReportProblem problem = only_problem();
  std::vector<std::string> names;
  for (const ReportParameter& one : problem.parameters) {
    names.push_back(one.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"UNROLL", "TILE", "LAYOUT", "SCALE"}));
  const ReportParameter& tile = parameter(problem, "TILE");
  EXPECT_EQ(tile.values, (std::vector<Value>{std::int64_t{2}, std::int64_t{8}, std::int64_t{16}}));
  EXPECT_EQ(tile.trials, (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(tile.ok, (std::vector<std::int64_t>{3, 0, 2}));
  EXPECT_EQ(tile.best_us, (std::vector<std::optional<double>>{50, std::nullopt, 100}));
  EXPECT_EQ(tile.median_us, (std::vector<std::optional<double>>{60, std::nullopt, 110}));
  EXPECT_EQ(tile.effect, 2);
  EXPECT_FALSE(parameter(problem, "UNROLL").effect);
  EXPECT_FALSE(problem.heat);  // one parameter alone has an effect
  EXPECT_EQ(problem.configurations.at(0).values.size(), 4U);
  EXPECT_EQ(problem.configurations.at(0).values.at(0), Value(true));
}

TEST_F(GatherTest, HeatHasARowForEachValueOfY) {
  const auto add = [&](std::int64_t x, const std::string& y, double median_us) {
    Trial trial = timed(8, median_us);
    trial.config = Config({{"X", x}, {"Y", y}});
    store_.add_trial(session_, context_, trial);
  };
  add(1, "a", 10);
  add(2, "a", 40);
  add(2, "b", 30);
  add(3, "b", 60);
  add(3, "b", 50);
  const auto heat = only_problem().heat;
  ASSERT_TRUE(heat);
  EXPECT_EQ(heat->parameters, (std::vector<std::string>{"X", "Y"}));
  ASSERT_EQ(heat->pairs.size(), 1U);
  using HeatRow = std::vector<std::optional<double>>;
  EXPECT_EQ(heat->pairs[0].best_us,
            (std::vector<HeatRow>{HeatRow{10, 40, std::nullopt}, HeatRow{std::nullopt, 30, 50}}));
}

TEST_F(GatherTest, ConfigurationsShowBestDefaultAndASpreadOfAll) {
  store_.add_trial(session_, context_, timed(1, 500));
  for (int i = 2; i <= 200; ++i) {
    store_.add_trial(session_, context_, timed(i, 1000 + i));
  }
  store_.add_trial(session_, context_, failed_trial(300, TrialStatus::wrong_result, "error inf"));
  const ReportProblem problem = only_problem();
  const auto& rows = problem.configurations;
  EXPECT_EQ(rows.size(), detail_for(1, 1).configurations);
  EXPECT_EQ(problem.counts.trials, 201);
  EXPECT_TRUE(rows[0].best && rows[0].trial.is_default);
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.trial_id == 201; }));
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.trial_id == 200; }));
  std::vector<std::int64_t> ids;
  std::transform(rows.begin(), rows.end(), std::back_inserter(ids), [](const auto& row) { return row.trial_id; });
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  // The example's samples but the first and the tenth, at the clock scale.
  ASSERT_EQ(rows[0].samples_us.size(), 28U);
  EXPECT_EQ(rows[0].samples_us[0], 100.125 * 0.96875);
  EXPECT_EQ(rows[0].sm_clock_mhz, 1911);
  EXPECT_FALSE(rows[0].power_w);  // only a sample that does not count had one
}

TEST_F(GatherTest, ATrialThatSharesAResultShowsItsSamples) {
  const std::int64_t measured = store_.add_trial(session_, context_, timed(1, 100));
  Trial shared = timed(4, 100);
  shared.samples.clear();
  shared.shared_trial = measured;
  store_.add_trial(session_, context_, shared);
  const ReportProblem problem = only_problem();
  ASSERT_EQ(problem.configurations.size(), 2U);
  EXPECT_EQ(problem.configurations[1].samples_us, problem.configurations[0].samples_us);
}

TEST_F(GatherTest, DevicesToolkitsAndSourcesAreNeverMixed) {
  store_.add_trial(session_, context_, timed(1, 100));
  ContextIds other_device = context_;
  other_device.device = store_.device_id({"host", "Some CPU", "", 8, 0, "{}"});
  store_.add_trial(session_, other_device, timed(1, 50'000));
  ContextIds other_toolkit = context_;
  other_toolkit.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  store_.add_trial(session_, other_toolkit, timed(1, 110));
  ContextIds other_source = context_;
  other_source.kernel = store_.kernel_id({"matmul", "source-b"});
  store_.add_trial(session_, other_source, timed(1, 90));
  const ReportDocument document = gathered();
  ASSERT_EQ(document.contexts.size(), 3U);
  EXPECT_EQ(document.contexts[1].device.name, "Some CPU");
  EXPECT_FALSE(document.contexts[1].roofline);
  EXPECT_TRUE(document.contexts[0].roofline);
  const auto& kernels = document.contexts[0].kernels;
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_TRUE(kernels[0].current);
  EXPECT_EQ(kernels[0].source_hash, "source-b");
  EXPECT_FALSE(kernels[1].current);
  EXPECT_EQ(document.contexts[2].kernels[0].problems[0].id, 3U);

  const ReportDocument host = gathered({.device = "Some CPU"});
  ASSERT_EQ(host.contexts.size(), 1U);
  EXPECT_EQ(host.contexts[0].counts.trials, 1);
  EXPECT_EQ(host.database_counts.trials, 4);
  ASSERT_EQ(host.sessions.size(), 1U);
  EXPECT_EQ(host.sessions[0].context, std::optional<std::size_t>(0));
  EXPECT_EQ(host.sessions[0].counts.trials, 1);
  EXPECT_TRUE(gathered({.kernel = "softmax"}).contexts.empty());
}

TEST_F(GatherTest, WhateverTheDatabaseHoldsIsValidJson) {
  const std::string bad = "<img src=x onerror=\"alert('1')\">\xff\xc3 \x01 &amp; é";
  context_.device = store_.device_id({"cuda", bad, bad, 0, 0, bad});
  context_.kernel = store_.kernel_id({bad, bad});
  Trial trial = timed(1, 100);
  trial.config = Config({{"A", std::string("a\"b<")}, {"B", true}, {"C", 1e300}});
  trial.max_error = std::numeric_limits<double>::infinity();
  trial.reason = std::string(5000, 'x') + "é";
  store_.add_trial(session_, context_, trial);
  TelemetryRow reading;
  reading.unix_ms = 5;
  reading.governor_state = bad;
  store_.add_telemetry(session_, reading);
  const GatherJson document = json({.title = bad});
  const std::string shown = "<img src=x onerror=\"alert('1')\">\xef\xbf\xbd\xef\xbf\xbd \x01 &amp; é";
  EXPECT_EQ(document["title"], shown);
  EXPECT_EQ(document["contexts"][0]["device"]["name"], shown);
  EXPECT_EQ(document["contexts"][0]["kernels"][0]["name"], shown);
  EXPECT_EQ(document["sessions"][0]["telemetry"]["states"][0]["state"], shown);
  const GatherJson row = document["contexts"][0]["kernels"][0]["problems"][0]["configurations"]["rows"][0];
  EXPECT_EQ(row["values"].dump(), R"(["a\"b<",true,1e+300])");
  EXPECT_TRUE(row["max_error"].is_null());
  EXPECT_LT(row["reason"].get<std::string>().size(), 2010U);
}

}  // namespace
}  // namespace pascaline::testing
