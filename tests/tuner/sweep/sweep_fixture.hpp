#pragma once

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "db/store.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline::testing {

/// A sweep of the toy kernel: three blocks times right, wrong and not compiling, nine configurations.
class SweepTest : public ::testing::Test {
 protected:
  explicit SweepTest(const std::filesystem::path& below = std::filesystem::temp_directory_path()) : folder_(below) {}

  TemporaryFolder folder_;
  std::filesystem::path database_ = folder_ / "tuned.db";
  Space space_ = make_space({kRight, kNotANumber, kDoesNotCompile});
  SweepOptions options_;
  SweepEvents events_;
  std::atomic<bool> stop_{false};
  SweepServices services_ = real_services();

  Space make_space(const std::vector<Fault>& faults) const {
    write_toys(folder_.path(), {toy_json(faults)});
    return Space::load(folder_ / "toy.json");
  }
  void SetUp() override {
    options_.files.program = PASCALINE_TEST_PROGRAM;
    options_.files.kernels = folder_.path();
    options_.files.cache = test_cache();
    options_.database = database_;
    options_.compile.jobs = 2;
    options_.measure = quick_measure();
    options_.finals.rounds = 4;
    options_.finals.min_rounds = 2;
    options_.record.command_line = "a test";
  }
  [[nodiscard]] SweepSummary sweep(const std::vector<std::string>& sizes = {"1000"}) {
    std::vector<SweepProblem> problems;
    for (const std::string& n : sizes) {
      problems.push_back({space_.problem({{"N", n}}), 1, ""});
    }
    return run_sweep({space_}, problems, options_, events_, stop_, services_);
  }
  [[nodiscard]] std::vector<StoredTrial> stored(TrialStage stage) const {
    std::vector<StoredTrial> trials = Store(database_, OpenMode::read_only).trials({});
    std::erase_if(trials, [&](const StoredTrial& trial) { return trial.trial.stage != stage; });
    return trials;
  }
  [[nodiscard]] std::set<std::string> tried() const {
    std::set<std::string> configs;
    for (const StoredTrial& trial : stored(TrialStage::search)) {
      EXPECT_TRUE(configs.insert(trial.trial.config.text()).second) << trial.trial.config.text() << " twice";
    }
    return configs;
  }
  [[nodiscard]] std::string last_state() const { return Store(database_, OpenMode::read_only).sessions().at(0).state; }
  void expect_sound() const {
    SQLite::Database database(database_.string());
    EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), "ok");
    EXPECT_EQ(database.execAndGet("SELECT count(*) FROM attempts").getInt(), 0);
  }
};

}  // namespace pascaline::testing
