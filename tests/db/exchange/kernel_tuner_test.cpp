#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

using testing::kernel_tuner_sample;
using testing::refusal;
using testing::with;

RecordedSpace parse_cache(const std::string& text) { return parse_recorded_space(text, "folder/stencil_card.json.gz"); }

TEST(KernelTunerCache, EverythingOfAFileIsRead) {
  const RecordedSpace space = parse_cache(kernel_tuner_sample());
  EXPECT_EQ(space.name, "stencil_card");
  EXPECT_EQ(space.format, "kernel_tuner");
  EXPECT_EQ(space.kernel, "stencil");
  EXPECT_EQ(space.device, "A card");
  EXPECT_EQ(space.problem_size, "[64,32]");
  ASSERT_EQ(space.parameters.size(), 4U);
  EXPECT_EQ(space.parameters[0].name, "x");
  EXPECT_EQ(space.parameters[0].values, (std::vector<Value>{std::int64_t{4}, std::int64_t{2}, std::int64_t{1}}));
  EXPECT_EQ(space.parameters[1].values, (std::vector<Value>{true, false}));
  EXPECT_EQ(space.parameters[2].values, (std::vector<Value>{0.5, std::int64_t{1}}));
  EXPECT_EQ(space.parameters[3].values, (std::vector<Value>{std::string("row"), std::string("col")}));
  ASSERT_EQ(space.trials.size(), 4U);
  const RecordedTrial& first = space.trials[0];
  EXPECT_EQ(first.indices, (std::vector<std::uint16_t>{2, 0, 0, 0}));
  EXPECT_EQ(first.status, TrialStatus::ok);
  EXPECT_EQ(first.time_us, 2500);
  EXPECT_EQ(first.samples_us, (std::vector<double>{2000, 3000}));
  EXPECT_EQ(first.compile_ms, 100.5);
  EXPECT_EQ(first.verify_ms, 1.5);
  EXPECT_EQ(first.measure_ms, 20.25);
  EXPECT_EQ(first.framework_ms, 0.5);
  EXPECT_EQ(first.search_ms, 4);
  EXPECT_EQ(first.cost_ms(), 122.75);
  EXPECT_EQ(first.started_unix_ms, 1703238828691);
}

TEST(KernelTunerCache, AFailureAndItsTimestampAreRead) {
  const RecordedSpace space = parse_cache(kernel_tuner_sample());
  const auto failed = std::find_if(space.trials.begin(), space.trials.end(),
                                   [](const RecordedTrial& trial) { return trial.status != TrialStatus::ok; });
  ASSERT_NE(failed, space.trials.end());
  EXPECT_EQ(failed->status, TrialStatus::compile_failed);
  EXPECT_EQ(failed->reason, "CompilationFailedConfig");
  EXPECT_EQ(failed->time_us, 0);
  EXPECT_EQ(failed->started_unix_ms, 1703238829000);
}

TEST(KernelTunerCache, EveryKindOfFailureIsKnown) {
  const std::vector<std::tuple<std::string, TrialStatus, std::string>> kinds{
      {R"("InvalidConfig")", TrialStatus::rejected, "InvalidConfig"},
      {R"("RuntimeFailedConfig")", TrialStatus::launch_failed, "RuntimeFailedConfig"},
      {"1e20", TrialStatus::launch_failed, "the time is 1e20"},
      {"1e+20", TrialStatus::launch_failed, "the time is 1e20"},
      {"100000000000000000000", TrialStatus::launch_failed, "the time is 1e20"},
      {R"({"__error__": "InvalidConfig"})", TrialStatus::rejected, "InvalidConfig"},
      {R"("ErrorConfig", "__error__": "RuntimeFailedConfig")", TrialStatus::launch_failed, "RuntimeFailedConfig"},
      {R"(3, "__error__": "InvalidConfig: too much\nmore")", TrialStatus::rejected, "InvalidConfig: too much"},
      {R"(null, "__error__": "Something new")", TrialStatus::launch_failed, "Something new"}};
  for (const auto& [written_time, status, reason] : kinds) {
    const RecordedSpace space =
        parse_cache(with(kernel_tuner_sample(), R"("time": 0.75)", "\"time\": " + written_time));
    const RecordedTrial& last = space.trials.back();
    EXPECT_EQ(last.status, status) << written_time;
    EXPECT_EQ(last.reason, reason) << written_time;
    EXPECT_EQ(last.time_us, 0) << written_time;
  }
}

