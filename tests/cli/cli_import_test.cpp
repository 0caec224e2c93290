#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliImportTest : public CliTest {
 protected:
  std::string cache_ = (folder_ / "cache.json").string();

  void SetUp() override {
    CliTest::SetUp();
    const auto entry = [](int block, const nlohmann::json& time, const nlohmann::json& times) {
      nlohmann::json fields{{"block", block},         {"time", time},
                            {"compile_time", 100.5},  {"verification_time", 0},
                            {"benchmark_time", 12.5}, {"framework_time", 1.5},
                            {"strategy_time", 0.5},   {"timestamp", "2023-12-22 09:53:48.691683+00:00"}};
      if (!times.is_null()) {
        fields["times"] = times;
      }
      return fields;
    };
    const nlohmann::json cache{{"device_name", "NVIDIA RTX A4000"},
                               {"kernel_name", "convolution"},
                               {"problem_size", {4096, 2048}},
                               {"tune_params_keys", {"block"}},
                               {"tune_params", {{"block", {32, 64, 128}}}},
                               {"objective", "time"},
                               {"cache",
                                {{"32", entry(32, 0.5, {0.5, 0.4, 0.6})},
                                 {"64", entry(64, 0.25, {0.25, 0.25, 0.25})},
                                 {"128", entry(128, "CompilationFailedConfig", nullptr)}}}};
    write_bytes(cache_, cache.dump());
  }
  [[nodiscard]] ProgramResult import(std::vector<std::string> words) const {
    words.insert(words.begin(), "import");
    words.insert(words.end(), {"--db", database_});
    return run(words);
  }
};

TEST_F(CliImportTest, TellsWhatCameAndKnowsItAgain) {
  const ProgramResult first = import({cache_});
  EXPECT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(first.out, cache_ + ": 3 trials (2 usable) of convolution X=4096 Y=2048 on NVIDIA RTX A4000, session 1\n");
  const ProgramResult again = import({cache_});
  EXPECT_EQ(again.exit_code, 0) << again.error;
  EXPECT_EQ(again.out, cache_ + ": nothing new (imported before)\n");
  EXPECT_EQ(stored().size(), 3U);
}

TEST_F(CliImportTest, CountsWhatItLeavesOut) {
  nlohmann::json cache = nlohmann::json::parse(read_file(cache_));
  cache["cache"]["64"]["time"] = 0.0;
  write_bytes(cache_, cache.dump());
  EXPECT_EQ(import({cache_}).out, cache_ +
                                      ": 2 trials (1 usable) of convolution X=4096 Y=2048 on NVIDIA RTX A4000, session "
                                      "1; 1 configuration left out because the time is not positive\n");
  EXPECT_EQ(json_of(import({cache_, "--json", "--dry-run"}))["imported"][0]["left_out"], 1);
}

TEST_F(CliImportTest, IsShownAndReported) {
  ASSERT_EQ(import({cache_}).exit_code, 0);
  const nlohmann::json trials = json_of(run({"show", "trials", "--db", database_, "--json"}));
  ASSERT_EQ(trials.size(), 3U);
  EXPECT_EQ(trials[0]["median_us"], 250.0);
  EXPECT_EQ(trials[0]["problem"], "convolution X=4096 Y=2048");
  EXPECT_EQ(trials[2]["status"], "compile_failed");
  const nlohmann::json sessions = json_of(run({"show", "sessions", "--db", database_, "--json"}));
  EXPECT_EQ(sessions[0]["imported_from"], "cache.json");
  EXPECT_EQ(sessions[0]["started"], "2023-12-22 09:53 UTC");
  EXPECT_TRUE(json_of(run({"show", "winners", "--db", database_, "--json"})).empty());
  const ProgramResult report = run({"report", "--db", database_});
  EXPECT_EQ(report.exit_code, 0) << report.error;
  EXPECT_NE(report.out.find("NVIDIA RTX A4000, results of another tuner"), std::string::npos) << report.out;
  EXPECT_NE(report.out.find("block=64"), std::string::npos) << report.out;
  EXPECT_NE(run({"report", "--db", database_, "--format", "csv"}).out.find("convolution"), std::string::npos);
  EXPECT_EQ(run({"status", "--db", database_}).exit_code, 3);
}

TEST_F(CliImportTest, SweepAndDispatchTakeNothingFromIt) {
  nlohmann::json cache = nlohmann::json::parse(bytes_of(cache_));
  cache["kernel_name"] = "toy";
  write_bytes(cache_, cache.dump());
  ASSERT_EQ(import({cache_}).exit_code, 0);
  const ProgramResult plan = run(on_toy("explain", {"--device", "emulator", "--db", database_}));
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_NE(plan.out.find("default"), std::string::npos) << plan.out;
  tune();
  EXPECT_GT(stored().size(), 3U);
}

TEST_F(CliImportTest, DryRunAndJson) {
  const nlohmann::json dry = json_of(import({cache_, "--dry-run", "--json"}));
  EXPECT_FALSE(fs::exists(database_));
  EXPECT_EQ(dry["imported"][0]["changed"], true);
  EXPECT_TRUE(dry["imported"][0]["session"].is_null());
  EXPECT_EQ(import({cache_, "--dry-run"}).out,
            cache_ + ": would import 3 trials (2 usable) of convolution X=4096 Y=2048 on NVIDIA RTX A4000\n");
  const nlohmann::json json = json_of(import({cache_, cache_, "--json"}));
  ASSERT_EQ(json["imported"].size(), 2U);
  EXPECT_EQ(json["imported"][0], (nlohmann::json{{"file", cache_},
                                                 {"format", "kernel_tuner"},
                                                 {"changed", true},
                                                 {"session", 1},
                                                 {"kernel", "convolution"},
                                                 {"problem", "convolution X=4096 Y=2048"},
                                                 {"device", "NVIDIA RTX A4000"},
                                                 {"trials", 3},
                                                 {"usable", 2},
                                                 {"left_out", 0}}));
  EXPECT_EQ(json["imported"][1]["changed"], false);
}

TEST_F(CliImportTest, AnyFileThatIsWrongIsToldBeforeAnythingIsStored) {
  const std::string bad = (folder_ / "bad.json").string();
  write_bytes(bad, "{\"schema_version\": \"1.0.0\", \"results\": 7}");
  expect_fault(import({cache_, bad}), 1, {bad, "results"});
  const std::string missing = (folder_ / "missing.json").string();
  expect_fault(import({cache_, missing}), 1, {missing});
  EXPECT_FALSE(fs::exists(database_));
  { const Store store(database_, OpenMode::create); }
  expect_fault(import({cache_, database_}), 1, {database_, "pascaline merge"});
  EXPECT_TRUE(stored().empty());
  expect_fault(run({"import", cache_, "--db", cache_}), 1, {cache_, "not an SQLite database"});
  expect_fault(import({}), 2, {"files"});
}

TEST_F(CliImportTest, FullDisk) {
  { const Store store(database_, OpenMode::create); }
  ProgramSetting full;
  full.file_size_limit = 36'000;
  expect_fault(run({"import", cache_, "--db", database_}, full), 1, {database_, "disk"});
  EXPECT_TRUE(stored().empty());
  EXPECT_EQ(import({cache_}).exit_code, 0);
}

}  // namespace
}  // namespace pascaline::testing
