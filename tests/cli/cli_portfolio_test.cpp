#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/device/compile.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// The toy kernel with a portfolio of its own: a block of 128.
class CliPortfolioTest : public CliTest {
 protected:
  void SetUp() override {
    nlohmann::json space = toy_json({kRight, kNotANumber});
    space["portfolio"] = {{{"BLOCK", 128}}};
    write_toys(folder_.path(), {space});
  }
  [[nodiscard]] std::vector<std::string> portfolio(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = on_toy("portfolio", {"--db", database_});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Configurations of the search in the order they were stored.
  [[nodiscard]] std::vector<std::string> tried() const {
    std::vector<std::string> out;
    for (const StoredTrial& stored : Store(database_, OpenMode::read_only).trials({})) {
      if (stored.trial.stage == TrialStage::search) {
        out.push_back(stored.trial.config.text());
      }
    }
    return out;
  }
};

TEST_F(CliPortfolioTest, WithoutTrialsSaysWhatToDo) {
  { const Store empty(database_, OpenMode::create); }
  expect_fault(run({"portfolio", "--db", database_}), 1, {"no usable trial", "pascaline sweep"});
  expect_fault(run(portfolio({"--pool", "2", "--first", "2"})), 2, {"--pool", "excludes", "--first"});
}

TEST_F(CliPortfolioTest, ASweepBeginsWithThePortfolio) {
  tune({"--trials", "2"});
  EXPECT_EQ(tried(), (std::vector<std::string>{toy_config(64).text(), toy_config(128).text()}));
}

TEST_F(CliPortfolioTest, AnotherOneMayBeGivenOrNone) {
  const auto file = folder_ / "pool.json";
  write_bytes(file, R"({"toy": {"portfolio": [{"BLOCK": 32}, {"BLOCK": 128, "FAULT": 1}]}})");
  tune({"--searcher", "none", "--portfolio", file.string()});
  std::vector<std::string> trials = tried();
  ASSERT_EQ(trials.size(), 3U) << "nothing is searched";
  EXPECT_EQ(trials[0], toy_config(64).text());
  std::sort(trials.begin(), trials.end());
  EXPECT_EQ(trials[0], toy_config(128, kNotANumber).text());
  write_bytes(file, R"({"toy": {"portfolio": [{"BLOCK": 33}]}})");
  expect_fault(run(sweep({"--portfolio", file.string()})), 1, {"pool.json:/toy/portfolio/0/BLOCK", "33"});
  std::filesystem::remove(database_);
  tune({"--searcher", "none", "--portfolio", "none"});
  EXPECT_EQ(tried(), std::vector<std::string>{toy_config(64).text()});
}

TEST_F(CliPortfolioTest, IsChosenFromWhatASweepMeasured) {
  tune({"--searcher", "exhaustive", "--problem", "N=1000", "--problem", "N=3000"});
  const ProgramResult text = run(portfolio());
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find("toy on "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("2 problems"), std::string::npos) << text.out;
  const nlohmann::json chosen = json_of(run(portfolio({"--json", "--size", "2"})));
  EXPECT_LE(chosen.at("toy").at("portfolio").size(), 2U);
  const nlohmann::json pool = json_of(run(portfolio({"--pool", "3"})));
  EXPECT_EQ(pool.at("toy").at("portfolio").size(), 2U) << "three blocks are right, one is the default: " << pool;
  const nlohmann::json own = json_of(run(portfolio({"--pool", "3", "--architecture", "sm_61"})));
  EXPECT_EQ(own.at("toy").at("portfolios").at("sm_61"), pool.at("toy").at("portfolio"));
  const nlohmann::json all = json_of(run(portfolio({"--first", "1000", "--json"})));
  EXPECT_EQ(all.at("toy").at("problems"), 2);
  EXPECT_DOUBLE_EQ(all.at("toy").at("mean").get<double>(), 1);
  const nlohmann::json first = json_of(run(portfolio({"--first", "1", "--json"})));
  EXPECT_GE(first.at("toy").at("worst").get<double>(), 1);
  EXPECT_EQ(first.at("toy").at("none_usable"), 0);
}

TEST_F(CliPortfolioTest, TheFirstOfTheSpacesOwnMayBeKept) {
  tune({"--searcher", "exhaustive"});
  const nlohmann::json kept = json_of(run(portfolio({"--json", "--keep", "1"})));
  EXPECT_EQ(kept.at("toy").at("portfolio").at(0), (nlohmann::json{{"BLOCK", 128}})) << kept;
  const nlohmann::json none = json_of(run(portfolio({"--json", "--keep", "1", "--size", "1"})));
  EXPECT_EQ(none.at("toy").at("portfolio").size(), 1U) << "those that are kept count: " << none;
  EXPECT_NE(run(portfolio({"--keep", "1"})).out.find("1. BLOCK=128"), std::string::npos);
  expect_fault(run(portfolio({"--keep", "1", "--pool", "2"})), 2, {"--keep", "--pool"});
}

TEST_F(CliPortfolioTest, OptionsThatWouldBeIgnoredAreRefused) {
  const std::string shapes = (folder_ / "shapes.json").string();
  write_bytes(shapes, R"({"schema": 1, "name": "shapes", "description": "one", "source": "a test",
    "types": {"STORAGE": ["float32"]}, "phases": [{"name": "token", "per": "token", "symbols": {"L": [512]}}],
    "entries": [{"kernel": "matmul", "name": "q", "phase": "token", "dimensions": {"M": 1, "N": 64, "K": 64}, "count": 1}]})");
  const std::vector<std::vector<std::string>> estimating{
      {"--workload", shapes}, {"--problem", "N=100"}, {"--sm-count", "20"},
      {"--compile", "10"},    {"--same-code", "N"},   {"--seed", "1"},
      {"--jobs", "1"},        {"--nvrtc", "11.8"},    {"--cache", folder_.path().string()}};
  for (const std::vector<std::string>& option : estimating) {
    expect_fault(run(portfolio(option)), 2, {option[0], "requires --estimate"});
  }
  const std::vector<std::vector<std::string>> measured{{"--db", database_}, {"--device-name", "x"},
                                                       {"--keep", "1"},     {"--pool", "1"},
                                                       {"--first", "1"},    {"--architecture", "sm_61", "--json"}};
  for (std::vector<std::string> words : measured) {
    const std::string option = words.front();
    words.insert(words.begin(), {"portfolio", "--estimate", "--kernel", "softmax"});
    expect_fault(run(words), 2, {option, "--estimate"});
  }
  expect_fault(run(portfolio({"--pool", "2", "--size", "3"})), 2, {"--pool", "--size"});
  expect_fault(run(portfolio({"--first", "2", "--size", "3"})), 2, {"--first", "--size"});
  expect_fault(run(portfolio({"--first", "2", "--architecture", "sm_61", "--json"})), 2, {"--first", "--architecture"});
  expect_fault(run(portfolio({"--architecture", "sm_61"})), 2, {"--architecture", "--json and --pool"});
  expect_fault(run({"portfolio", "--estimate", "--workload", shapes, "--problem", "N=1"}), 2,
               {"--workload", "--problem"});
  expect_fault(run({"portfolio", "--estimate", "--kernel", "softmx", "--workload", shapes}), 1,
               {"softmx", "did you mean 'softmax'"});
  expect_fault(run({"portfolio", "--estimate", "--kernel", "softmax", "--workload", shapes}), 1,
               {"no --workload", "'softmax'"});
}

