#include <SQLiteCpp/Database.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// A database of what another emulated device measured of the toy kernel.
class CliOtherDevicesTest : public CliTest {
 protected:
  void SetUp() override {
    std::vector<Fault> faults{kRight};
    for (int i = 0; i < 7; ++i) {
      faults.push_back(static_cast<Fault>(kAlike + i));
    }
    write_toys(folder_.path(), {toy_json(faults)});
    tune({"--trials", "18", "--searcher", "random"});
    SQLite::Database database(database_, SQLite::OPEN_READWRITE);
    database.exec("UPDATE devices SET name = 'another device', sm_count = sm_count + 1");
  }
};

TEST_F(CliOtherDevicesTest, WhatASearchBeganWithIsTold) {
  const ProgramResult result = simulate(sweep({"--trials", "3"}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE((result.out + result.error).find("begins with what another device measured: 18 trials, 1 winner"),
            std::string::npos)
      << result.out << result.error;
  const std::string text = "what another device measured of this shape (18 trials), its winner among the first";
  const ProgramResult explained = run(on_toy("explain", {"--device", "emulator", "--db", database_}));
  EXPECT_NE(explained.out.find("its search began with " + text), std::string::npos) << explained.out << explained.error;
  const auto plans =
      nlohmann::json::parse(run(on_toy("explain", {"--device", "emulator", "--db", database_, "--json"})).out);
  EXPECT_EQ(plans.at(0).at("search_began_with"), nlohmann::json::array({text}));
  const std::string shown = run({"show", "--db", database_}).out;
  EXPECT_NE(shown.find("the search began with " + text), std::string::npos) << shown;
  const ProgramResult report = run({"report", "--db", database_, "-f", "json"});
  const auto document = nlohmann::json::parse(report.out, nullptr, false);
  ASSERT_TRUE(document.is_object()) << report.error;
  EXPECT_NE(report.out.find(text), std::string::npos);
  const ProgramResult page = run({"report", "--db", database_, "-f", "html"});
  EXPECT_NE(page.out.find(text), std::string::npos) << "the page holds the sentence that it shows";
}

TEST_F(CliOtherDevicesTest, TheSameDatabaseAndSeedGiveTheSameSearch) {
  const std::string copy = (folder_ / "copy.db").string();
  std::filesystem::copy_file(database_, copy);
  const auto searched = [&](const std::string& database) {  // a third proposal might or might not know a result
    std::vector<std::string> words = sweep({"--trials", "2", "--jobs", "1"});
    *(std::find(words.begin(), words.end(), "--db") + 1) = database;
    const ProgramResult result = simulate(words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    std::set<std::string> configs;
    for (const StoredTrial& trial : Store(database, OpenMode::read_only).trials({})) {
      if (trial.trial.stage == TrialStage::search && trial.device.name != "another device") {
        configs.insert(trial.trial.config.text());
      }
    }
    return configs;
  };
  const std::set<std::string> once = searched(database_);
  EXPECT_EQ(once.size(), 2U);
  EXPECT_EQ(searched(copy), once);
}

}  // namespace
}  // namespace pascaline::testing
