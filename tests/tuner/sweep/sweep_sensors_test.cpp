#include <gtest/gtest.h>

#include <algorithm>

#include "core/util/paths.hpp"
#include "tests/tuner/sweep/sweep_faults.hpp"

namespace pascaline::testing {
namespace {

// The governor through the whole program: a script stands for the card's sensors and its canary. SimulatedSensorsTest
// has the rest.

TEST_F(SweepFaultsTest, HeatIsWaitedOut) {
  sample_ms_ = 200;
  write_space({kRight}, {32, 64, 96, 128, 160, 192});
  write_file_atomically(folder_ / "hot.json", R"([{"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83,
    "sm_clock_mhz": 1500, "throttle_reasons": 0, "canary_us": 100},
    {"at_s": 1.5, "temperature_c": 84}, {"at_s": 2.5, "temperature_c": 61}])");
  const ProgramResult result = run(command({"--preheat", "0.5", "--sensors", (folder_ / "hot.json").string()}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_complete(6);
  EXPECT_NE(result.out.find("cooling: 84 C, limit 83 C"), std::string::npos) << result.out;
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

}  // namespace
}  // namespace pascaline::testing
