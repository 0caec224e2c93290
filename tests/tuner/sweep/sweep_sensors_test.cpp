#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/util/paths.hpp"
#include "tests/tuner/sweep/sweep_faults.hpp"

namespace pascaline::testing {
namespace {

// The governor through the whole program: a script stands for the card's sensors and its canary.

class SensorsTest : public SweepFaultsTest {
 protected:
  void SetUp() override {
    sample_ms_ = 300;
    write_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384});
  }
  [[nodiscard]] std::string trace(const std::string& name, const std::string& later = "") const {
    write_file_atomically(folder_ / name, R"([{"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83,
      "sm_clock_mhz": 1500, "throttle_reasons": 0, "canary_us": 100})" +
                                              later + "]");
    return (folder_ / name).string();
  }
  [[nodiscard]] ProgramResult sweep_with(const std::string& trace, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = command({"--preheat", "0.5", "--sensors", trace});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  [[nodiscard]] std::vector<TelemetryRow> telemetry() const {
    const Store store(database_, OpenMode::read_only);
    return store.telemetry(store.sessions().at(0).id);
  }
};

TEST_F(SensorsTest, HeatIsWaitedOut) {
  const ProgramResult result =
      sweep_with(trace("hot.json", R"(, {"at_s": 1.5, "temperature_c": 84}, {"at_s": 3, "temperature_c": 61})"));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_complete(12);
  EXPECT_NE(result.out.find("cooling: 84 C, limit 83 C"), std::string::npos) << result.out;
  const std::vector<TelemetryRow> rows = telemetry();
  const auto cooling =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.governor_state == "cooling"; });
  ASSERT_NE(cooling, rows.end());
  EXPECT_TRUE(std::any_of(cooling, rows.end(), [](const auto& row) { return row.governor_state == "measuring"; }));
  const double span_s = static_cast<double>(rows.back().unix_ms - rows.front().unix_ms) / 1000;
  EXPECT_GT(span_s, 2.5);
  EXPECT_GE(static_cast<double>(rows.size()), 2 * span_s) << "readings come twice a second at least";
}

TEST_F(SensorsTest, SensorsThatVanishEndNothing) {
  const ProgramResult result = sweep_with(trace("gone.json", R"(, {"at_s": 1.5, "temperature_c": null,
      "temperature_limit_c": null, "sm_clock_mhz": null, "throttle_reasons": null})"));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_complete(12);
  EXPECT_EQ(statuses()[TrialStatus::ok], 12);
  EXPECT_FALSE(telemetry().back().temperature_c);
}

TEST_F(SensorsTest, CardThatNeverCoolsIsGivenUpAndTriedAgainLater) {
  const ProgramResult result =
      sweep_with(trace("oven.json", R"(, {"at_s": 2.5, "temperature_c": 90})"), {"--pause-limit", "2"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.error.find("gave up after 2 s: 90 C"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("resume with: pascaline sweep --resume --db " + database_.string()), std::string::npos)
      << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_EQ(last_state(), "interrupted");
  expect_sound();
  const std::size_t before = trial_count();
  EXPECT_GT(before, 0U);
  EXPECT_LT(before, 12U);
  EXPECT_EQ(statuses()[TrialStatus::ok], static_cast<int>(before)) << "what was not measured is not stored";
  const ProgramResult resumed = run(resume({"--sensors", trace("kind.json")}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  expect_complete(12);
  EXPECT_EQ(statuses()[TrialStatus::ok], 12);
}

TEST_F(SensorsTest, ThrottledSamplesAreKeptWithTheirMarkAndDoNotCount) {
  // Again and again for power and for temperature in turn, so that trials meet both on slow machines, too.
  std::string later;
  for (int i = 0; i < 20; ++i) {
    later +=
        fmt::format(R"(, {{"at_s": {0:.1f}, "throttle_reasons": {1}}}, {{"at_s": {2:.1f}, "throttle_reasons": 0}})",
                    1.2 + 0.5 * i, i % 2 == 0 ? 4 : 64, 1.4 + 0.5 * i);
  }
  const ProgramResult result = sweep_with(trace("weak.json", later));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_complete(12);
  EXPECT_GT(number("SELECT count(*) FROM samples WHERE mark = 'power_throttle'"), 0);
  EXPECT_GT(number("SELECT count(*) FROM samples WHERE mark = 'thermal_throttle'"), 0);
  EXPECT_EQ(
      number("SELECT count(*) FROM trials t WHERE status = 'ok' AND sample_count <> (SELECT count(*) FROM samples s "
             "WHERE s.trial_id = t.id AND s.mark IS NULL)"),
      0);
}

TEST_F(SensorsTest, SteadyCardUnderAPermanentPowerCapIsMeasured) {
  write_file_atomically(folder_ / "capped.json", R"([{"at_s": 0, "temperature_c": 70, "sm_clock_mhz": 1500,
    "throttle_reasons": 4, "canary_us": 100}])");
  const ProgramResult result = sweep_with((folder_ / "capped.json").string(), {"--pause-limit", "6"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_complete(12);
  EXPECT_EQ(statuses()[TrialStatus::ok], 12);
  const std::string told = "a power cap holds the card's clock at 1500 MHz";
  EXPECT_NE(result.out.find(told), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find(told), result.out.rfind(told)) << "once: " << result.out;
  const std::vector<TelemetryRow> rows = telemetry();
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const TelemetryRow& row) {
    return row.governor_state == "measuring" && row.throttle_reasons == 4;
  })) << "the record says so";
}

TEST_F(SensorsTest, UnsteadyCardUnderAPowerCapIsGivenUpWithTheOptionThatHelps) {
  std::string steps;
  for (int i = 0; i < 60; ++i) {
    steps += fmt::format(R"({}{{"at_s": {:.1f}, "sm_clock_mhz": {}, "canary_us": {}, "throttle_reasons": 4}})",
                         i == 0 ? "" : ", ", 0.4 * i, i % 2 == 0 ? 1500 : 1200, i % 2 == 0 ? 100 : 125);
  }
  write_file_atomically(folder_ / "capped.json", "{\"repeat_s\": 24, \"steps\": [" + steps + "]}");
  const std::string sensors = (folder_ / "capped.json").string();
  const ProgramResult result = sweep_with(sensors, {"--pause-limit", "3"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.error.find("to measure it as it is, give --tolerate power"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("resume with: pascaline sweep --resume --db " + database_.string()), std::string::npos)
      << result.error;
  EXPECT_TRUE(result.error.ends_with(" --tolerate power\n")) << "not what just failed: " << result.error;
  EXPECT_EQ(trial_count(), 0U);
}

}  // namespace
}  // namespace pascaline::testing
