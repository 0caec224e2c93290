#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/util/paths.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

// The governor's pauses in a sweep: a script stands for the card's sensors and its canary.
namespace pascaline::testing {
namespace {

class SimulatedSensorsTest : public SimulatedSweepTest {
 protected:
  void SetUp() override {
    SimulatedSweepTest::SetUp();
    use_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384});
    options_.governor.preheat_limit_s = 0.5;
    options_.search.min_gain = 0;
    options_.measure.min_samples = options_.measure.max_samples = 100'000;
    options_.measure.budget_ms = 300;
    options_.measure.race_error = 0;
  }
  void use_trace(const std::string& text) {
    options_.files.sensors = folder_ / "trace.json";
    write_file_atomically(options_.files.sensors, text);
  }
  // A kind card, and what changes later.
  void use_steps(const std::string& later) {
    use_trace(R"([{"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83, "sm_clock_mhz": 1500,
        "throttle_reasons": 0, "canary_us": 100})" +
              later + "]");
  }
  // Launches of milliseconds, to be quick.
  [[nodiscard]] SweepSummary sweep_here() { return sweep({"200000"}); }
  [[nodiscard]] std::vector<TelemetryRow> telemetry() const {
    const Store store(database_, OpenMode::read_only);
    return store.telemetry(store.sessions().at(0).id);
  }
  [[nodiscard]] int number(const std::string& sql) const {
    return SQLite::Database(database_.string()).execAndGet(sql).getInt();
  }
};

TEST_F(SimulatedSensorsTest, HeatIsWaitedOut) {
  use_steps(R"(, {"at_s": 2.5, "temperature_c": 84}, {"at_s": 6, "temperature_c": 61})");
  const SweepSummary summary = sweep_here();
  expect_complete(12);
  EXPECT_TRUE(noted("cooling: 84 C, limit 83 C"));
  EXPECT_GT(summary.times.waited_s, 3);
  const std::vector<TelemetryRow> rows = telemetry();
  const auto cooling =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.governor_state == "cooling"; });
  ASSERT_NE(cooling, rows.end());
  EXPECT_TRUE(std::any_of(cooling, rows.end(), [](const auto& row) { return row.governor_state == "measuring"; }));
  const double span_s = static_cast<double>(rows.back().unix_ms - rows.front().unix_ms) / 1000;
  EXPECT_GT(span_s, 6);
  EXPECT_GE(static_cast<double>(rows.size()), 2 * span_s) << "readings come twice a second at least";
}

TEST_F(SimulatedSensorsTest, SensorsThatVanishEndNothing) {
  use_steps(R"(, {"at_s": 2.5, "temperature_c": null, "temperature_limit_c": null, "sm_clock_mhz": null,
      "throttle_reasons": null})");
  std::ignore = sweep_here();
  expect_complete(12);
  EXPECT_EQ(statuses()[TrialStatus::ok], 12);
  EXPECT_FALSE(telemetry().back().temperature_c);
}

TEST_F(SimulatedSensorsTest, ACardThatNeverCoolsIsGivenUpAndTriedAgainLater) {
  use_steps(R"(, {"at_s": 5, "temperature_c": 90})");
  options_.governor.pause_limit_s = 2;
  const SweepSummary hot = sweep_here();
  EXPECT_TRUE(hot.interrupted);
  EXPECT_TRUE(hot.end.gave_up);
  EXPECT_NE(hot.end.reason.find("gave up after 2 s: 90 C"), std::string::npos) << hot.end.reason;
  EXPECT_TRUE(hot.end.remedy.empty()) << hot.end.remedy;
  EXPECT_EQ(last_state(), "interrupted");
  expect_sound();
  EXPECT_GT(hot.trials, 0);
  EXPECT_LT(hot.trials, 12);
  EXPECT_EQ(hot.ok, hot.trials) << "what was not measured is not stored";
  use_steps("");
  options_.record.resume_run = hot.run;
  EXPECT_FALSE(sweep_here().interrupted);
  expect_complete(12);
  EXPECT_EQ(statuses()[TrialStatus::ok], 12);
}

