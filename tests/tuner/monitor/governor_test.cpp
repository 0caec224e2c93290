#include "tuner/monitor/governor.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace pascaline::testing {
namespace {

/// Drives a governor as a script would: a look every quarter of a second with the card as it is set.
class GovernorTest : public ::testing::Test {
 protected:
  GovernorOptions options_;
  std::optional<Governor> governor_;
  Sensors sensors_;
  std::optional<double> canary_us_ = 100;
  double now_s_ = 1000;  // the clock's zero means nothing

  GovernorTest() {
    sensors_.temperature_c = 60;
    sensors_.temperature_limit_c = 83;
    sensors_.sm_clock_mhz = 1500;
    sensors_.power_w = 90;
    sensors_.throttle_reasons = 0;
  }
  Governor& governor() {
    if (!governor_) {
      governor_.emplace(options_);
    }
    return *governor_;
  }
  GovernorState look() {
    governor().observe(now_s_, sensors_, canary_us_);
    now_s_ += 0.25;
    return governor().state();
  }
  GovernorState look_for(double seconds) {
    for (const double until_s = now_s_ + seconds; now_s_ < until_s;) {
      look();
    }
    return governor().state();
  }
  /// A governor that measures with what the card is like now for reference.
  void start_measuring() {
    options_.preheat_limit_s = 0;
    ASSERT_EQ(look(), GovernorState::measuring);
    ASSERT_EQ(governor().mark(), SampleMark::none);
  }
};

TEST_F(GovernorTest, StatesHaveNames) {
  EXPECT_EQ(name_of(GovernorState::preheating), "preheating");
  EXPECT_EQ(name_of(GovernorState::gave_up), "gave_up");
}

TEST_F(GovernorTest, HeatingLastsUntilTemperatureAndCanaryStandStill) {
  EXPECT_EQ(governor().state(), GovernorState::preheating);
  for (double degrees = 40; degrees < 60; degrees += 0.25) {  // a degree a second
    sensors_.temperature_c = degrees;
    ASSERT_EQ(look(), GovernorState::preheating) << degrees;
    EXPECT_FALSE(governor().reason().empty());
  }
  const double still_s = now_s_;
  while (look() == GovernorState::preheating) {
    ASSERT_LT(now_s_ - still_s, 4);
  }
  EXPECT_GE(now_s_ - still_s, 1.5);
  EXPECT_EQ(governor().state(), GovernorState::measuring);
  EXPECT_EQ(governor().reason(), "");
  EXPECT_EQ(governor().steady_canary_us(), 100);
}

TEST_F(GovernorTest, ADriftingCanaryIsNotSteadyThoughTheTemperatureIs) {
  for (double us = 100; us < 130; us += 0.5) {
    canary_us_ = us;
    ASSERT_EQ(look(), GovernorState::preheating) << us;
  }
  EXPECT_EQ(look_for(4), GovernorState::measuring);
}

TEST_F(GovernorTest, WithoutATemperatureTheCanaryAloneDecides) {
  sensors_ = Sensors();
  EXPECT_EQ(look_for(2.5), GovernorState::preheating);
  EXPECT_EQ(look_for(1), GovernorState::measuring);
}

TEST_F(GovernorTest, AFlickeringWholeDegreeIsSteady) {
  for (int i = 0; i < 20; ++i) {
    sensors_.temperature_c = 60 + i % 2;
    look();
  }
  EXPECT_EQ(governor().state(), GovernorState::measuring);
}

TEST_F(GovernorTest, PreheatingEndsAtItsLimitWithTheLastReadings) {
  options_.preheat_limit_s = 10;
  const double begin_s = now_s_;
  for (int i = 0; now_s_ - begin_s < 10; ++i) {
    canary_us_ = i % 2 == 0 ? 100 : 110;
    ASSERT_EQ(look(), GovernorState::preheating);
  }
  EXPECT_EQ(look(), GovernorState::measuring);
  EXPECT_GE(governor().steady_canary_us(), 100);
  EXPECT_LE(governor().steady_canary_us(), 110);
}

TEST_F(GovernorTest, WithoutPreheatingTheFirstReadingsAreTheReference) {
  start_measuring();
  sensors_.sm_clock_mhz = 1530;
  EXPECT_EQ(look(), GovernorState::measuring) << "2 % exactly is within";
  sensors_.sm_clock_mhz = 1531;
  EXPECT_EQ(look(), GovernorState::settling);
  EXPECT_EQ(governor().mark(), SampleMark::clock_drift);
  EXPECT_NE(governor().reason().find("1531 MHz"), std::string::npos) << governor().reason();
  sensors_.sm_clock_mhz = 1470;
  EXPECT_EQ(look(), GovernorState::measuring);
}

TEST_F(GovernorTest, ACardThrottledAtTheStartMustSettleFirst) {
  options_.preheat_limit_s = 5;
  sensors_.throttle_reasons = 0x20;
  sensors_.sm_clock_mhz = 800;
  canary_us_ = 190;
  EXPECT_EQ(look_for(4), GovernorState::preheating);
  EXPECT_EQ(look_for(4), GovernorState::settling);
  sensors_.throttle_reasons = 0;
  sensors_.sm_clock_mhz = 1500;
  canary_us_ = 100;
  EXPECT_EQ(look_for(9), GovernorState::settling);
  EXPECT_EQ(look_for(2), GovernorState::measuring);
  EXPECT_EQ(governor().steady_canary_us(), 100);
  EXPECT_EQ(governor().clock_scale(), 1);
}

TEST_F(GovernorTest, ThrottleBitsMarkByTheirKind) {
  start_measuring();
  sensors_.temperature_c = 78;  // warm: of a cool card 0x8 is about its power
  for (const std::uint64_t bit : {0x8U, 0x20U, 0x40U}) {
    sensors_.throttle_reasons = bit;
    EXPECT_EQ(look(), GovernorState::settling) << bit;
    EXPECT_EQ(governor().mark(), SampleMark::thermal_throttle) << bit;
  }
  for (const std::uint64_t bit : {0x4U, 0x80U}) {
    sensors_.throttle_reasons = bit;
    EXPECT_EQ(look(), GovernorState::settling) << bit;
    EXPECT_EQ(governor().mark(), SampleMark::power_throttle) << bit;
  }
  EXPECT_NE(governor().reason().find("power"), std::string::npos);
  for (const std::uint64_t bit : {0x0U, 0x1U, 0x2U, 0x10U, 0x100U}) {
    sensors_.throttle_reasons = bit;
    EXPECT_EQ(look(), GovernorState::measuring) << bit;
    EXPECT_EQ(governor().mark(), SampleMark::none) << bit;
  }
}

TEST_F(GovernorTest, ToleratedBitsAndTheClockUnderThemAreNotJudged) {
  options_.tolerated_throttle = 0x4;
  start_measuring();
  sensors_.throttle_reasons = 0x4;
  sensors_.sm_clock_mhz = 1300;
  EXPECT_EQ(look(), GovernorState::measuring);
  sensors_.throttle_reasons = 0x4 | 0x40;
  EXPECT_EQ(look(), GovernorState::settling);
}

TEST_F(GovernorTest, AnIdleCardsClockIsNoDrift) {
  start_measuring();
  sensors_.sm_clock_mhz = 300;
  sensors_.throttle_reasons = 0x1;
  EXPECT_EQ(look(), GovernorState::measuring);
  sensors_.throttle_reasons = 0;
  EXPECT_EQ(look(), GovernorState::settling);
}

TEST_F(GovernorTest, CoolingHasHysteresisWithExactThresholds) {
  start_measuring();
  const auto at = [&](double degrees) {
    sensors_.temperature_c = degrees;
    return look();
  };
  EXPECT_EQ(at(79.9), GovernorState::measuring);
  EXPECT_EQ(at(80), GovernorState::cooling) << "the limit minus 3";
  EXPECT_EQ(governor().mark(), SampleMark::none) << "it was hot, not slow";
  EXPECT_NE(governor().reason().find("80 C"), std::string::npos) << governor().reason();
  EXPECT_EQ(at(75.1), GovernorState::cooling);
  EXPECT_EQ(at(75), GovernorState::measuring) << "the limit minus 8";
  EXPECT_EQ(at(79), GovernorState::measuring);
}

TEST_F(GovernorTest, TheLowerOfTwoLimitsHolds) {
  options_.limit_c = 70;
  start_measuring();
  sensors_.temperature_c = 67;
  EXPECT_EQ(look(), GovernorState::cooling);
  sensors_.temperature_c = 62;
  EXPECT_EQ(look(), GovernorState::measuring);
  options_.limit_c = 95;
  governor_.reset();
  sensors_.temperature_c = 60;
  start_measuring();
  sensors_.temperature_c = 80;
  EXPECT_EQ(look(), GovernorState::cooling) << "the card's own";
}

TEST_F(GovernorTest, OscillatingClocksNeverBecomeTheSteadyOnes) {
  start_measuring();
  for (int i = 0; i < 400; ++i) {
    sensors_.sm_clock_mhz = i % 8 < 4 ? 1200 : 1000;
    canary_us_ = i % 8 < 4 ? 125 : 150;
    ASSERT_EQ(look(), GovernorState::settling);
    ASSERT_NE(governor().mark(), SampleMark::none);
  }
}

TEST_F(GovernorTest, ANewLevelThatStandsIsAdoptedAndScaled) {
  start_measuring();
  sensors_.sm_clock_mhz = 1200;
  canary_us_ = 125;
  EXPECT_EQ(look_for(10), GovernorState::settling);
  EXPECT_EQ(look_for(0.5), GovernorState::measuring);
  EXPECT_EQ(governor().mark(), SampleMark::none);
  EXPECT_DOUBLE_EQ(governor().clock_scale(), 0.8);
  sensors_.sm_clock_mhz = 1500;
  canary_us_ = 100;
  EXPECT_EQ(look(), GovernorState::settling) << "now the old level is the odd one";
  EXPECT_EQ(look_for(11), GovernorState::measuring);
  EXPECT_EQ(governor().clock_scale(), 1) << "the first steady canary stays the measure";
}

TEST_F(GovernorTest, NoLevelIsAdoptedWhileTooWarm) {
  for (const std::uint64_t bits : {0x20U, 0x40U, 0x8U | 0x40U, 0x4U | 0x20U}) {
    governor_.reset();
    sensors_.throttle_reasons = 0;
    sensors_.sm_clock_mhz = 1500;
    canary_us_ = 100;
    start_measuring();
    sensors_.throttle_reasons = bits;
    sensors_.sm_clock_mhz = 1200;
    canary_us_ = 125;
    EXPECT_EQ(look_for(60), GovernorState::settling) << bits;
    EXPECT_EQ(governor().mark(), SampleMark::thermal_throttle) << bits;
  }
}

TEST_F(GovernorTest, ASteadyClockUnderAPowerCapIsMeasured) {
  for (const std::uint64_t bits : {0x4U, 0x80U, 0x8U | 0x80U, 0x8U}) {  // a cool card's HwSlowdown is its adapter's
    governor_.reset();
    options_.preheat_limit_s = 60;
    sensors_.throttle_reasons = bits;
    sensors_.sm_clock_mhz = 1200;
    canary_us_ = 125;
    EXPECT_EQ(look_for(2), GovernorState::preheating) << bits;
    EXPECT_EQ(look_for(6), GovernorState::settling) << bits;
    EXPECT_NE(governor().reason().find("power"), std::string::npos) << governor().reason();
    EXPECT_EQ(look_for(4), GovernorState::measuring) << bits;
    EXPECT_EQ(governor().mark(), SampleMark::none) << bits;
    EXPECT_NE(governor().reason().find("a power cap holds the card's clock at 1200 MHz"), std::string::npos)
        << governor().reason();
    EXPECT_EQ(governor().clock_scale(), 1) << bits;
    sensors_.sm_clock_mhz = 1100;
    EXPECT_EQ(look(), GovernorState::settling) << "its clock is still looked at";
    EXPECT_EQ(governor().mark(), SampleMark::clock_drift);
    sensors_.sm_clock_mhz = 1200;
    EXPECT_EQ(look(), GovernorState::measuring);
    sensors_.throttle_reasons = bits | 0x40;
    EXPECT_EQ(look(), GovernorState::settling) << "heat is waited for even so";
    EXPECT_EQ(governor().mark(), SampleMark::thermal_throttle);
  }
}

TEST_F(GovernorTest, ACapThatIsReportedOnAndOffIsOne) {
  options_.preheat_limit_s = 0;
  for (int i = 0; i < 60; ++i) {
    sensors_.throttle_reasons = i % 3 == 2 ? 0 : 4;
    look();
  }
  EXPECT_EQ(governor().state(), GovernorState::measuring);
  EXPECT_EQ(governor().mark(), SampleMark::none);
  EXPECT_EQ(look(), GovernorState::measuring);
}

TEST_F(GovernorTest, ACapThatIsLiftedIsForgotten) {
  options_.preheat_limit_s = 0;
  sensors_.throttle_reasons = 0x4;
  sensors_.sm_clock_mhz = 1200;
  canary_us_ = 125;
  EXPECT_EQ(look_for(12), GovernorState::measuring);
  sensors_.throttle_reasons = 0;
  sensors_.sm_clock_mhz = 1500;
  canary_us_ = 100;
  EXPECT_EQ(look(), GovernorState::settling);
  EXPECT_EQ(look_for(11), GovernorState::measuring);
  EXPECT_EQ(governor().reason(), "");
  sensors_.throttle_reasons = 0x4;
  EXPECT_EQ(look(), GovernorState::settling) << "a new cap has to last again";
}

TEST_F(GovernorTest, AnUnsteadyClockUnderAPowerCapIsGivenUpWithAWayOut) {
  options_.pause_limit_s = 60;
  options_.preheat_limit_s = 0;
  sensors_.throttle_reasons = 0x4;
  for (int i = 0; governor().state() != GovernorState::gave_up; ++i) {
    ASSERT_LT(i, 300);
    EXPECT_EQ(governor().remedy(), "");
    sensors_.sm_clock_mhz = i % 8 < 4 ? 1200 : 1000;
    canary_us_ = i % 8 < 4 ? 125 : 150;
    look();
  }
  EXPECT_NE(governor().reason().find("--tolerate power"), std::string::npos) << governor().reason();
  EXPECT_EQ(governor().remedy(), "--tolerate power");
}

TEST_F(GovernorTest, GivingUpNamesTheOptionThatFits) {
  options_.pause_limit_s = 20;
  start_measuring();
  sensors_.throttle_reasons = 0x40;
  EXPECT_EQ(look_for(25), GovernorState::gave_up);
  EXPECT_EQ(governor().remedy(), "--tolerate thermal");
  governor_.reset();
  sensors_.throttle_reasons = 0;
  start_measuring();
  for (int i = 0; i < 100; ++i) {
    sensors_.sm_clock_mhz = i % 2 == 0 ? 1200 : 1000;
    look();
  }
  EXPECT_EQ(governor().remedy(), "--drift 0.05");
  governor_.reset();
  sensors_.sm_clock_mhz = 1500;
  start_measuring();
  sensors_.temperature_c = 90;
  EXPECT_EQ(look_for(25), GovernorState::gave_up);
  EXPECT_EQ(governor().remedy(), "") << "nothing but cooling helps";
}

TEST_F(GovernorTest, ALyingCardIsFoundByItsCanary) {
  start_measuring();
  canary_us_ = 102;
  EXPECT_EQ(look(), GovernorState::measuring) << "2 % exactly is within";
  canary_us_ = 103;
  EXPECT_EQ(look(), GovernorState::settling);
  EXPECT_EQ(governor().mark(), SampleMark::canary_drift);
  EXPECT_TRUE(governor().canary_drifted());
  canary_us_.reset();
  EXPECT_EQ(look(), GovernorState::settling) << "sensors alone do not clear it";
  EXPECT_EQ(governor().mark(), SampleMark::canary_drift);
  canary_us_ = 97;
  EXPECT_EQ(look(), GovernorState::settling) << "faster is drift too";
  canary_us_ = 100;
  EXPECT_EQ(look(), GovernorState::measuring);
}

TEST_F(GovernorTest, StuckSensorsLeaveTheCanary) {
  EXPECT_EQ(look_for(4), GovernorState::measuring);
  canary_us_ = 130;  // everything else as ever
  EXPECT_EQ(look(), GovernorState::settling);
}

TEST_F(GovernorTest, VanishingSensorsLeaveTheRest) {
  start_measuring();
  sensors_.temperature_c = 81;
  EXPECT_EQ(look(), GovernorState::cooling);
  sensors_ = Sensors();
  EXPECT_EQ(look(), GovernorState::measuring) << "nothing says that it is hot";
  canary_us_ = 130;
  EXPECT_EQ(look(), GovernorState::settling);
  canary_us_ = 100;
  EXPECT_EQ(look(), GovernorState::measuring);
  sensors_.temperature_c = 81;
  EXPECT_EQ(look(), GovernorState::cooling) << "the card's limit is remembered";
}

TEST_F(GovernorTest, SensorsThatSpeakUpLaterAreTakenAsTheyAre) {
  sensors_ = Sensors();
  canary_us_.reset();
  start_measuring();
  sensors_.sm_clock_mhz = 1400;
  canary_us_ = 90;
  EXPECT_EQ(look(), GovernorState::measuring);
  sensors_.sm_clock_mhz = 1300;
  EXPECT_EQ(look(), GovernorState::settling);
  sensors_.sm_clock_mhz = 1400;
  canary_us_ = 99;
  EXPECT_EQ(look(), GovernorState::settling);
}

TEST_F(GovernorTest, NonsenseIsIgnored) {
  start_measuring();
  for (const double degrees : {0.0, -5.0, 151.0, 1e9, std::nan("")}) {
    sensors_.temperature_c = degrees;
    EXPECT_EQ(look(), GovernorState::measuring) << degrees;
  }
  sensors_.temperature_c = 60;
  sensors_.temperature_limit_c = 0;
  EXPECT_EQ(look(), GovernorState::measuring) << "a limit of 0 is none";
  sensors_.sm_clock_mhz = 0;
  EXPECT_EQ(look(), GovernorState::measuring);
  canary_us_ = std::nan("");
  EXPECT_EQ(look(), GovernorState::measuring);
  EXPECT_EQ(governor().clock_scale(), 1);
}

TEST_F(GovernorTest, GivesUpWhenItGetsNoBetter) {
  options_.pause_limit_s = 60;
  start_measuring();
  const double begin_s = now_s_;
  sensors_.throttle_reasons = 0x40;
  EXPECT_EQ(look_for(30), GovernorState::settling);
  sensors_.temperature_c = 82;
  EXPECT_EQ(look_for(30), GovernorState::cooling) << "one wait for two reasons";
  while (look() != GovernorState::gave_up) {
    ASSERT_LT(now_s_ - begin_s, 70);
  }
  EXPECT_GT(now_s_ - begin_s, 60);
  EXPECT_EQ(governor().reason().rfind("gave up after 60 s: ", 0), 0U) << governor().reason();
  sensors_.temperature_c = 50;
  sensors_.throttle_reasons = 0;
  EXPECT_EQ(look_for(20), GovernorState::gave_up);
  EXPECT_FALSE(governor().may_measure());
}

TEST_F(GovernorTest, WaitsWithMeasuringBetweenThemDoNotAddUp) {
  options_.pause_limit_s = 20;
  start_measuring();
  for (int i = 0; i < 5; ++i) {
    sensors_.throttle_reasons = 0x40;
    EXPECT_EQ(look_for(15), GovernorState::settling);
    sensors_.throttle_reasons = 0;
    EXPECT_EQ(look(), GovernorState::measuring);
  }
  sensors_.throttle_reasons = 0x40;
  EXPECT_EQ(look(), GovernorState::settling);
  now_s_ += 3600;
  EXPECT_EQ(look(), GovernorState::settling) << "nobody waited in this hour";
}

TEST_F(GovernorTest, ScalesOnlyWhatIsMoreThanNoise) {
  start_measuring();
  canary_us_ = 100.5;
  look();
  EXPECT_EQ(governor().clock_scale(), 1);
  canary_us_ = 100.6;
  look();
  EXPECT_DOUBLE_EQ(governor().clock_scale(), 100 / 100.6);
  EXPECT_DOUBLE_EQ(governor().scale_of(80), 1.25);
}

TEST_F(GovernorTest, PassiveAlwaysMeasures) {
  options_.passive = true;
  EXPECT_EQ(governor().state(), GovernorState::measuring);
  sensors_.temperature_c = 120;
  sensors_.throttle_reasons = 0x48;
  EXPECT_EQ(look_for(2), GovernorState::measuring);
  canary_us_ = 300;
  EXPECT_EQ(look(), GovernorState::measuring);
  EXPECT_EQ(governor().mark(), SampleMark::none);
  EXPECT_EQ(governor().clock_scale(), 1);
  EXPECT_EQ(governor().reason(), "");
}

}  // namespace
}  // namespace pascaline::testing