TEST_F(CliPortfolioTest, IsChosenFromMachineCode) {
  const std::vector<NvrtcInfo> found = find_nvrtc();
  if (std::none_of(found.begin(), found.end(), [](const NvrtcInfo& nvrtc) {
        return std::find(nvrtc.architectures.begin(), nvrtc.architectures.end(), "sm_61") != nvrtc.architectures.end();
      })) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  const ProgramResult result = run({"portfolio", "--estimate", "--kernel", "softmax", "--problem",
                                    "ROWS=512,WIDTH=1024", "--problem", "ROWS=64,WIDTH=4096", "--sm-count", "20,3",
                                    "--compile", "10", "--size", "3", "--json", "--cache", test_cache().string()});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json members = nlohmann::json::parse(result.out).at("softmax").at("portfolios").at("sm_61");
  EXPECT_GE(members.size(), 1U) << members;
  EXPECT_LE(members.size(), 3U) << members;
  for (const char* part : {"softmax for sm_61: 2 problems, 10 configurations", "mean, 20 SMs", "mean, 3 SMs"}) {
    EXPECT_NE(result.error.find(part), std::string::npos) << part << " in\n" << result.error;
  }
  expect_fault(run({"portfolio", "--estimate"}), 1, {"--workload"});
}

}  // namespace
}  // namespace pascaline::testing
