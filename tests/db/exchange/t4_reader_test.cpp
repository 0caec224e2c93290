#include <gtest/gtest.h>

#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::refusal;
using testing::t4_sample;

RecordedSpace parse_t4_sample(const json& document) { return parse_recorded_space(document.dump(), "results.json"); }

std::string refusal_of(const std::string& pointer, const json& value) {
  json document = t4_sample();
  document[json::json_pointer(pointer)] = value;
  return refusal(document.dump());
}

TEST(T4Results, EveryInvalidityIsRead) {
  const RecordedSpace space = parse_t4_sample(t4_sample());
  EXPECT_EQ(space.format, "t4");
  EXPECT_EQ(space.name, "results");
  ASSERT_EQ(space.parameters.size(), 2U);
  EXPECT_EQ(space.parameters[0].values, (std::vector<Value>{std::int64_t{11}, std::int64_t{12}, std::int64_t{13},
                                                            std::int64_t{14}, std::int64_t{15}, std::int64_t{16}}));
  std::vector<TrialStatus> statuses;
  for (const RecordedTrial& trial : space.trials) {
    statuses.push_back(trial.status);
  }
  EXPECT_EQ(statuses,
            (std::vector<TrialStatus>{TrialStatus::ok, TrialStatus::compile_failed, TrialStatus::launch_failed,
                                      TrialStatus::wrong_result, TrialStatus::rejected, TrialStatus::timed_out}));
  EXPECT_EQ(space.trials[0].indices, (std::vector<std::uint16_t>{5, 0}));
  EXPECT_EQ(space.trials[5].indices, (std::vector<std::uint16_t>{0, 0}));
}

TEST(T4Results, TimesAreRead) {
  const RecordedTrial trial = parse_t4_sample(t4_sample()).trials[0];
  EXPECT_EQ(trial.time_us, 2250);
  EXPECT_EQ(trial.samples_us, (std::vector<double>{2000, 3000}));
  EXPECT_EQ(trial.compile_ms, 10.5);
  EXPECT_EQ(trial.verify_ms, 1);
  EXPECT_EQ(trial.measure_ms, 3.5);
  EXPECT_EQ(trial.framework_ms, 0.25);
  EXPECT_EQ(trial.search_ms, 0.125);
  EXPECT_EQ(trial.started_unix_ms, 1703238828000);
}

TEST(T4Results, WithoutAMeasurementTheMeanOfTheRuntimesCounts) {
  json document = t4_sample();
  document["results"][0].erase("measurements");
  EXPECT_EQ(parse_t4_sample(document).trials[0].time_us, 2500);
  document = t4_sample();
  document["results"][0]["objectives"] = {"GFLOP/s"};  // no time; the measurement named time is
  EXPECT_EQ(parse_t4_sample(document).trials[0].time_us, 2250);
  document["results"][0]["measurements"].erase(1);
  EXPECT_EQ(parse_t4_sample(document).trials[0].time_us, 2500);
  document["results"][0]["times"].erase("runtimes");
  EXPECT_EQ(refusal(document.dump()),
            "sample:/results/0: a correct result has neither a measurement of its objective nor runtimes");
}

TEST(T4Results, UnitsAndBothCompilationFieldsAreKnown) {
  for (const auto& [unit, factor] : std::vector<std::pair<std::string, double>>{
           {"miliseconds", 1}, {"milliseconds", 1}, {"microseconds", 0.001}, {"seconds", 1000}}) {
    json document = t4_sample();
    document["metadata"]["timeunit"] = unit;
    const RecordedTrial trial = parse_t4_sample(document).trials[0];
    EXPECT_DOUBLE_EQ(trial.time_us, 2250 * factor) << unit;
    EXPECT_DOUBLE_EQ(trial.samples_us[1], 3000 * factor) << unit;
    EXPECT_DOUBLE_EQ(trial.compile_ms, 10.5 * factor) << unit;
  }
  json document = t4_sample();
  document["results"][0]["times"]["compilation_time"] = 11.5;
  document["results"][0]["times"].erase("compilation");
  document["results"][0]["measurements"][1]["unit"] = "us";
  document.erase("metadata");
  EXPECT_EQ(parse_t4_sample(document).trials[0].compile_ms, 11.5);
  EXPECT_EQ(parse_t4_sample(document).trials[0].time_us, 2.25);
}

