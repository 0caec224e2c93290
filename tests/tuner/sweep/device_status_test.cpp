#include "tuner/sweep/device_status.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pascaline::testing {
namespace {

class DeviceStatusTest : public ::testing::Test {
 protected:
  static DeviceInfo card() {
    DeviceInfo info;
    info.id = "cuda:0";
    return info;
  }
  std::string hear(std::int64_t at_s, GovernorState state, const std::string& reason = "") {
    MeasureTelemetry telemetry;
    telemetry.unix_ms = 1'700'000'000'000 + 1000 * at_s;
    telemetry.state = state;
    telemetry.reason = reason;
    return status_.hear(telemetry);
  }

  DeviceStatus status_{card()};
};

TEST_F(DeviceStatusTest, TellsOfAWaitWhenItBegins) {
  EXPECT_EQ(hear(0, GovernorState::preheating, "warming up until temperature and clock are steady"), "");
  EXPECT_EQ(hear(1, GovernorState::measuring), "");
  EXPECT_EQ(hear(2, GovernorState::cooling, "80 C, limit 83 C: cooling down"),
            "cuda:0: cooling: 80 C, limit 83 C: cooling down");
  EXPECT_EQ(hear(3, GovernorState::cooling, "79 C, limit 83 C: cooling down"), "");
  EXPECT_EQ(hear(4, GovernorState::measuring), "");
  EXPECT_EQ(status_.take_telemetry().size(), 5U) << "all is recorded, whatever is told";
}

TEST_F(DeviceStatusTest, TellsOnceThatItMeasuresUnderACap) {
  EXPECT_EQ(hear(0, GovernorState::measuring, "a power cap holds the card's clock"),
            "cuda:0: a power cap holds the card's clock");
  EXPECT_EQ(hear(1, GovernorState::measuring, "a power cap holds the card's clock"), "");
  EXPECT_EQ(hear(2, GovernorState::measuring), "");
  EXPECT_EQ(hear(3, GovernorState::measuring, "a power cap holds the card's clock"), "");
}

TEST_F(DeviceStatusTest, ACardThatFlickersIsToldOfOnceForEachReason) {
  std::vector<std::string> told;
  int waits = 0;
  for (std::int64_t at_s = 0; at_s < 700; at_s += 4) {
    for (const auto& line :
         {hear(at_s, GovernorState::settling, "the canary takes " + std::to_string(104 + at_s % 3) + ".0 us"),
          hear(at_s + 1, GovernorState::measuring),
          hear(at_s + 2, GovernorState::settling, "the card slows down for its power (throttle reasons 0x4)"),
          hear(at_s + 3, GovernorState::measuring)}) {
      if (!line.empty()) {
        told.push_back(line);
      }
    }
    ++waits;
  }
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0], "cuda:0: settling: the canary takes 104.0 us");
  EXPECT_EQ(told[1], "cuda:0: settling: the card slows down for its power (throttle reasons 0x4)");
  EXPECT_NE(told[2].find("; 151 times so far"), std::string::npos) << told[2] << " after ten minutes";
  EXPECT_NE(told[3].find("; 151 times so far"), std::string::npos) << told[3];
  EXPECT_GT(waits, 151);
}

TEST_F(DeviceStatusTest, AfterAMinuteWithoutItAWaitIsNewsAgain) {
  EXPECT_NE(hear(0, GovernorState::settling, "SM clock at 1200 MHz, steady is 1500 MHz"), "");
  EXPECT_EQ(hear(59, GovernorState::settling, "SM clock at 1210 MHz, steady is 1500 MHz"), "") << "still";
  EXPECT_EQ(hear(60, GovernorState::measuring), "");
  EXPECT_EQ(hear(118, GovernorState::settling, "SM clock at 1300 MHz, steady is 1500 MHz"), "");
  EXPECT_EQ(hear(119, GovernorState::measuring), "");
  EXPECT_EQ(hear(178, GovernorState::settling, "SM clock at 1400 MHz, steady is 1500 MHz"),
            "cuda:0: settling: SM clock at 1400 MHz, steady is 1500 MHz");
}

}  // namespace
}  // namespace pascaline::testing