TEST(KernelTunerCache, AnEntryWhoseTimeIsNotPositiveIsLeftOut) {
  const std::string whole = kernel_tuner_sample();
  std::vector<std::pair<std::string, std::string>> cases{{"[2.0, 3.0]", "[2.0, NaN]"}, {"[2.0, 3.0]", "[0.0, 3.0]"}};
  cases.emplace_back("[2.0, 3.0]", "[2.0, 1e400]");
  cases.emplace_back("[2.0, 3.0]", "7");
  cases.emplace_back("[2.0, 3.0]", "[2.0, \"x\"]");
  cases.emplace_back(R"("time": 0.75)", R"("other": 0.75)");
  for (const char* time : {"0", "0.0", "-0.5", "NaN", "Infinity", "-Infinity", "null", "1e400", "-1e400", "1.8e308",
                           "2.5E+999", "\"NaN\"", "\"Infinity\"", "\"inf\"", "\"0.75\"", "\"\"", "true", "[]", "{}"}) {
    cases.emplace_back(R"("time": 0.75)", std::string("\"time\": ") + time);
  }
  cases.emplace_back(R"("time": 0.75)", "\"time\": 1" + std::string(400, '0'));
  for (const auto& [from, to] : cases) {
    const RecordedSpace space = parse_cache(with(whole, from, to));
    EXPECT_EQ(space.trials.size(), 3U) << to;
    EXPECT_EQ(space.left_out, 1U) << to;
  }
  EXPECT_EQ(parse_cache(whole).left_out, 0U);
  EXPECT_EQ(refusal(R"({"tune_params_keys": ["x"], "tune_params": {"x": [1]}, "cache": {"1": {"x": 1, "time": 0.0}}})"),
            "sample:/cache: 1 configuration, of which none has a positive time");
}

TEST(KernelTunerCache, AnInterruptedRunsFileCountsUpToItsLastWholeEntry) {
  const std::string whole = kernel_tuner_sample();
  const std::size_t first = whole.find("\"1,True");
  const std::size_t end_of_first = whole.find("},", first) + 1;
  const std::size_t last_brace = whole.rfind('}');
  // Cut off anywhere, the file is an error before the first whole entry, and readable from there on.
  for (std::size_t cut = whole.find("tune_params_keys") + 20; cut < last_brace; ++cut) {
    const std::string text = whole.substr(0, cut);
    if (cut < end_of_first) {
      (void)refusal(text);
    } else {
      const RecordedSpace space = parse_cache(text);
      const auto entries = static_cast<std::size_t>(1 + (cut > whole.find("},\n\"2,False")) +
                                                    (cut > whole.find("},\n\"4,False")) + (cut > whole.rfind("}}")));
      ASSERT_EQ(space.trials.size(), entries) << "cut at " << cut;
    }
  }
  EXPECT_EQ(refusal(whole.substr(0, first)), "sample:/cache: it has no complete configuration");
}

TEST(KernelTunerCache, ATailAsKernelTunerLeavesItIsRead) {
  const std::string whole = kernel_tuner_sample();
  EXPECT_EQ(parse_cache(whole.substr(0, whole.rfind("}}")) + "},\n").trials.size(), 4U);
  EXPECT_EQ(parse_cache(with(whole, R"("device_name": "A card")", R"("device_name": "")")).device, "");
}

TEST(KernelTunerCache, TimesBeyondBeliefAreLeftOut) {
  const std::string whole = kernel_tuner_sample();
  for (const std::string& cache :
       {with(whole, "\"time\": 0.75", "\"time\": 2e12"), with(whole, "[2.0, 3.0]", "[2.0, 2e12]")}) {
    EXPECT_EQ(parse_cache(cache).left_out, 1U);
  }
  EXPECT_EQ(parse_cache(with(whole, "\"compile_time\": 50", "\"compile_time\": 2e15")).trials.size(), 4U)
      << "a cost is then not known";
}

