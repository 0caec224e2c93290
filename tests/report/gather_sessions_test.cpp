#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

#include "report/document_json.hpp"
#include "report/gather.hpp"
#include "report/gather_parts.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

using GatherSessionsTest = ReportFixture;

TEST_F(GatherSessionsTest, SessionWithoutTrials) {
  const ReportDocument document = gather_report(store_);
  EXPECT_TRUE(document.contexts.empty());
  ASSERT_EQ(document.sessions.size(), 1U);
  EXPECT_FALSE(document.sessions[0].context);
  EXPECT_EQ(document.sessions[0].counts.trials, 0);
  EXPECT_TRUE(document.sessions[0].row.alive);
  EXPECT_TRUE(gather_report(store_, {.kernel = "matmul"}).sessions.empty());
  EXPECT_TRUE(gather_report(store_, {.device = "another"}).sessions.empty());
}

TEST_F(GatherSessionsTest, FiguresAgreeWhileTrialsAreAdded) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    Store other(store_.file(), OpenMode::read_write, Durability::normal);
    for (std::int64_t tile = 1; !stop; ++tile) {
      other.add_trial(session_, context_, timed(tile, 100));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const Store reader(store_.file(), OpenMode::read_only);
  std::size_t last = 0;
  for (int turn = 0; turn < 200 && (turn < 10 || last < 20); ++turn) {
    const ReportDocument document = gather_report(reader);
    last = static_cast<std::size_t>(document.database_counts.trials);
    std::size_t samples = 0;
    for (const ReportSession& session : document.sessions) {
      EXPECT_EQ(session.counts.trials, document.database_counts.trials);
      samples += session.samples;
    }
    EXPECT_EQ(samples, 30 * last);
    for (const ReportContext& context : document.contexts) {
      EXPECT_EQ(context.counts.trials, document.database_counts.trials);
      EXPECT_EQ(context.kernels.at(0).problems.at(0).counts, context.counts);
    }
  }
  stop = true;
  writer.join();
  EXPECT_GE(last, 20U) << "nothing was written meanwhile";
}

TEST_F(GatherSessionsTest, DiscardedSamplesAndTelemetryOfASession) {
  store_.add_trial(session_, context_, timed(1, 100));
  store_.add_trial(session_, context_, timed(4, 100));
  for (int i = 0; i < 5; ++i) {
    TelemetryRow reading;
    reading.unix_ms = 1000 + i;
    reading.temperature_c = 60.0 + i;
    reading.governor_state = i == 2 ? "cooling" : "measuring";
    store_.add_telemetry(session_, reading);
  }
  const nlohmann::ordered_json session = document_json(gather_report(store_))["sessions"][0];
  EXPECT_EQ(session["samples"], 60);
  EXPECT_EQ(session["discarded"].dump(), R"({"power_throttle":2,"clock_drift":2})");
  const nlohmann::ordered_json& telemetry = session["telemetry"];
  EXPECT_EQ(telemetry["readings"], 5);
  EXPECT_EQ(telemetry["temperature_c"].dump(), "[60,61,62,63,64]");
  EXPECT_EQ(telemetry["power_w"].dump(), "[null,null,null,null,null]");
  ASSERT_EQ(telemetry["states"].size(), 3U);
  EXPECT_EQ(telemetry["states"][0].dump(), R"({"from_unix_ms":1000,"to_unix_ms":1002,"state":"measuring"})");
  ASSERT_EQ(telemetry["discarded"].size(), 2U);
  EXPECT_EQ(telemetry["discarded"][0]["count"], 2);
}

TEST_F(GatherSessionsTest, ThinningKeepsEveryPeak) {
  std::vector<TelemetryRow> readings(20'000);
  for (std::size_t i = 0; i < readings.size(); ++i) {
    readings[i].unix_ms = static_cast<std::int64_t>(i);
    readings[i].temperature_c = 60;
    readings[i].power_w = static_cast<double>(i % 100);
  }
  readings[12'345].temperature_c = 91;
  readings[777].canary_us = 3;
  const std::vector<TelemetryRow> thin = thin_out(readings, 300);
  EXPECT_LE(thin.size(), 300U);
  EXPECT_GT(thin.size(), 100U);
  const auto has = [&](std::int64_t moment) {
    return std::any_of(thin.begin(), thin.end(), [&](const TelemetryRow& row) { return row.unix_ms == moment; });
  };
  EXPECT_TRUE(has(0) && has(777) && has(12'345) && has(19'999));
  EXPECT_TRUE(std::is_sorted(thin.begin(), thin.end(),
                             [](const TelemetryRow& a, const TelemetryRow& b) { return a.unix_ms < b.unix_ms; }));
}

TEST_F(GatherSessionsTest, ManyProblemsAreShownInLessDetail) {
  EXPECT_EQ(detail_for(1, 1).configurations, 60U);
  EXPECT_EQ(detail_for(300, 1).configurations, 20U);
  EXPECT_GE(detail_for(1'000'000, 1'000'000).configurations, 2U);
  EXPECT_EQ(detail_for(1'000'000, 1).heat_parameters, 0U);
  EXPECT_EQ(evenly(5, 9), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(evenly(9, 3), (std::vector<std::size_t>{0, 4, 8}));
  EXPECT_EQ(evenly(9, 1), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(evenly(9, 0).empty() && evenly(0, 9).empty());
}

}  // namespace
}  // namespace pascaline::testing
