#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::refusal;

json clblast_file() {
  return json::parse(R"({"kernel_family": "xgemm_1", "precision": "32", "clblast_device_name": "A card", "arg_m": "512",
    "arg_n": "256", "best_kernel": "Xgemm", "results": [
      {"kernel": "Xgemm", "time": 0.5, "parameters": {"KWG": 16, "MWG": 64}},
      {"kernel": "Xgemm", "time": 0.0, "parameters": {"KWG": 32, "MWG": 64}},
      {"kernel": "Xgemm", "time": 0.25, "parameters": {"KWG": 32, "MWG": 32}}]})");
}

json ktt_file() {
  return json::parse(R"({"Metadata": {"ComputeApi": "CUDA", "Device": "A card", "TimeUnit": "Nanoseconds"}, "Results": [
      {"KernelName": "nbody", "Status": "Ok", "TotalDuration": 2500, "TotalOverhead": 7,
       "Configuration": [{"Name": "WG", "Value": 64}, {"Name": "KIND", "Value": "fast"}], "ComputationResults": []},
      {"KernelName": "nbody", "Status": "ValidationFailed", "TotalDuration": 1,
       "Configuration": [{"Name": "WG", "Value": 128}, {"Name": "KIND", "Value": "fast"}]},
      {"KernelName": "nbody", "Status": "DeviceLimitsExceeded", "TotalDuration": 0,
       "Configuration": [{"Name": "WG", "Value": 2048}, {"Name": "KIND", "Value": "fast"}]},
      {"KernelName": "nbody", "Status": "Ok", "TotalDuration": 0,
       "Configuration": [{"Name": "KIND", "Value": "slow"}, {"Name": "WG", "Value": 64}]}]})");
}

RecordedSpace parsed(const json& document) { return parse_recorded_space(document.dump(), "folder/file.json"); }

TEST(ClblastResults, AreRead) {
  const RecordedSpace space = parsed(clblast_file());
  EXPECT_EQ(space.format, "clblast");
  EXPECT_EQ(space.kernel, "xgemm_1");
  EXPECT_EQ(space.device, "A card");
  EXPECT_EQ(space.problem_size, "M=512 N=256 PRECISION=32");
  ASSERT_EQ(space.trials.size(), 2U);
  EXPECT_EQ(space.left_out, 1U);
  EXPECT_EQ(space.config(space.trials[0]).text(), "KWG=16 MWG=64");
  EXPECT_EQ(space.trials[0].time_us, 500);
  EXPECT_EQ(space.trials[1].time_us, 250);
}

TEST(ClblastResults, BadFilesAreRefusedWithTheirPlace) {
  json document = clblast_file();
  document["results"][2]["parameters"].erase("KWG");
  EXPECT_EQ(refusal(document.dump()), "sample:/results/2/parameters: its parameters are not those of the first result");
  document["results"] = json::array();
  EXPECT_EQ(refusal(document.dump()), "sample:/results: there is no result");
  EXPECT_EQ(refusal(R"({"kernel_family": "x", "results": [{"time": "1", "parameters": {"A": 1}}]})"),
            "sample:/results: 1 configuration, of which none has a positive time");
}

// A time that is none, in place of `time` in the file.
void expect_left_out(const std::string& file, const std::string& time, std::size_t trials, std::size_t left_out) {
  for (const char* none :
       {"null", "1e400", "1.8e308", "-1.8e308", "NaN", "Infinity", "-Infinity", "\"NaN\"", "-1", "{}"}) {
    std::string changed = file;
    changed.replace(changed.find(time), time.size(), time.substr(0, time.find(':') + 1) + none);
    const RecordedSpace space = parse_recorded_space(changed, "file.json");
    EXPECT_EQ(space.trials.size(), trials) << none;
    EXPECT_EQ(space.left_out, left_out) << none;
  }
  std::string without = file;
  without.replace(without.find(time), time.size(), "\"Else\":1");
  EXPECT_EQ(parse_recorded_space(without, "file.json").left_out, left_out);
}

TEST(ClblastResults, ATimeThatIsNoneLeavesOutItsEntryOnly) {
  expect_left_out(clblast_file().dump(), "\"time\":0.5", 1, 2);
}

TEST(KttResults, ATimeThatIsNoneLeavesOutItsEntryOnly) {
  expect_left_out(ktt_file().dump(), "\"TotalDuration\":2500", 2, 2);
}

TEST(OtherFiles, ATinyTimeIsNotTakenForALargeOne) {
  EXPECT_EQ(parse_recorded_space(R"({"kernel_family": "x", "results": [{"time": 2, "parameters": {"A": 1e-400}}]})",
                                 "file.json")
                .parameters[0]
                .values[0],
            Value(0.0));
}

TEST(KttResults, AreRead) {
  const RecordedSpace space = parsed(ktt_file());
  EXPECT_EQ(space.format, "ktt");
  EXPECT_EQ(space.kernel, "nbody");
  EXPECT_EQ(space.device, "A card");
  ASSERT_EQ(space.trials.size(), 3U);
  EXPECT_EQ(space.left_out, 1U);
  EXPECT_EQ(space.config(space.trials[0]).text(), "KIND=fast WG=64");
  EXPECT_EQ(space.trials[0].time_us, 2.5);
  EXPECT_EQ(space.trials[1].status, TrialStatus::wrong_result);
  EXPECT_EQ(space.trials[1].reason, "ValidationFailed");
  EXPECT_EQ(space.trials[2].status, TrialStatus::rejected);
}

TEST(KttResults, BadFilesAreRefusedWithTheirPlace) {
  json document = ktt_file();
  document["Metadata"]["TimeUnit"] = "Days";
  EXPECT_EQ(refusal(document.dump()), "sample:/Metadata/TimeUnit: unknown unit 'Days'");
  document = ktt_file();
  document["Results"][1]["Configuration"].push_back({{"Name", "MORE"}, {"Value", 1}});
  EXPECT_EQ(refusal(document.dump()),
            "sample:/Results/1/Configuration: its parameters are not those of the first result");
  document = ktt_file();
  document["Results"][1]["KernelName"] = "other";
  EXPECT_NE(refusal(document.dump()).find("sample:/Results/1/KernelName: it differs from that"), std::string::npos);
}

TEST(OtherFiles, AreToldFromOneAnother) {
  EXPECT_NE(refusal("<?xml version=\"1.0\"?><KttResults/>").find("this is XML"), std::string::npos);
  for (const char* part : {"Kernel Tuner", "T4", "CLBlast", "KTT"}) {
    EXPECT_NE(refusal(R"({"results": []})").find(part), std::string::npos);
  }
}

}  // namespace
}  // namespace pascaline
