#include "runtime/thermal/thermal_state.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/thermal/sensor_trace.hpp"

namespace pascaline::testing {
namespace {

// What a monitor says of a script, looked at every half second: "0 cool, 12.5 hot, …", each state with when it began.
std::string states_of(const std::string& steps, double until_s, const ThermalThresholds& thresholds = {},
                      double period_s = 0.5) {
  const SensorTrace trace = SensorTrace::parse(steps, "script");
  ThermalMonitor monitor(thresholds);
  std::string states = "0 cool";
  std::uint64_t switches = 0;
  for (int i = 0; i * period_s <= until_s; ++i) {
    const double at_s = i * period_s;
    const SensorTrace::Moment moment = trace.at(at_s);
    const ThermalState before = monitor.state();
    const ThermalState state =
        monitor.observe(1000 + at_s, {moment.sensors, moment.processor_c, moment.processor_critical_c});
    if (state != before) {
      states += fmt::format(", {} {}", at_s, name_of(state));
      EXPECT_FALSE(monitor.reason().empty());
      EXPECT_EQ(monitor.switches(), ++switches);
    }
  }
  return states;
}

TEST(ThermalState, NamesThere) {
  EXPECT_EQ(thermal_state_named("throttled"), ThermalState::throttled);
  EXPECT_EQ(name_of(*thermal_state_named("hot")), "hot");
  EXPECT_FALSE(thermal_state_named("warm"));
}

TEST(ThermalState, HeatsUpThrottlesAndRecovers) {
  // 78 °C is hot from 83 − 5 on, 73 °C cool again.
  const std::string script = R"([
    {"at_s": 0, "temperature_c": 50, "temperature_limit_c": 83, "throttle_reasons": 0},
    {"at_s": 10, "temperature_c": 77.5}, {"at_s": 20, "temperature_c": 78},
    {"at_s": 40, "temperature_c": 84, "throttle_reasons": 32},
    {"at_s": 60, "temperature_c": 80, "throttle_reasons": 0},
    {"at_s": 100, "temperature_c": 75}, {"at_s": 140, "temperature_c": 73}])";
  EXPECT_EQ(states_of(script, 200), "0 cool, 21 hot, 41 throttled, 70 hot, 150 cool");
}

// What is told of a script that is looked at every half second: "21 hot: why; 40 no reading of …".
std::string events_of(const std::string& steps, double until_s) {
  const SensorTrace trace = SensorTrace::parse(steps, "script");
  ThermalMonitor monitor;
  std::string told;
  for (double at_s = 0; at_s <= until_s; at_s += 0.5) {
    const SensorTrace::Moment moment = trace.at(at_s);
    monitor.observe(1000 + at_s, {moment.sensors, moment.processor_c, moment.processor_critical_c});
    for (const ThermalEvent& event : monitor.take_events()) {
      told += fmt::format("{}{} {}{}", told.empty() ? "" : "; ", at_s,
                          event.entered ? fmt::format("{}: ", name_of(*event.entered)) : "", event.what);
    }
  }
  return told;
}

TEST(ThermalState, ChangesAndSilentSensorsAreEvents) {
  EXPECT_EQ(events_of(R"([{"at_s": 0, "temperature_c": 82, "temperature_limit_c": 83},
                          {"at_s": 20, "temperature_c": 60}])",
                      60),
            "1 hot: the card is at 82 C, its limit is 83 C; 30 cool: the card is at 60 C, its limit is 83 C");
  EXPECT_EQ(
      events_of(R"([{"at_s": 0, "temperature_c": 82, "temperature_limit_c": 83, "throttle_reasons": 0},
                          {"at_s": 20, "temperature_c": null}, {"at_s": 60, "temperature_c": 50},
                          {"at_s": 80, "temperature_c": null, "throttle_reasons": null},
                          {"at_s": 120, "throttle_reasons": 0, "temperature_c": 50}])",
                200),
      "1 hot: the card is at 82 C, its limit is 83 C; "
      "50 no reading of the card's temperature for 30 s: the other sensors count; "
      "60 the card's temperature is read again; 60 cool: the card is at 50 C, its limit is 83 C; "
      "110 no reading of the card's temperature and the card's throttling for 30 s: no sensor is left, so it is cool; "
      "120 the card's temperature and the card's throttling are read again");
  EXPECT_EQ(events_of(R"([{"at_s": 0, "temperature_c": 82, "temperature_limit_c": 83},
                          {"at_s": 20, "temperature_c": null}])",
                      100),
            "1 hot: the card is at 82 C, its limit is 83 C; 50 cool: no sensor tells the temperature any more");
}

