#include "tuner/portfolio/portfolio_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "core/workload.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

class PortfolioFileTest : public ::testing::Test {
 protected:
  std::vector<Space> spaces_{Space::parse(with_portfolio().dump(), "toy.json")};
  DeviceLimits pascal_ = limits_of_architecture("sm_61").value();
  DeviceLimits hopper_ = limits_of_architecture("sm_90").value();

  static nlohmann::json with_portfolio() {
    nlohmann::json document = toy_json({kRight, kNotANumber});
    document["defaults"]["sm_61"] = {{"BLOCK", 32}};
    document["portfolio"] = {{{"BLOCK", 128}}};
    return document;
  }
  [[nodiscard]] std::string error_of(const std::string& text) {
    try {
      use_portfolios(spaces_, text, "pool.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(PortfolioFileTest, TakesThePlaceOfTheSpacesOwn) {
  use_portfolios(spaces_, R"({"toy": {"portfolio": [{"FAULT": 1}], "portfolios": {"sm_61": [{"BLOCK": 64}]}}})", "p");
  EXPECT_EQ(spaces_[0].portfolio_for(hopper_), std::vector<Config>{toy_config(64, kNotANumber)});
  EXPECT_EQ(spaces_[0].portfolio_for(pascal_), std::vector<Config>{toy_config(64)});
}

TEST_F(PortfolioFileTest, KernelsThatItDoesNotNameHaveNone) {
  use_portfolios(spaces_, R"({"other": {"portfolio": [{"A": 1}]}})", "p");
  EXPECT_TRUE(spaces_[0].portfolio_for(hopper_).empty());
}

TEST_F(PortfolioFileTest, FaultsNameTheirPlace) {
  EXPECT_EQ(error_of("{").find("pool.json"), 0U);
  EXPECT_EQ(error_of("[]"), "pool.json: expected an object, found array");
  EXPECT_EQ(error_of(R"({"toy": {"portfolio": [{"BLOCK": 48}]}})"),
            "pool.json:/toy/portfolio/0/BLOCK: 48 is not among the values of 'BLOCK'");
  EXPECT_EQ(error_of(R"({"toy": {"members": []}})").find("pool.json:/toy: unknown key 'members'"), 0U);
}

TEST_F(PortfolioFileTest, WhatIsWrittenReadsAsTheSame) {
  const std::vector<Config> members{toy_config(128), toy_config(64, kNotANumber), toy_config(64)};
  const auto general = portfolio_json(spaces_[0], "", members);
  EXPECT_EQ(general.dump(), R"({"portfolio":[{"BLOCK":128},{"FAULT":1}]})") << "the default is left out";
  const auto own = portfolio_json(spaces_[0], "sm_61", members);
  EXPECT_EQ(own.dump(), R"({"portfolios":{"sm_61":[{"BLOCK":128},{"BLOCK":64,"FAULT":1},{"BLOCK":64}]}})");
  use_portfolios(spaces_, nlohmann::json{{"toy", own}}.dump(), "p");
  EXPECT_EQ(spaces_[0].portfolio_for(pascal_), members);
  EXPECT_THROW((void)portfolio_json(spaces_[0], "pascal", members), Error);
}

TEST_F(PortfolioFileTest, AnArchitectureWithADefaultOfItsOwnHasAPortfolioOfItsOwn) {
  EXPECT_EQ(portfolio_architecture(spaces_[0], pascal_), "sm_61");
  EXPECT_EQ(portfolio_architecture(spaces_[0], hopper_), "");
}

// Of the library's kernels, for the shapes that its runtime launches.
TEST_F(PortfolioFileTest, EveryShippedMemberIsValidForAShape) {
  const auto folder = data_folder("search_spaces");
  const Workload workload = Workload::load(folder / "workloads" / "qwen3-vl-2b-float16.json");
  std::size_t members = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    const Space space = Space::load(entry.path());
    std::vector<Problem> problems{space.example_problem()};
    const auto plain_file = folder / (space.kernel.substr(0, space.kernel.size() - 2) + ".json");
    if (space.kernel.ends_with("_q") && exists(plain_file)) {  // the same layers, with quantised weights
      const Space plain = Space::load(plain_file);
      for (const WorkloadProblem& each : expand(workload, plain)) {
        std::vector<std::pair<std::string, std::string>> dimensions;
        for (const auto& dimension : each.problem.dimensions) {
          if (std::ranges::any_of(space.dimensions,
                                  [&](const Dimension& known) { return known.name == dimension.first; })) {
            dimensions.emplace_back(dimension.first, std::to_string(dimension.second));
          }
        }
        problems.push_back(space.problem(dimensions));
      }
    }
    if (space.kernel == "attention_decode") {  // a part of what the runtime launches
      problems.push_back(space.problem(
          {{"HEADS", "16"}, {"KV_HEADS", "8"}, {"HEAD_DIM", "128"}, {"KEYS", "1024"}, {"CACHE", "float16"}}));
    }
    for (const std::string weight : {"float32", "q8_0"}) {
      if (space.kernel == "attention_projected" || (space.kernel == "attention_layer_q" && weight == "q8_0")) {
        problems.push_back(space.problem({{"HEADS", "16"},  // not launched unless measured, and so in no workload
                                          {"KV_HEADS", "8"},
                                          {"HEAD_DIM", "128"},
                                          {"KEYS", "4096"},
                                          {"HIDDEN", "2048"},
                                          {"CACHE", "float16"},
                                          {"WEIGHT", weight}}));
      }
      if (space.kernel == "mlp") {
        problems.push_back(
            space.problem({{"M", "1"}, {"HIDDEN", "2048"}, {"INTERMEDIATE", "6144"}, {"WEIGHT", weight}}));
      }
    }
    for (const WorkloadProblem& each : expand(workload, space)) {
      problems.push_back(each.problem);
    }
    for (const auto& [architecture, limits] : {std::pair("sm_61", pascal_), std::pair("sm_90", hopper_)}) {
      for (const Config& member : space.portfolio_for(limits)) {
        ++members;
        EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                                [&, &bounds = limits](const Problem& problem) {
                                  return !BoundSpace(space, problem, bounds).why_invalid(member);
                                }))
            << space.kernel << " for " << architecture << ": " << member.text();
      }
    }
  }
  EXPECT_GT(members, 20U);
}

}  // namespace
}  // namespace pascaline::testing
