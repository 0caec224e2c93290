#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cli/cli_fixture.hpp"
#include "tests/tuner/replay/recorded.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What the program makes of files that hold a recorded space, and of others.
class CliReplayInputTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  [[nodiscard]] std::string write(const std::string& name, const std::string& bytes) const {
    write_bytes(folder_ / name, bytes);
    return (folder_ / name).string();
  }
  [[nodiscard]] ProgramResult replay(std::vector<std::string> words) const {
    words.insert(words.begin(), {"replay"});
    return run_program(folder_.path(), words);
  }
  // A short replay by two searchers.
  [[nodiscard]] json spaces_of(const std::vector<std::string>& files) const {
    std::vector<std::string> words = files;
    words.insert(words.end(), {"-s", "random", "-r", "2", "-n", "5", "--no-score", "--json"});
    return json_of(replay(words))["spaces"];
  }
  // A database of so many usable trials of a problem, and a few that failed.
  [[nodiscard]] std::string database(const std::string& name, int usable) const {
    const fs::path file = folder_ / name;
    Store store(file, OpenMode::create);
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    for (int tile = 1; tile <= usable + 5; ++tile) {
      Trial trial = tile > usable ? failed_trial(tile, TrialStatus::wrong_result, "off") : example_trial(tile);
      if (trial.time) {
        trial.time = TimeSummary{100.0 + tile, 99.0 + tile, 101.0 + tile, 30};
      }
      std::ignore = store.add_trial(session, context, trial);
    }
    return file.string();
  }
};

std::string kernel_tuner_cache() {
  json cache{{"device_name", "GPU"},
             {"kernel_name", "k"},
             {"problem_size", 100},
             {"tune_params_keys", {"x"}},
             {"tune_params", {{"x", json::array()}}},
             {"objective", "time"}};
  for (int x = 1; x <= 12; ++x) {
    cache["tune_params"]["x"].push_back(x);
    cache["cache"][std::to_string(x)] = {{"x", x}, {"time", x == 3 ? json("CompilationFailedConfig") : json(1.0 / x)}};
  }
  return cache.dump(1);
}

TEST_F(CliReplayInputTest, CacheOfAnotherTuner) {
  const json spaces = spaces_of({write("cache.json", kernel_tuner_cache())});
  ASSERT_EQ(spaces.size(), 1U);
  EXPECT_TRUE(spaces["cache"]["random"]["5"].is_number());
}

TEST_F(CliReplayInputTest, DatabaseOfOurs) {
  const std::string file = database("tuned.db", 60);
  const json spaces = spaces_of({file});
  ASSERT_EQ(spaces.size(), 1U) << spaces.dump();
  EXPECT_NE(spaces.begin().key().find("matmul"), std::string::npos) << spaces.dump();
  EXPECT_EQ(spaces_of({folder_.path().string()}), spaces) << "in a folder, too";
  EXPECT_EQ(spaces_of({file, "--kernel", "matmul"}).size(), 1U);
  expect_fault(replay({file, "--kernel", "softmax"}), 1, {"no recorded space"});
}

TEST_F(CliReplayInputTest, DatabaseOfFewTrials) {
  const std::string file = database("tuned.db", 49);
  const ProgramResult alone = replay({file});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_NE(alone.error.find("1 problem with fewer than 50 usable trials left out"), std::string::npos) << alone.error;
  EXPECT_NE(alone.error.find("no recorded space"), std::string::npos) << alone.error;
  EXPECT_EQ(alone.out, "");
  const std::string table = write("table.csv", table_of(recorded_times({1, 2, 3})));
  EXPECT_EQ(spaces_of({file, table}).size(), 1U);
}

TEST_F(CliReplayInputTest, TruncatedFileIsNamedWithThePlace) {
  const std::string table = table_of(recorded_bowl("bowl"));
  const std::string good = write("good.csv", table);
  const std::string cut = write("cut.csv", table.substr(0, table.size() / 2));
  expect_fault(replay({good, cut}), 1, {cut, "row 2"});
  const std::string results = R"({"schema_version": "1.0.0", "results": [)";
  expect_fault(replay({write("cut.json", results)}), 1, {"cut.json", "line 1"});
  expect_fault(replay({write("cut.csv.gz", "\x1f\x8b\x08")}), 1, {"cut.csv.gz"});
  expect_fault(replay({write("cut.db", "SQLite format 3")}), 1, {"cut.db"});
}

TEST_F(CliReplayInputTest, WhatIsNoRecordedSpace) {
  expect_fault(replay({write("empty.csv", "")}), 1, {"empty.csv"});
  expect_fault(replay({write("prose.csv", "it was a dark and stormy night\n")}), 1, {"prose.csv", "row 1"});
  expect_fault(replay({write("number.csv", "X,time_ms,status,eval_cost_ms\n1,fast,ok,1\n")}), 1,
               {"number.csv", "row 2"});
  expect_fault(replay({write("version.json", R"({"schema_version": "9.0.0", "results": []})")}), 1, {"version.json"});
}

TEST_F(CliReplayInputTest, SpaceInWhichNothingWorked) {
  const std::string file = write("failed.csv", table_of(recorded_times({0, 0, 0})));
  expect_fault(replay({file}), 1, {"failed", "none of its configurations worked"});
}

TEST_F(CliReplayInputTest, FolderWithoutSpaces) {
  const fs::path empty = folder_ / "empty";
  fs::create_directory(empty);
  expect_fault(replay({empty.string()}), 1, {empty.string(), "contains no recorded space"});
  write_bytes(empty / "notes.txt", "nothing");
  fs::create_directory(empty / "more.csv");
  expect_fault(replay({empty.string()}), 1, {empty.string(), "contains no recorded space"});
}

TEST_F(CliReplayInputTest, BadArguments) {
  const std::string file = write("good.csv", table_of(recorded_times({1, 2, 3})));
  expect_fault(replay({}), 2, {"FILE"});
  expect_fault(replay({(folder_ / "missing.csv").string()}), 2, {"missing.csv"});
  expect_fault(replay({file, "--searcher", "tabu"}), 2, {"tabu", "auto", "annealing"});
  for (const char* option : {"--repeats", "--evaluations", "--batch", "--jobs"}) {
    for (const char* value : {"0", "-3", "many", "1e99"}) {
      expect_fault(replay({file, option, value}), 2, {option});
    }
  }
  expect_fault(replay({file, "--evaluations", "5,0"}), 2, {"--evaluations"});
  expect_fault(replay({file, "--seed", "-1"}), 2, {"--seed"});
  expect_fault(replay({file, "--speed"}), 2, {"--speed"});
}

TEST_F(CliReplayInputTest, HelpNamesTheSearchers) {
  const ProgramResult help = replay({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* word : {"auto", "annealing", "--repeats", "--json", "Examples:"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace pascaline::testing