TEST(ThermalState, OfAGreatManyEventsTheLatestAreKept) {
  ThermalThresholds quick;
  quick.rise_s = quick.fall_s = quick.dwell_s = 0;
  ThermalMonitor monitor(quick);
  for (int i = 0; i < 101; ++i) {
    ThermalReading reading;
    reading.card.temperature_limit_c = 83;
    reading.card.temperature_c = i % 2 == 0 ? 82 : 50;
    monitor.observe(i, reading);
  }
  EXPECT_EQ(monitor.switches(), 101U);
  const std::vector<ThermalEvent> events = monitor.take_events();
  ASSERT_EQ(events.size(), ThermalMonitor::kMaxEvents);
  EXPECT_EQ(events.back().entered, ThermalState::hot);
  EXPECT_EQ(events.front().entered, ThermalState::cool);
}

TEST(ThermalState, ASingleReadingChangesNothing) {
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 50, "temperature_limit_c": 83},
                          {"at_s": 10, "temperature_c": 82}, {"at_s": 10.5, "temperature_c": 50}])",
                      60),
            "0 cool");
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 80, "temperature_limit_c": 83},
                          {"at_s": 10, "temperature_c": 50}, {"at_s": 19.5, "temperature_c": 80}])",
                      60),
            "0 cool, 1 hot");
}

TEST(ThermalState, FlappingAroundTheLimitIsOneChange) {
  EXPECT_EQ(states_of(R"({"repeat_s": 4, "steps": [{"at_s": 0, "temperature_c": 79, "temperature_limit_c": 83},
                          {"at_s": 2, "temperature_c": 76}]})",
                      300),
            "0 cool, 1 hot")
      << "76 lies between the marks";
  EXPECT_EQ(states_of(R"({"repeat_s": 8, "steps": [{"at_s": 0, "temperature_c": 79, "temperature_limit_c": 83},
                          {"at_s": 2, "temperature_c": 60}]})",
                      300),
            "0 cool, 1 hot")
      << "never cool for ten seconds on end";
  EXPECT_EQ(states_of(R"({"repeat_s": 1, "steps": [{"at_s": 0, "throttle_reasons": 64},
                          {"at_s": 0.5, "throttle_reasons": 0}]})",
                      300),
            "0 cool")
      << "never throttled for a second on end";
}

TEST(ThermalState, AStateLastsItsTime) {
  ThermalThresholds quick;
  quick.rise_s = quick.fall_s = 0;
  quick.dwell_s = 20;
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 79, "temperature_limit_c": 83}, {"at_s": 1, "temperature_c": 50},
                          {"at_s": 30, "temperature_c": 79}])",
                      60, quick),
            "0 cool, 0 hot, 20 cool, 40 hot");
}

TEST(ThermalState, FallsNoFurtherThanAllReadingsSay) {
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 82, "temperature_limit_c": 83, "throttle_reasons": 8},
                          {"at_s": 20, "throttle_reasons": 0}, {"at_s": 29, "temperature_c": 40}])",
                      60),
            "0 cool, 1 throttled, 30 hot, 40.5 cool");
}

TEST(ThermalState, SensorsThatVanishKeepTheStateForATimeAndThenAreCool) {
  const std::string script = R"([{"at_s": 0, "temperature_c": 80, "temperature_limit_c": 83, "throttle_reasons": 0},
    {"at_s": 20, "temperature_c": null, "temperature_limit_c": null, "throttle_reasons": null}])";
  EXPECT_EQ(states_of(script, 200), "0 cool, 1 hot, 50 cool") << "last heard at 19.5 s";
}

TEST(ThermalState, ATemperatureThatVanishesForAMomentIsNotMissed) {
  EXPECT_EQ(states_of(R"({"repeat_s": 10, "steps": [
      {"at_s": 0, "temperature_c": 80, "temperature_limit_c": 83}, {"at_s": 3, "temperature_c": null}]})",
                      300),
            "0 cool, 1 hot");
}