TEST(KernelTunerCache, BadFilesAreRefusedWithTheirPlace) {
  const std::string whole = kernel_tuner_sample();
  const std::vector<std::tuple<std::string, std::string, std::string>> cases{
      {R"({"x": 4, "opt")", R"({"y": 4, "opt")", "sample:/cache/4,False,1,col: the parameter 'x' is missing"},
      {R"("x": [4, 2, 1])", R"("x": [2, 1])",
       "sample:/cache/4,False,1,col: '4' is not among the values of the parameter 'x'"},
      {R"("x": [4, 2, 1], )", "", "sample:/tune_params: the key 'x' is missing"},
      {R"("x": [4, 2, 1])", R"("x": [])", "sample:/tune_params/x: a parameter needs a value"},
      {R"("x": [4, 2, 1])", R"("x": [[4], 2, 1])",
       "sample:/tune_params/x/0: expected a number, boolean or text as a parameter's value, found array"},
      {R"("x": [4, 2, 1])", R"("x": [NaN, 2, 1])", "sample:/tune_params/x/0: NaN cannot be a parameter's value"},
      {R"("x": [4, 2, 1])", R"("x": [4, 2, 1], "z": [1])",
       "sample:/tune_params/z: this parameter is not among tune_params_keys"},
      {R"(["x", "opt")", R"(["x", "x", "opt")", "sample:/tune_params_keys/1: the parameter 'x' is a duplicate"},
      {R"(["x", "opt", "scale", "layout"])", "[]", "sample:/tune_params_keys: there is no parameter"},
      {R"(["x", "opt", "scale", "layout"])", "\"x\"", "sample:/tune_params_keys: expected an array, found string"},
      {R"("4,False,1,col")", R"("4,True,1,col")",
       "sample:/cache/4,True,1,col: the entry's key is not its parameters' values in the order of tune_params_keys"},
      {R"("4,False,1,col")", R"("4,False,1,col,3")",
       "sample:/cache/4,False,1,col,3: the entry's key is not its parameters' values in the order of tune_params_keys"},
      {R"("4,False,1,col": {"x": 4)", R"("2,False,1,col": {"x": 2)",
       "sample:/cache/2,False,1,col: this key is a duplicate"},
      {R"("4,False,1,col": {"x": 4)", R"("2,False,1.0,col": {"x": 2)",
       "sample:/cache/2,False,1.0,col: duplicate of /cache/2,False,1,col, with a different result (1250 "
       "us "
       "there, 750 us here)"},
      {R"("objective": "time",)", R"("objective" "time",)", "sample: not valid JSON at line 7, column 18"},
      {R"("objective": "time",)", R"("schema_version": "2.0.0",)",
       "sample:/schema_version: version 2.0.0 of Kernel Tuner's cache is unknown; known is 1.x"},
      {R"("device_name": "A card")", R"("device_name": 5)", "sample:/device_name: expected text, found number"},
  };
  for (const auto& [from, to, message] : cases) {
    EXPECT_EQ(refusal(with(whole, from, to)), message) << to;
  }
}

TEST(KernelTunerCache, TheCacheMustBeAnObjectOfObjects) {
  const std::string whole = kernel_tuner_sample();
  const std::string head = whole.substr(0, whole.find("\"cache\""));
  EXPECT_EQ(refusal(head + R"("cache": [] })"), "sample:/cache: expected an object of configurations, found array");
  EXPECT_EQ(refusal(head + R"("cache": {"1": 2} })"), "sample:/cache/1: expected an object, found number");
  EXPECT_EQ(refusal(head + R"("cache": {} })"), "sample:/cache: it has no complete configuration");
  EXPECT_EQ(refusal(head + R"("caches": {} })"), "sample: the key 'cache' is missing");
}

}  // namespace
}  // namespace pascaline
