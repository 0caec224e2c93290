#include "tuner/portfolio/portfolio_file.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
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

}  // namespace
}  // namespace pascaline::testing
