#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/cli_fixture.hpp"
#include "tests/tuner/replay/recorded.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The program on two recorded spaces in a folder of their own.
class CliReplayTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path spaces_ = folder_ / "recorded";
  std::string one_ = (spaces_ / "one.csv").string();

  void SetUp() override {
    fs::create_directory(spaces_);
    write_bytes(one_, table_of(recorded_bowl("one", 10, 5)));
    write_bytes(spaces_ / "two.csv", table_of(recorded_bowl("two")));
    write_bytes(spaces_ / "notes.txt", "no recorded space");
  }
  [[nodiscard]] ProgramResult replay(std::vector<std::string> words) const {
    words.insert(words.begin(), "replay");
    return run_program(folder_.path(), words);
  }
  // Without what a run's speed decides.
  [[nodiscard]] static json without_times(json out) {
    for (auto& space : out["details"]["spaces"]) {
      for (auto& searcher : space) {
        EXPECT_GT(searcher["proposal_ms"].get<double>(), 0);
        searcher.erase("proposal_ms");
      }
    }
    return out;
  }
};

TEST_F(CliReplayTest, Table) {
  const ProgramResult result =
      replay({spaces_.string(), "--searcher", "random,local", "--repeats", "6", "--evaluations", "50,10"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  for (const char* part : {"space", "searcher", "after 10", "after 50", "score", "to 3 %", "one", "two", "local",
                           "geometric mean", "of 6 repeats"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " in\n" << result.out;
  }
  EXPECT_LT(result.out.find("after 10"), result.out.find("after 50")) << "in order";
  EXPECT_LT(result.out.find("\none"), result.out.find("\ntwo"));
  EXPECT_EQ(result.out.find("notes"), std::string::npos);
}

TEST_F(CliReplayTest, Json) {
  const json out = json_of(replay({spaces_.string(), "--searcher", "random", "--searcher", "exhaustive", "--repeats",
                                   "5", "--evaluations", "3", "--evaluations", "600", "--json"}));
  for (const char* searcher : {"random", "exhaustive"}) {
    EXPECT_GT(out[searcher]["3"].get<double>(), 1) << searcher;
    EXPECT_EQ(out[searcher]["600"], 1.0) << searcher;
    EXPECT_EQ(out[searcher].size(), 2U);
    for (const char* space : {"one", "two"}) {
      EXPECT_GE(out["spaces"][space][searcher]["3"].get<double>(), 1);
      const json& details = out["details"]["spaces"][space][searcher];
      EXPECT_TRUE(details["score"].is_number());
      EXPECT_LE(details["ratio"]["3"]["q1"].get<double>(), details["ratio"]["3"]["q3"].get<double>());
      EXPECT_EQ(details["ratio"]["3"]["median"], out["spaces"][space][searcher]["3"]);
      EXPECT_GE(details["evaluations_to_3_percent"].get<double>(), 1);
    }
    const double product =
        out["spaces"]["one"][searcher]["3"].get<double>() * out["spaces"]["two"][searcher]["3"].get<double>();
    EXPECT_NEAR(out[searcher]["3"].get<double>(), std::sqrt(product), 1e-9);
    EXPECT_TRUE(out["details"]["searchers"][searcher]["score"].is_number());
  }
  EXPECT_EQ(out.size(), 4U) << "two searchers, spaces, details";
  EXPECT_EQ(out["details"]["repeats"], 5);
  EXPECT_EQ(out["details"]["seed"], 1);
  EXPECT_EQ(out["details"]["batch"], 1);
}

TEST_F(CliReplayTest, AutoAndRandomAfterTheUsualBudgetsAreTheDefault) {
  write_bytes(one_, table_of(recorded_times({5, 4, 3, 2, 1, 6, 7, 8, 9, 10})));
  const json out = json_of(replay({one_, "--repeats", "2", "--json"}));
  for (const char* searcher : {"auto", "random"}) {
    EXPECT_EQ(out[searcher], json({{"25", 1.0}, {"50", 1.0}, {"100", 1.0}, {"200", 1.0}}));
  }
  EXPECT_EQ(out.size(), 4U);
}

TEST_F(CliReplayTest, SeedDecidesAllButSpeed) {
  const auto with = [&](const std::string& seed, const std::string& jobs) {
    return without_times(json_of(replay({one_, "--searcher", "random,genetic", "--repeats", "3", "--evaluations",
                                         "9,25", "--seed", seed, "--jobs", jobs, "--json"})));
  };
  const json first = with("7", "1");
  EXPECT_EQ(first, with("7", "4"));
  EXPECT_EQ(first["details"]["seed"], 7);
  EXPECT_NE(first["details"]["spaces"], with("12", "1")["details"]["spaces"]);
  EXPECT_EQ(with("18446744073709551615", "2")["details"]["seed"], 18446744073709551615ULL);
}

TEST_F(CliReplayTest, WithoutScore) {
  const std::vector<std::string> words{one_, "-s", "random", "-r", "2", "-n", "20", "--no-score"};
  EXPECT_NE(replay(words).out.find(" - "), std::string::npos);
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  EXPECT_TRUE(json_of(replay(as_json))["details"]["spaces"]["one"]["random"]["score"].is_null());
}

TEST_F(CliReplayTest, NothingFoundIsNoNumber) {
  write_bytes(one_, table_of(recorded_times({0, 0, 0, 5, 6, 7})));
  const std::vector<std::string> words{one_, "-s", "exhaustive", "-r", "2", "-n", "2,6", "--no-score"};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const json out = json_of(replay(as_json));
  EXPECT_TRUE(out["exhaustive"]["2"].is_null());
  EXPECT_EQ(out["exhaustive"]["6"], 1.0);
  EXPECT_EQ(replay(words).out.find("inf"), std::string::npos);
}

TEST_F(CliReplayTest, EverySearcher) {
  write_bytes(one_, table_of(recorded_times({5, 4, 0, 2, 1, 6, 7, 8, 0, 10})));
  const json out = json_of(replay({one_, "--searcher", "all", "--repeats", "2", "--evaluations", "10", "--json"}));
  EXPECT_EQ(out.size(), 9U);
  for (const char* searcher : {"auto", "model", "genetic", "local", "annealing", "random", "exhaustive"}) {
    EXPECT_EQ(out[searcher]["10"], 1.0) << searcher;
  }
}

TEST_F(CliReplayTest, WhatIsNamedTwiceCountsOnce) {
  const json once = json_of(replay({one_, "-s", "random", "-r", "3", "-n", "20", "--json"}));
  const json twice = json_of(replay({one_, "-s", "random,random", "-r", "3", "-n", "20,20", "--json"}));
  EXPECT_EQ(without_times(once), without_times(twice));
  const std::string table = replay({one_, "-s", "random,random", "-r", "2", "-n", "20"}).out;
  EXPECT_EQ(table.find("\none"), table.rfind("\none")) << table;
}

TEST_F(CliReplayTest, SpacesOfOneNameStayApart) {
  const fs::path other = folder_ / "other";
  fs::create_directory(other);
  write_bytes(other / "one.csv", table_of(recorded_times({1, 2, 3})));
  const json out = json_of(
      replay({one_, (other / "one.csv").string(), "-s", "random", "-r", "2", "-n", "20", "--no-score", "--json"}));
  EXPECT_EQ(out["spaces"].size(), 2U) << out["spaces"].dump();
  EXPECT_TRUE(out["spaces"].contains("one"));
  EXPECT_TRUE(out["spaces"].contains("one (2)")) << out["spaces"].dump();
}

// A cache of Kernel Tuner with launches of 1 ms or more, 12 of each configuration.
std::string cache_with_launches() {
  json cache = json::object();
  json values = json::array();
  for (int x = 1; x <= 20; ++x) {
    const double time_ms = x;
    std::vector<double> times;
    for (int i = 0; i < 12; ++i) {
      times.push_back(time_ms * (1 + 0.001 * (i % 3)));
    }
    values.push_back(x);
    cache[std::to_string(x)] = {{"X", x}, {"time", time_ms}, {"times", times}};
  }
  const json file{
      {"device_name", "a card"},        {"kernel_name", "k"},  {"problem_size", {1, 1}}, {"tune_params_keys", {"X"}},
      {"tune_params", {{"X", values}}}, {"objective", "time"}, {"cache", cache}};
  return file.dump();
}

TEST_F(CliReplayTest, EndsWhereASweepWould) {
  const auto evaluations = [&](const std::string& min_gain) {
    const json out =
        json_of(replay({one_, "-s", "auto", "-r", "2", "-n", "300", "--no-score", "--min-gain", min_gain, "--json"}));
    return out["details"]["spaces"]["one"]["auto"]["evaluations"].get<double>();
  };
  const double few = evaluations("0.05");
  EXPECT_GE(few, 16);
  EXPECT_LT(few, evaluations("1e-9"));
  const ProgramResult wrong = replay({one_, "--min-gain", "2"});
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_NE(wrong.error.find("--min-gain"), std::string::npos) << wrong.error;
}

TEST_F(CliReplayTest, RacesWhereLaunchesAreRecorded) {
  const std::string cache = (folder_ / "launches.json").string();
  write_bytes(cache, cache_with_launches());
  const std::vector<std::string> words{cache, one_, "-s", "random", "-r", "5", "-n", "20", "--no-score", "--race"};
  const ProgramResult table = replay(words);
  EXPECT_EQ(table.exit_code, 0) << table.error;
  EXPECT_NE(table.out.find("all / race"), std::string::npos) << table.out;
  EXPECT_NE(table.error.find("--race: left out for 1 of 2 pairs"), std::string::npos) << table.error;
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const json spaces = json_of(replay(as_json))["details"]["spaces"];
  EXPECT_FALSE(spaces["one"]["random"].contains("sampling_ms_to_1_percent"));
  const json& times = spaces["launches"]["random"]["sampling_ms_to_1_percent"];
  EXPECT_GT(times["race"].get<double>(), 0) << times;
  EXPECT_LT(times["race"].get<double>(), times["precision"].get<double>()) << times;
  EXPECT_LE(times["precision"].get<double>(), times["all"].get<double>()) << times;
}

}  // namespace
}  // namespace pascaline::testing
