#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/util/paths.hpp"
#include "tests/tuner/sweep/sweep_faults.hpp"

namespace pascaline::testing {
namespace {

// The governor through the whole program: a script stands for the card's sensors and its canary. SimulatedSensorsTest
// has the rest.

TEST_F(SweepFaultsTest, HeatIsWaitedOutAndAStuckPowerReadingIsReported) {
  sample_ms_ = 200;
  write_space({kRight}, {32, 64, 96, 128, 160, 192});
  write_file_atomically(folder_ / "hot.json", R"([{"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83,
    "sm_clock_mhz": 1500, "throttle_reasons": 0, "canary_us": 100, "power_w": 50},
    {"at_s": 1.5, "temperature_c": 84}, {"at_s": 2.5, "temperature_c": 61}])");
  const ProgramResult result =
      run(command({"--preheat", "0.5", "--objective", "edp", "--sensors", (folder_ / "hot.json").string()}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_complete(6);
  EXPECT_NE(result.out.find("cooling: 84 C, limit 83 C"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("no winner by energy-delay product: the card's power reading is stuck at 50 W"),
            std::string::npos)
      << result.out;
  const Store store(database_, OpenMode::read_only);
  const std::vector<TelemetryRow> rows = store.telemetry(store.sessions().at(0).id);
  const auto cooling =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.governor_state == "cooling"; });
  ASSERT_NE(cooling, rows.end());
  EXPECT_TRUE(std::any_of(cooling, rows.end(), [](const auto& row) { return row.governor_state == "measuring"; }));
  const double span_s = static_cast<double>(rows.back().unix_ms - rows.front().unix_ms) / 1000;
  EXPECT_GT(span_s, 2);
  EXPECT_GE(static_cast<double>(rows.size()), 2 * span_s) << "readings come twice a second at least";
}

TEST_F(SweepFaultsTest, UnsteadyCardUnderAPowerCapIsGivenUpWithTheOptionThatHelps) {
  std::string steps;
  for (int i = 0; i < 60; ++i) {
    steps += fmt::format(R"({}{{"at_s": {:.1f}, "sm_clock_mhz": {}, "canary_us": {}, "throttle_reasons": 4}})",
                         i == 0 ? "" : ", ", 0.4 * i, i % 2 == 0 ? 1500 : 1200, i % 2 == 0 ? 100 : 125);
  }
  write_file_atomically(folder_ / "capped.json", "{\"repeat_s\": 24, \"steps\": [" + steps + "]}");
  const std::string sensors = (folder_ / "capped.json").string();
  const ProgramResult result = run(command({"--preheat", "0.5", "--sensors", sensors, "--pause-limit", "3"}));
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.error.find("to measure it as it is, give --tolerate power"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("resume with: pascaline sweep --resume --db " + database_.string()), std::string::npos)
      << result.error;
  EXPECT_TRUE(result.error.ends_with(" --tolerate power\n")) << "not what just failed: " << result.error;
  EXPECT_EQ(trial_count(), 0U);
}

}  // namespace
}  // namespace pascaline::testing
