#include <gtest/gtest.h>

#include <set>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

class CliKernelsTest : public CliTest {
 protected:
  [[nodiscard]] ProgramResult kernels(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"kernels", "--kernels", kernels_, "--spaces", kernels_};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

TEST_F(CliKernelsTest, ListsTheKernelsOfTheProgram) {
  const ProgramResult text = run({"kernels"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_EQ(text.error, "");
  const nlohmann::json list = json_of(run({"kernels", "--json"}));
  std::set<std::string> names;
  for (const auto& kernel : list) {
    names.insert(kernel["kernel"]);
    EXPECT_NE(("\n" + text.out).find("\n" + kernel["kernel"].get<std::string>() + ": "), std::string::npos) << kernel;
    EXPECT_FALSE(kernel["parameters"].empty());
    EXPECT_GE(kernel["configurations"].get<double>(), 2);
  }
  EXPECT_TRUE(names.contains("matmul") && names.contains("attention_decode")) << list.dump();
  EXPECT_NE(text.out.find("\nmatmul: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("dimensions M, N, K"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(std::to_string(list.size()) + " kernels in "), std::string::npos) << text.out;
}

TEST_F(CliKernelsTest, ListsThoseOfOnesOwnFolder) {
  const ProgramResult text = kernels();
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_EQ(text.out.rfind("toy: a kernel that can be wrong in many ways\n", 0), 0U) << text.out;
  EXPECT_NE(text.out.find("dimensions N; types none\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("2 parameters with 6 combinations; checked against toy_reference in toy.cu\n"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("1 kernel in "), std::string::npos) << text.out;
}

TEST_F(CliKernelsTest, ShowsOneWithParametersAndReasons) {
  const ProgramResult text = kernels({"toy"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  for (const char* part : {"toy.json", "toy.cu", "checked against toy_reference in toy.cu", "elements; e.g. 1000",
                           "32 [64] 128", "threads of a block", "\n1 constraint\n",
                           "a block has at most that many threads", "BLOCK <= device_max_threads_per_block"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in\n" << text.out;
  }
  const nlohmann::json json = json_of(kernels({"toy", "--json"}));
  EXPECT_EQ(json["kernel"], "toy");
  EXPECT_EQ(json["configurations"], 6);
  EXPECT_EQ(json["reference"], "in_file");
  EXPECT_EQ(json["dimensions"][0]["name"], "N");
  EXPECT_EQ(json["dimensions"][0]["example"], 1000);
  EXPECT_TRUE(json["dimensions"][0]["default"].is_null());
  EXPECT_EQ(json["parameters"][0]["values"], nlohmann::json({32, 64, 128}));
  EXPECT_EQ(json["parameters"][0]["default"], 64);
  EXPECT_EQ(json["constraints"][0]["reason"], "a block has at most that many threads");
  EXPECT_EQ(json, json_of(kernels({"--json"}))[0]);
}

TEST_F(CliKernelsTest, KernelWithoutDimensionsSaysSo) {
  const ProgramResult text = run({"kernels"});
  EXPECT_NE(text.out.find("dimensions none; types none\n"), std::string::npos) << "of `advance`: " << text.out;
}

TEST_F(CliKernelsTest, ElementTypesAndWhatTheyFollowAreShown) {
  const ProgramResult text = run({"kernels", "rmsnorm"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find("float32, float16, int8; that of STORAGE where it is not given"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("; default 0; from 0 to 1"), std::string::npos) << text.out;
}

TEST_F(CliKernelsTest, OneThatIsWrongLeavesTheOthersAndOtherJsonIsLeftOut) {
  write_bytes(folder_ / "broken.json", "{");
  write_bytes(folder_ / "broken.cu", "");
  write_bytes(folder_ / "workload.json", "{}");
  const ProgramResult text = kernels();
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.error.find((folder_ / "broken.json").string()), std::string::npos) << text.error;
  EXPECT_EQ(text.error.find("workload"), std::string::npos) << text.error;
  EXPECT_EQ(text.out.rfind("toy: ", 0), 0U) << text.out;
}

TEST_F(CliKernelsTest, WhatIsNotThereIsAFault) {
  expect_fault(kernels({"toys"}), 1, {(folder_ / "toys.json").string(), "(did you mean 'toy'?)"});
  expect_fault(kernels({"../toy"}), 2, {"'../toy' is not a kernel name"});
  expect_fault(run({"kernels", "--spaces", kernels_}), 1, {kernels_, "--spaces and --kernels"});
  std::filesystem::remove(folder_ / "toy.cu");
  expect_fault(kernels({"toy"}), 1, {(folder_ / "toy.cu").string(), "--kernels"});
}

}  // namespace
}  // namespace pascaline::testing
