#include "tuner/sweep/sweep_view.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <nlohmann/json.hpp>

namespace pascaline::testing {
namespace {

using Json = nlohmann::json;

DeviceProgress full_progress() {
  const PlaceInPlan place{3, 12};
  const CardReadings card{61.5, 1980.0, 210.0};
  const GovernorProgress governor{"settling", "throttled"};
  return {"cuda:1", "NVIDIA H200", "M=512,N=2048", "prefill: q", place,    "search",     42,
          100,      12.31,         20.1,           card,         governor, "on battery", {{{"M=4", 2.5}}, 3}};
}

SweepView full_sweep() {
  SweepView sweep{{},      {full_progress(), {}}, 8,      16, 3, 12, 751.5, 2410.0, 3600.0, 4,
                  {"M=1"}, {"M=2: no trial"},     {"M=3"}};
  for_each_count(sweep, [next = 152](const TrialCount&, std::int64_t& number) mutable { number = next--; });
  return sweep;
}

TEST(SweepViewTest, ComesBackAsItWas) {
  EXPECT_EQ(Json(full_progress()).get<DeviceProgress>(), full_progress());
  EXPECT_EQ(Json::parse(Json(full_sweep()).dump()).get<SweepView>(), full_sweep());
  EXPECT_EQ(Json::parse(Json(SweepView{}).dump()).get<SweepView>(), SweepView{});
}

TEST(SweepViewTest, EveryMemberIsWritten) {
  const Json device = full_progress();
  for (const auto& [key, value] : device.items()) {
    EXPECT_NE(value, Json(DeviceProgress{}).at(key)) << key;
    Json without = device;
    without.erase(key);
    EXPECT_NE(without.get<DeviceProgress>(), full_progress()) << key;
  }
  EXPECT_EQ(device.size(), 18U);
  const Json sweep = full_sweep();
  for (const auto& [key, value] : sweep.items()) {
    Json without = sweep;
    without.erase(key);
    EXPECT_NE(without.get<SweepView>(), full_sweep()) << key;
  }
  EXPECT_EQ(sweep.size(), 12U + kTrialCounts.size());
}

TEST(SweepViewTest, ReadsWhatOthersWrote) {
  EXPECT_EQ(Json::object().get<DeviceProgress>(), DeviceProgress{});
  EXPECT_EQ(Json::object().get<SweepView>(), SweepView{});
  EXPECT_EQ(Json("text").get<SweepView>(), SweepView{});
  const Json strange{
      {"trials", "many"}, {"ok", 1e99},
      {"compiling", -1},  {"problems", 2.5},
      {"eta_s", "soon"},  {"devices", {1, {{"device", 7}, {"stage", "orbiting"}, {"done", 1LL << 40}, {"best_us", 2}}}},
      {"colour", "blue"}};
  const SweepView read = Json::parse(strange.dump()).get<SweepView>();
  SweepView expected;
  expected.devices.resize(2);
  expected.devices[1].stage = "orbiting";
  expected.devices[1].best_us = 2;
  EXPECT_EQ(read, expected);
}

TEST(SweepViewTest, NumbersThatAreNoneBecomeMissing) {
  SweepView sweep = full_sweep();
  sweep.eta_s = std::numeric_limits<double>::infinity();
  sweep.devices[0].card.power_w = std::numeric_limits<double>::quiet_NaN();
  const SweepView read = Json::parse(Json(sweep).dump()).get<SweepView>();
  EXPECT_FALSE(read.eta_s);
  EXPECT_FALSE(read.devices[0].card.power_w);
}

TEST(SweepViewTest, ProgressOfASessionHoldsItsDeviceAndTheWhole) {
  const std::string text = session_progress_text(full_progress(), full_sweep());
  EXPECT_FALSE(Json::parse(text)["sweep"].contains("devices"));
  SweepView expected = full_sweep();
  expected.devices = {full_progress()};
  EXPECT_EQ(read_session_progress(text), expected);
}

TEST(SweepViewTest, ProgressThatIsNone) {
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"other\": 1}"}) {
    EXPECT_FALSE(read_session_progress(text)) << text;
  }
  EXPECT_EQ(read_session_progress("{\"sweep\": {\"trials\": 3}}").value().trials, 3);
  EXPECT_EQ(read_session_progress("{\"device\": 3}").value().devices.size(), 1U);
}

TEST(SweepViewTest, ProgressWithBytesThatAreNoText) {
  DeviceProgress device = full_progress();
  device.name = "H\xff\xfe";
  EXPECT_EQ(read_session_progress(session_progress_text(device, {})).value().devices[0].name,
            "H\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace pascaline::testing
