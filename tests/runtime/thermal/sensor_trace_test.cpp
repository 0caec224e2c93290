#include "runtime/thermal/sensor_trace.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/core/util/message_of.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

std::string error_of(const std::string& text) {
  return message_of<SpaceError>([&] { std::ignore = SensorTrace::parse(text, "trace.json"); });
}

TEST(SensorTrace, ValuesHoldUntilTheyChangeOrVanish) {
  const SensorTrace trace = SensorTrace::parse(R"({"steps": [
    {"at_s": 1, "temperature_c": 45, "temperature_limit_c": 83, "sm_clock_mhz": 1500, "power_w": 90,
     "memory_clock_mhz": 5005, "throttle_reasons": 4},
    {"at_s": 2.5, "temperature_c": 50, "canary_scale": 1.25},
    {"at_s": 3, "sm_clock_mhz": null, "throttle_reasons": null, "canary_scale": null, "canary_us": 80}]})",
                                               "trace.json");
  EXPECT_FALSE(trace.at(0.5).sensors.temperature_c);
  EXPECT_EQ(trace.at(0.5).canary_scale, 1);
  const SensorTrace::Moment first = trace.at(1);
  EXPECT_EQ(first.sensors.temperature_c, 45);
  EXPECT_EQ(first.sensors.temperature_limit_c, 83);
  EXPECT_EQ(first.sensors.memory_clock_mhz, 5005);
  EXPECT_EQ(first.sensors.throttle_reasons, 4U);
  const SensorTrace::Moment second = trace.at(2.5);
  EXPECT_EQ(second.sensors.temperature_c, 50);
  EXPECT_EQ(second.sensors.sm_clock_mhz, 1500);
  EXPECT_EQ(second.canary_scale, 1.25);
  EXPECT_FALSE(second.canary_us);
  const SensorTrace::Moment last = trace.at(1e6);
  EXPECT_EQ(last.sensors.power_w, 90);
  EXPECT_FALSE(last.sensors.sm_clock_mhz);
  EXPECT_FALSE(last.sensors.throttle_reasons);
  EXPECT_EQ(last.canary_scale, 1);
  EXPECT_EQ(last.canary_us, 80);
}

TEST(SensorTrace, RepeatsFromItsBeginning) {
  const SensorTrace trace = SensorTrace::parse(
      R"({"repeat_s": 10, "steps": [{"at_s": 0, "power_w": 1}, {"at_s": 4, "power_w": 2, "temperature_c": 50}]})", "");
  EXPECT_EQ(trace.at(9.9).sensors.power_w, 2);
  EXPECT_EQ(trace.at(10).sensors.power_w, 1);
  EXPECT_FALSE(trace.at(13).sensors.temperature_c) << "from the start again";
  EXPECT_EQ(trace.at(34.5).sensors.power_w, 2);
}

TEST(SensorTrace, HasTheProcessorAndTheHighestClock) {
  const SensorTrace trace = SensorTrace::parse(R"([{"at_s": 0, "processor_c": 71, "processor_critical_c": 100,
    "sm_clock_limit_mhz": 1600}, {"at_s": 1, "processor_c": null}])",
                                               "");
  EXPECT_EQ(trace.at(0).processor_c, 71);
  EXPECT_EQ(trace.at(0).sensors.sm_clock_limit_mhz, 1600);
  EXPECT_FALSE(trace.at(1).processor_c);
  EXPECT_EQ(trace.at(1).processor_critical_c, 100);
}

TEST(SensorTrace, AListAloneIsAScript) {
  EXPECT_EQ(SensorTrace::parse(R"([{"at_s": 0, "power_w": 7}])", "").at(0).sensors.power_w, 7);
}

TEST(SensorTrace, ErrorsNameThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"([{"at_s": 0)", "trace.json: not valid JSON at line 1"},
      {R"(7)", "trace.json: expected an object"},
      {R"({"repeat_s": 7})", "trace.json: the key 'steps' is missing"},
      {R"([])", "trace.json: expected at least one step"},
      {R"({"steps": [{"power_w": 7}]})", "trace.json:/steps/0: the key 'at_s' is missing"},
      {R"([{"at_s": -1}])", "trace.json:/0/at_s: "},
      {R"([{"at_s": 1}, {"at_s": 1}])", "trace.json:/1/at_s: "},
      {R"([{"at_s": 1, "temperature": 50}])", "trace.json:/0: unknown key 'temperature'"},
      {R"([{"at_s": 1, "temperature_c": "hot"}])", "trace.json:/0/temperature_c: "},
      {R"([{"at_s": 1, "throttle_reasons": -4}])", "trace.json:/0/throttle_reasons: "},
      {R"([{"at_s": 1, "canary_scale": 0}])", "trace.json:/0/canary_scale: "},
      {R"({"steps": [{"at_s": 5}], "repeat_s": 5})", "trace.json:/repeat_s: "},
      {R"({"steps": [{"at_s": 5}], "loop": true})", "trace.json: unknown key 'loop'"},
  };
  for (const auto& [text, start] : cases) {
    EXPECT_EQ(error_of(text).rfind(start, 0), 0U) << text << " gives " << error_of(text);
  }
}

TEST(SensorTrace, LoadsFilesAndNamesThoseItCannot) {
  const TemporaryFolder folder;
  try {
    std::ignore = SensorTrace::load(folder / "none.json");
    FAIL();
  } catch (const SpaceError& error) {
    EXPECT_NE(std::string(error.what()).find("none.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace pascaline::testing