TEST_F(SimulatedSensorsTest, ACardThatCoolsIsNotWaitedForWhenItIsInterrupted) {
  use_steps(R"(, {"at_s": 3, "temperature_c": 85})");
  double stopped_s = 0;
  events_.note = [&](const std::string& note) {
    if (note.find("cooling") != std::string::npos) {
      stop_ = true;
      stopped_s = simulation_.clock().elapsed_s();
    }
  };
  const SweepSummary summary = sweep_here();
  EXPECT_TRUE(summary.interrupted);
  ASSERT_GT(stopped_s, 0);
  EXPECT_LT(simulation_.clock().elapsed_s() - stopped_s, 1) << "it may pause for 900 s";
  EXPECT_EQ(summary.ok, summary.trials);
  expect_sound();
  stop_ = false;
  use_steps("");
  options_.record.resume_run = summary.run;
  EXPECT_FALSE(sweep_here().interrupted);
  expect_complete(12);
}

TEST_F(SimulatedSensorsTest, ThrottledSamplesAreKeptWithTheirMarkAndDoNotCount) {
  std::string later;
  for (int i = 0; i < 20; ++i) {
    later +=
        fmt::format(R"(, {{"at_s": {0:.1f}, "throttle_reasons": {1}}}, {{"at_s": {2:.1f}, "throttle_reasons": 0}})",
                    2.2 + 0.5 * i, i % 2 == 0 ? 4 : 64, 2.4 + 0.5 * i);
  }
  use_steps(later);
  std::ignore = sweep_here();
  expect_complete(12);
  EXPECT_GT(number("SELECT count(*) FROM samples WHERE mark = 'power_throttle'"), 0);
  EXPECT_GT(number("SELECT count(*) FROM samples WHERE mark = 'thermal_throttle'"), 0);
  EXPECT_EQ(
      number("SELECT count(*) FROM trials t WHERE median_us > 0 AND sample_count <> (SELECT count(*) FROM samples s "
             "WHERE s.trial_id = t.id AND s.mark IS NULL)"),
      0);
}

TEST_F(SimulatedSensorsTest, ASteadyCardUnderAPermanentPowerCapIsMeasured) {
  use_trace(R"([{"at_s": 0, "temperature_c": 70, "sm_clock_mhz": 1500, "throttle_reasons": 4, "canary_us": 100}])");
  options_.governor.pause_limit_s = 6;
  std::ignore = sweep_here();
  expect_complete(12);
  EXPECT_EQ(statuses()[TrialStatus::ok], 12);
  EXPECT_EQ(std::ranges::count_if(notes_,
                                  [](const std::string& note) {
                                    return note.find("a power cap holds the card's clock at 1500 MHz") !=
                                           std::string::npos;
                                  }),
            1);
  const std::vector<TelemetryRow> rows = telemetry();
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const TelemetryRow& row) {
    return row.governor_state == "measuring" && row.throttle_reasons == 4;
  })) << "the record says so";
}

TEST_F(SimulatedSensorsTest, AnUnsteadyCardUnderAPowerCapIsGivenUpWithTheOptionThatHelps) {
  std::string steps;
  for (int i = 0; i < 60; ++i) {
    steps += fmt::format(R"({}{{"at_s": {:.1f}, "sm_clock_mhz": {}, "canary_us": {}, "throttle_reasons": 4}})",
                         i == 0 ? "" : ", ", 0.4 * i, i % 2 == 0 ? 1500 : 1200, i % 2 == 0 ? 100 : 125);
  }
  use_trace("{\"repeat_s\": 24, \"steps\": [" + steps + "]}");
  options_.governor.pause_limit_s = 3;
  const SweepSummary summary = sweep_here();
  EXPECT_TRUE(summary.end.gave_up);
  EXPECT_EQ(summary.end.remedy, "--tolerate power");
  EXPECT_EQ(summary.trials, 0);
}

}  // namespace
}  // namespace pascaline::testing