TEST(ThermalState, OneWitnessThatVanishesLeavesTheOthers) {
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 80, "temperature_limit_c": 83, "throttle_reasons": 0},
                          {"at_s": 20, "temperature_c": null}])",
                      200),
            "0 cool, 1 hot, 60 cool")
      << "30 s after 19.5 s it counts no more, and 10 s later all others have said cool for long enough";
}

TEST(ThermalState, NonsenseIsIgnored) {
  EXPECT_EQ(states_of(R"({"repeat_s": 2, "steps": [{"at_s": 0, "temperature_c": 300, "temperature_limit_c": 83},
                          {"at_s": 1, "temperature_c": -40}]})",
                      200),
            "0 cool");
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 80, "temperature_limit_c": 83},
                          {"at_s": 10, "temperature_c": -40, "temperature_limit_c": 900}])",
                      35),
            "0 cool, 1 hot")
      << "as if it had vanished";
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 80, "processor_c": 250, "processor_critical_c": 100}])", 60),
            "0 cool")
      << "and no limit is known";
}

TEST(ThermalState, ATemperatureThatDoesNotMoveProvesNothingAndThrottlingGivesItAway) {
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 79, "temperature_limit_c": 83, "power_w": 25}])", 3600),
            "0 cool, 1 hot");
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83, "throttle_reasons": 0},
                          {"at_s": 600, "throttle_reasons": 32}])",
                      700),
            "0 cool, 601 throttled");
}

TEST(ThermalState, PowerCountsUnlessItIsToleratedAndIdlingNever) {
  const std::string script = R"([{"at_s": 0, "throttle_reasons": 1}, {"at_s": 10, "throttle_reasons": 4}])";
  EXPECT_EQ(states_of(script, 60), "0 cool, 11 throttled");
  ThermalThresholds tolerant;
  tolerant.power_throttle = false;
  EXPECT_EQ(states_of(script, 60, tolerant), "0 cool");
}

TEST(ThermalState, WithoutReasonsTheClockOfAHotCardTells) {
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83, "sm_clock_mhz": 300,
                           "sm_clock_limit_mhz": 1500}, {"at_s": 20, "temperature_c": 80},
                          {"at_s": 40, "sm_clock_mhz": 1480}])",
                      100),
            "0 cool, 21 throttled, 50 hot")
      << "while it is cool it may idle";
}

TEST(ThermalState, TheProcessorOnTheSameHeatPipeCounts) {
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 60, "temperature_limit_c": 83, "processor_c": 94,
                           "processor_critical_c": 100}, {"at_s": 10, "processor_c": 96},
                          {"at_s": 30, "processor_c": 86}, {"at_s": 50, "processor_c": 84}])",
                      100),
            "0 cool, 11 hot, 60 cool");
}

TEST(ThermalState, ALimitOfTheUsersOwnHoldsWhereItIsLower) {
  ThermalThresholds own;
  own.limit_c = 70;
  const std::string script = R"([{"at_s": 0, "temperature_c": 66, "temperature_limit_c": 83}])";
  EXPECT_EQ(states_of(script, 20), "0 cool");
  EXPECT_EQ(states_of(script, 20, own), "0 cool, 1 hot");
  EXPECT_EQ(states_of(R"([{"at_s": 0, "temperature_c": 66}])", 20, own), "0 cool, 1 hot") << "the card has none";
}

TEST(ThermalState, ASilenceIsNoEvidenceAndTimeThatStepsBackIsPassedOver) {
  ThermalMonitor monitor;
  ThermalReading cool;
  cool.card.temperature_limit_c = 83;
  cool.card.temperature_c = 50;
  ThermalReading hot = cool;
  hot.card.temperature_c = 82;
  EXPECT_EQ(monitor.observe(100, hot), ThermalState::cool);
  EXPECT_EQ(monitor.observe(50, cool), ThermalState::cool);
  EXPECT_EQ(monitor.observe(101, hot), ThermalState::hot);
  EXPECT_EQ(monitor.observe(102, cool), ThermalState::hot);
  EXPECT_EQ(monitor.observe(4000, cool), ThermalState::hot) << "the machine slept";
  EXPECT_EQ(monitor.observe(4004.5, cool), ThermalState::hot);
  EXPECT_EQ(monitor.observe(4009.5, cool), ThermalState::hot);
  EXPECT_EQ(monitor.observe(4010, cool), ThermalState::cool);
}

}  // namespace
}  // namespace pascaline::testing
