#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/space/space.hpp"
#include "db/exchange/read.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kScaleSource = R"(
__global__ void scale(float* y, const float* x, int n) {
  for (int k = 0; k < ITEMS; ++k) {
    const int i = (blockIdx.x * ITEMS + k) * block_size_x + threadIdx.x;
    if (i < n) {
      y[i] = (wrong ? 3.0f : 2.0f) * x[i];
    }
  }
}
)";

constexpr const char* kScaleInput = R"({
  "ConfigurationSpace": {
    "TuningParameters": [
      {"Name": "block_size_x", "Type": "int", "Values": "[2**i for i in range(5, 7)]"},
      {"Name": "ITEMS", "Type": "int", "Values": "[1, 2]"},
      {"Name": "wrong", "Type": "bool", "Values": "[False, True]"}],
    "Conditions": [{"Parameters": ["block_size_x", "ITEMS"], "Expression": "32 < block_size_x * ITEMS < 128"}]},
  "KernelSpecification": {
    "Language": "CUDA", "KernelName": "scale", "KernelFile": "scale.cu", "ProblemSize": [3000],
    "GlobalSize": {"X": "3000"}, "LocalSize": {"X": "block_size_x"}, "GridDivX": ["block_size_x", "ITEMS"],
    "Arguments": [
      {"Name": "y", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "Size": "ProblemSize[0]"},
      {"Name": "x", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "Size": 3000},
      {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillType": "Constant", "FillValue": 3000}]}})";

class CliExchangeTest : public CliTest {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "scale.cu", kScaleSource);
    write_bytes(folder_ / "input.json", kScaleInput);
  }
  [[nodiscard]] std::vector<std::string> import(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"import-space", (folder_ / "input.json").string(), "--into", my_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_import_refused(const std::string& pointer, const json& value,
                             const std::vector<std::string>& parts) const {
    json input = json::parse(kScaleInput);
    input[json::json_pointer(pointer)] = value;
    write_bytes(folder_ / "input.json", input.dump());
    expect_fault(run(import()), 1, parts);
    EXPECT_FALSE(fs::exists(my_)) << "nothing is left";
  }
  std::string my_ = (folder_ / "my").string();
};

TEST_F(CliExchangeTest, AnImportedSpaceIsSweptAndItsResultsExported) {
  ASSERT_EQ(run(import()).exit_code, 0);
  const Space space = Space::load(folder_ / "my" / "scale.json");
  EXPECT_EQ(space.default_config().text(), "ITEMS=2 block_size_x=32 wrong=0");
  const ProgramResult swept =
      run({"sweep",         "--kernels", my_,        "--spaces", my_, "--kernel",     "scale",         "--device",
           "emulator",      "--db",      database_,  "--jobs",   "2", "--warm-cache", "--min-samples", "3",
           "--max-samples", "5",         "--rounds", "2"});
  ASSERT_EQ(swept.exit_code, 0) << swept.error;
  for (const char* format : {"t4", "csv"}) {
    const ProgramResult exported =
        run({"export", "--db", database_, "--format", format, "-o", (folder_ / format).string()});
    ASSERT_EQ(exported.exit_code, 0) << exported.error;
    const RecordedSpace recorded = read_recorded_space(folder_ / format);
    ASSERT_EQ(recorded.trials.size(), 4U);
    for (const RecordedTrial& trial : recorded.trials) {
      const bool wrong = recorded.config(trial).integer("wrong") != 0;
      EXPECT_EQ(trial.status, wrong ? TrialStatus::wrong_result : TrialStatus::ok);
    }
  }
  const std::string new_folder = (folder_ / "results").string() + "/";
  ASSERT_EQ(run({"export", "--db", database_, "--format", "t4", "-o", new_folder}).exit_code, 0);
  EXPECT_EQ(read_recorded_space(std::filesystem::directory_iterator(new_folder)->path()).trials.size(), 4U);
  const ProgramResult wisdom = run({"export", "--db", database_, "--format", "wisdom"});
  EXPECT_EQ(json::parse(wisdom.out).at("entries").at(0).at("config").at("wrong"), false);
  for (const char* format : {"csv", "t4", "wisdom"}) {
    expect_fault(run({"export", "--db", database_, "--format", format, "--kernel", "other"}), 1,
                 {database_, "no trials"});
  }
}

TEST_F(CliExchangeTest, WhatExistsIsReplacedOnlyWithForce) {
  ASSERT_EQ(run(import()).exit_code, 0);
  write_bytes(folder_ / "my" / "scale.cu", "mine");
  expect_fault(run(import()), 1, {"scale.json", "--force"});
  EXPECT_EQ(bytes_of(folder_ / "my" / "scale.cu"), "mine");
  ASSERT_EQ(run(import({"--force"})).exit_code, 0);
  EXPECT_NE(bytes_of(folder_ / "my" / "scale.cu").find("extern \"C\" __global__ void scale"), std::string::npos);
  ASSERT_EQ(run(import({"--name", "other"})).exit_code, 0);
  EXPECT_EQ(Space::load(folder_ / "my" / "other.json").launch.function, "scale");
}

TEST_F(CliExchangeTest, WhatCannotBeTakenOverIsRefusedAndLeavesNothing) {
  const std::string kernel = "/KernelSpecification";
  expect_import_refused(kernel + "/Language", "OpenCL", {"input.json:/KernelSpecification/Language", "only CUDA"});
  expect_import_refused(kernel + "/Language", "Vulkan", {"only CUDA"});
  expect_import_refused(kernel + "/KernelFile", "none.cu", {"/KernelSpecification/KernelFile", "none.cu"});
  write_bytes(folder_.path().parent_path() / "outside.cu", "__global__ void scale() {}\n");
  for (const std::string& outside :
       {std::string("../outside.cu"), std::string("a/../../outside.cu"), (folder_ / "scale.cu").string()}) {
    expect_import_refused(kernel + "/KernelFile", outside,
                          {"/KernelSpecification/KernelFile", "leads out of the folder"});
  }
  fs::remove(folder_.path().parent_path() / "outside.cu");
  expect_import_refused(kernel + "/KernelName", "other", {"/KernelSpecification/KernelName", "no __global__"});
  expect_import_refused(kernel + "/CompilerOptions", {"-O3"}, {"/KernelSpecification/CompilerOptions/0", "-O3"});
  expect_import_refused(kernel + "/Arguments/1/MemoryType", "Symbol", {"/Arguments/1/MemoryType", "Symbol"});
  expect_import_refused(kernel + "/Arguments/2/FillValue", 0.5, {"/Arguments/2", "whole number"});
  expect_import_refused(kernel + "/LocalSize/X", "block_size_x / 3", {"/LocalSize/X", "column 1", "fraction"});
  const std::string size = kernel + "/Arguments/1/Size";
  for (const json& bad :
       {json(-1), json(0), json(1'000'000'000'000'000'000), json("block_size_x - 64"), json("ProblemSize[0] ** 6")}) {
    expect_import_refused(size, bad, {"input.json:" + size, "cannot be allocated"});
  }
  const std::string fill = kernel + "/Arguments/2/FillValue";
  expect_import_refused(fill, 3e9, {"input.json:" + fill, "does not fit the type 'int32'"});
  expect_import_refused(kernel + "/Arguments/1/FillValue", 1e39, {"/Arguments/1/FillValue", "does not fit"});
  const std::string name = kernel + "/Arguments/1/Name";
  expect_import_refused(name, "a b", {"input.json:" + name, "no identifier"});
  expect_import_refused(name, "1x", {"input.json:" + name, "no identifier"});
  expect_import_refused(name, "ITEMS", {"input.json:" + name, "a parameter's name"});
  expect_import_refused(kernel + "/SharedMemory", -1, {"/KernelSpecification/SharedMemory"});
  expect_import_refused(name, "y", {"input.json: cannot become a search space", "/arguments/1"});
  expect_import_refused("/ConfigurationSpace/Conditions/0/Expression", "ITEMS > 5",
                        {"/ConfigurationSpace/Conditions", "no configuration"});
}

TEST_F(CliExchangeTest, AFolderThatCannotBeMadeIsOneLineAndLeavesNone) {
  write_bytes(folder_ / "file", "mine");
  const std::string input = (folder_ / "input.json").string();
  const std::string long_name(300, 'x');
  for (const std::string& into : {(folder_ / "file").string(), (folder_ / "file" / "my").string(),
                                  (folder_ / "new" / "deep" / long_name).string(), std::string("/proc/zz/my")}) {
    const ProgramResult result = run({"import-space", input, "--into", into});
    expect_fault(result, 1, {into});
    EXPECT_EQ(result.error.find("filesystem error"), std::string::npos) << result.error;
  }
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  const ProgramResult named = run(import({"--name", long_name}));
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_EQ(named.error.find("filesystem error"), std::string::npos) << named.error;
  EXPECT_FALSE(fs::exists(my_));
  ASSERT_EQ(run({"import-space", input, "--into", (folder_ / "new" / "deep").string()}).exit_code, 0);
}

TEST_F(CliExchangeTest, FilesNeverReachTheTerminalRaw) {
  const std::string heading = "x,time_ms,status,eval_cost_ms\n";
  write_bytes(folder_ / "failed.csv", heading + "1,,compile,1\n");
  expect_fault(run({"replay", (folder_ / "failed.csv").string()}), 1, {"failed.csv", "worked"});
  write_bytes(folder_ / "twice.csv", "\x1b[31m,\x1b[31m," + heading + "1,2,3,1,ok,1\n");
  const ProgramResult refused = run({"replay", (folder_ / "twice.csv").string()});
  expect_fault(refused, 1, {"twice.csv", "stands twice"});
  EXPECT_EQ(refused.error.find('\x1b'), std::string::npos);
  const std::string odd = (folder_ / "a\x1b[31m\xff.csv").string();
  write_bytes(odd, heading + "1,1,ok,1\n2,2,ok,1\n3,1.5,ok,1\n");
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}}) {
    std::vector<std::string> words{"replay", odd, "--searcher", "random", "--repeats", "2", "--evaluations", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult replayed = run(words);
    EXPECT_EQ(replayed.exit_code, 0) << replayed.error;
    EXPECT_EQ(replayed.out.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace pascaline::testing