TEST(T4Results, TheReasonOfAFailureIsItsMeasurementsText) {
  json document = t4_sample();
  document["results"][2]["measurements"] = {{{"name", "time"}, {"value", "RuntimeFailedConfig"}, {"unit", ""}}};
  EXPECT_EQ(parse_t4_sample(document).trials[2].reason, "RuntimeFailedConfig");
}

TEST(T4Results, TheSameResultAgainIsOneTrial) {
  json document = t4_sample();
  document["results"].push_back(document["results"][0]);
  EXPECT_EQ(parse_t4_sample(document).trials.size(), 6U);
  document["results"][6]["measurements"][1]["value"] = 2.5;
  EXPECT_EQ(refusal(document.dump()),
            "sample:/results/6: duplicate of /results/0, with a different result (2250 us there, 2500 us "
            "here)");
}

TEST(T4Results, BadDocumentsAreRefusedWithTheirPlace) {
  EXPECT_EQ(refusal_of("/schema_version", "2.0.0"),
            "sample:/schema_version: version '2.0.0' of T4 results is unknown; known is 1.x.x");
  EXPECT_EQ(refusal_of("/schema_version", "1.0"),
            "sample:/schema_version: version '1.0' of T4 results is unknown; known is 1.x.x");
  EXPECT_EQ(refusal_of("/schema_version", 1), "sample:/schema_version: expected text, found number");
  EXPECT_EQ(refusal_of("/metadata/timeunit", "hours"),
            "sample:/metadata/timeunit: unknown unit 'hours'; known are milliseconds, microseconds and seconds");
  EXPECT_EQ(refusal_of("/results", json::array()), "sample:/results: there is no result");
  EXPECT_EQ(refusal_of("/results", 3), "sample:/results: expected an array, found number");
  EXPECT_EQ(refusal_of("/results/1/configuration/z", 3),
            "sample:/results/1/configuration/z: the first result has no such parameter");
  EXPECT_EQ(refusal_of("/results/1/configuration", json{{"x", 3}}),
            "sample:/results/1/configuration: the parameter 'y' of the first result is missing");
  EXPECT_EQ(refusal_of("/results/0/configuration", json::object()),
            "sample:/results/0/configuration: expected an object of parameters");
  EXPECT_EQ(refusal_of("/results/1/configuration/x", nullptr),
            "sample:/results/1/configuration/x: expected a number, boolean or text as a parameter's value, found null");
  EXPECT_EQ(
      refusal_of("/results/1/invalidity", "crashed"),
      "sample:/results/1/invalidity: 'crashed' is none of timeout, compile, runtime, correctness, constraints and "
      "correct");
  EXPECT_EQ(refusal_of("/results/1/correctness", "no"),
            "sample:/results/1/correctness: expected a number, found string");
  EXPECT_EQ(refusal_of("/results/0/times", 0), "sample:/results/0/times: expected an object, found number");
}

TEST(T4Results, MissingMembersAreNamed) {
  for (const char* key : {"configuration", "times", "invalidity", "correctness"}) {
    json document = t4_sample();
    document["results"][3].erase(key);
    EXPECT_EQ(refusal(document.dump()), std::string("sample:/results/3: the key '") + key + "' is missing");
  }
  json document = t4_sample();
  document.erase("schema_version");
  EXPECT_NE(refusal(document.dump()).find("T4 results ('schema_version' and 'results')"), std::string::npos);
}

TEST(T4Results, AResultWhoseTimeIsNotPositiveIsLeftOut) {
  const std::size_t all = parse_recorded_space(t4_sample().dump(), "sample").trials.size();
  for (const char* place : {"/results/0/measurements/1/value", "/results/0/times/runtimes/1"}) {
    for (const double time : {0.0, -1.0}) {
      json document = t4_sample();
      document[json::json_pointer(place)] = time;
      const RecordedSpace space = parse_recorded_space(document.dump(), "sample");
      EXPECT_EQ(space.trials.size(), all - 1);
      EXPECT_EQ(space.left_out, 1U);
    }
  }
}

TEST(T4Results, ATruncatedFileIsRefusedAtItsEnd) {
  const std::string text = t4_sample().dump();
  EXPECT_EQ(refusal(text.substr(0, text.size() - 1)),
            "sample: not valid JSON at line 1, column " + std::to_string(text.size()));
  for (std::size_t cut = 1; cut < text.size(); cut += 7) {
    (void)refusal(text.substr(0, cut));
  }
}

}  // namespace
}  // namespace pascaline
