#include "db/exchange/write.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::expect_same_space;

// One trial of each status, with everything that a file can keep.
RecordedSpace every_status() {
  RecordedSpace space;
  space.kernel = "stencil";
  space.device = "A card";
  space.problem_size = "N=64";
  space.parameters = {{"x", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, std::int64_t{8}}},
                      {"mode", {std::string("a, \"b\""), std::string("=1+1")}},
                      {"on", {true, false}},
                      {"scale", {0.5, 1.0}}};
  std::uint16_t next = 0;
  for (const TrialStatus status :
       {TrialStatus::ok, TrialStatus::rejected, TrialStatus::compile_failed, TrialStatus::launch_failed,
        TrialStatus::wrong_result, TrialStatus::timed_out, TrialStatus::crashed}) {
    RecordedTrial& trial = space.trials.emplace_back();
    trial.status = status;
    trial.indices = {static_cast<std::uint16_t>(next % 4), static_cast<std::uint16_t>(next / 4),
                     static_cast<std::uint16_t>(next % 2), static_cast<std::uint16_t>(next / 2 % 2)};
    trial.compile_ms = 812.5 + next;
    trial.verify_ms = 0.1;
    trial.measure_ms = 41.3;
    trial.framework_ms = 2.25;
    trial.search_ms = 0.75;
    trial.started_unix_ms = 1'700'000'000'123 + next++;
    if (status == TrialStatus::ok) {
      trial.time_us = 2500.5;
      trial.samples_us = {2499.75, 2501.25};
    } else {
      trial.reason = status == TrialStatus::timed_out ? "" : "a \"reason\" of its own";
    }
  }
  return space;
}

TEST(T4Json, GivesTheSameSpaceBack) {
  const RecordedSpace space = every_status();
  const RecordedSpace again = parse_recorded_space(t4_json(space), "again");
  expect_same_space(space, again);
  EXPECT_EQ(again.kernel, space.kernel);
  EXPECT_EQ(again.device, space.device);
  EXPECT_EQ(again.problem_size, space.problem_size);
}

TEST(T4Json, HasWhatTheFormatRequires) {
  const json document = json::parse(t4_json(every_status()));
  EXPECT_EQ(document["schema_version"], "1.0.0");
  EXPECT_EQ(document["metadata"]["timeunit"], "milliseconds");
  ASSERT_EQ(document["results"].size(), 7U);
  std::vector<std::string> words;
  for (const json& result : document["results"]) {
    words.push_back(result.at("invalidity"));
    EXPECT_EQ(result.at("correctness"), words.size() == 1 ? 1 : 0);
    EXPECT_EQ(result.at("times").at("compilation"), result.at("times").at("compilation_time"));
    EXPECT_EQ(result.at("objectives"), json::array({"time"}));
    EXPECT_EQ(result.at("measurements").at(0).at("name"), "time");
    EXPECT_TRUE(result.at("configuration").at("on").is_boolean());
  }
  EXPECT_EQ(words, (std::vector<std::string>{"correct", "constraints", "compile", "runtime", "correctness", "timeout",
                                             "runtime"}));
  EXPECT_EQ(document["results"][0]["measurements"][0]["value"], 2.5005);
  EXPECT_EQ(document["results"][0]["times"]["runtimes"], json::array({2.49975, 2.50125}));
  EXPECT_EQ(document["results"][2]["measurements"][0]["value"], "CompilationFailedConfig");
  EXPECT_EQ(document["results"][0]["timestamp"], "2023-11-14 22:13:20.123000+00:00");
}

TEST(T4Json, TimesComeBackWithinTheirLastDigit) {
  RecordedSpace space = every_status();
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> times(4, 4);
  for (int i = 0; i < 2000; ++i) {
    space.trials[0].time_us = times(random);
    space.trials[0].samples_us = {times(random)};
    const RecordedTrial again = parse_recorded_space(t4_json(space), "again").trials[0];
    ASSERT_DOUBLE_EQ(again.time_us, space.trials[0].time_us);
    ASSERT_DOUBLE_EQ(again.samples_us[0], space.trials[0].samples_us[0]);
  }
}

TEST(T4Json, TextThatIsNotUtf8DoesNotStopIt) {
  RecordedSpace space = every_status();
  space.trials[2].reason = "broken \xff text";
  EXPECT_EQ(parse_recorded_space(t4_json(space), "again").trials[2].status, TrialStatus::compile_failed);
}

TEST(RecordedCsvText, GivesTheSameOutcomesBack) {
  const RecordedSpace space = every_status();
  const RecordedSpace again = parse_recorded_space(recorded_csv(space), "again");
  ASSERT_EQ(again.trials.size(), space.trials.size());
  for (std::size_t i = 0; i < space.trials.size(); ++i) {
    EXPECT_EQ(again.config(again.trials[i]).text(), space.config(space.trials[i]).text());
    EXPECT_EQ(again.trials[i].status, space.trials[i].status);
    EXPECT_DOUBLE_EQ(again.trials[i].time_us, space.trials[i].time_us);
    EXPECT_DOUBLE_EQ(again.trials[i].cost_ms(), space.trials[i].cost_ms());
  }
}

TEST(RecordedCsvText, LooksAsItShould) {
  const std::string text = recorded_csv(every_status());
  EXPECT_EQ(text.substr(0, text.find('\n', text.find('\n') + 1)),
            "x,mode,on,scale,time_ms,status,eval_cost_ms\n1,\"a, \"\"b\"\"\",True,0.5,2.5005,ok,856.15");
}

TEST(SharedSpaces, ARecordedSpaceSurvivesBothFormats) {
  const auto folder = testing::shared_fixture("search/kernel_tuner_cache");
  if (!folder) {
    GTEST_SKIP() << "PASCALINE_SHARED_FIXTURES names no folder with recorded spaces: a cache written as T4 results";
  }
  const RecordedSpace cache = read_recorded_space(*folder / "convolution_milo_A4000.json.gz");
  const RecordedSpace again = parse_recorded_space(t4_json(cache), "again");
  expect_same_space(cache, again);
  for (std::size_t i = 0; i < cache.trials.size(); ++i) {
    ASSERT_EQ(cache.trials[i].time_us, again.trials[i].time_us);
  }
  EXPECT_EQ(parse_recorded_space(recorded_csv(cache), "again").trials.size(), cache.trials.size());
}

}  // namespace
}  // namespace pascaline
