#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/tuner/program.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {

/// The program in a folder of its own, which holds the toy kernel, its space and, after `tune`, a database.
class CliTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string kernels_ = folder_.path().string();
  std::string database_ = (folder_ / "tuned.db").string();

  void SetUp() override { write_toys(folder_.path(), {toy_json({kRight, kNotANumber})}); }

  [[nodiscard]] ProgramResult run(const std::vector<std::string>& arguments, const ProgramSetting& setting = {}) const {
    return run_program(folder_.path(), arguments, setting);
  }
  /// A subcommand on the toy kernel.
  [[nodiscard]] std::vector<std::string> on_toy(const std::string& command,
                                                const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{command, "--kernels", kernels_, "--spaces", kernels_, "--kernel", "toy"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// A short sweep of it on the emulated device into `database_`.
  [[nodiscard]] std::vector<std::string> sweep(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words =
        on_toy("sweep", {"--device", "emulator", "--db", database_, "--jobs", "2", "--warm-cache", "--min-samples", "3",
                         "--max-samples", "5", "--rounds", "2"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void tune() const {
    const ProgramResult result = run(sweep({"--trials", "3"}));
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }
  /// What the database holds, in the order it was stored.
  [[nodiscard]] std::vector<std::string> stored() const {
    std::vector<std::string> out;
    for (const StoredTrial& trial : Store(database_, OpenMode::read_only).trials({})) {
      out.push_back(std::to_string(trial.id) + " " + trial.trial.config.text() + " " +
                    std::string(name_of(trial.trial.status)));
    }
    return out;
  }
};

}  // namespace pascaline::testing
