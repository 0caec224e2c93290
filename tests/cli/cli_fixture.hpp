#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "db/store.hpp"
#include "tests/cli/simulated_command.hpp"
#include "tests/db/fixtures.hpp"
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
  /// Names of all commands in `pascaline --help`.
  [[nodiscard]] std::set<std::string> commands() const {
    const std::string help = run({"--help"}).out;
    const std::string list = help.substr(help.find("\nTune:\n") + 1);
    std::set<std::string> names;
    static const std::regex pattern("\n  ([a-z][a-z-]*) ");
    for (std::sregex_iterator match(list.begin(), list.end(), pattern), end; match != end; ++match) {
      names.insert((*match)[1]);
    }
    return names;
  }
  /// Options in the help of a command, "-k" and "--kernel" apart.
  [[nodiscard]] std::set<std::string> option_names(std::vector<std::string> command) const {
    command.emplace_back("--help");
    const std::string help = run(command).out;
    std::set<std::string> names;
    static const std::regex pattern("\n  (-[a-zA-Z])?,?(--[a-z][a-z-]*)?");
    for (std::sregex_iterator match(help.begin(), help.end(), pattern), end; match != end; ++match) {
      for (const std::string& name : {(*match)[1].str(), (*match)[2].str()}) {
        if (!name.empty()) {
          names.insert(name);
        }
      }
    }
    return names;
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
  /// A sweep as the program runs it, but on simulated workers.
  [[nodiscard]] ProgramResult simulate(const std::vector<std::string>& words,
                                       const SimulatedWorld& world = ToyWorld()) const {
    return simulate_command(folder_.path(), words, world);
  }
  /// Such a short sweep of the toy kernel, for what it stores.
  void tune(const std::vector<std::string>& more = {"--trials", "3"}) const {
    const ProgramResult result = simulate(sweep(more));
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }
  /// The index of what `compile --emit` wrote to the folder "objects".
  [[nodiscard]] std::vector<nlohmann::json> emitted_index() const {
    std::vector<nlohmann::json> entries;
    std::istringstream lines(read_file(folder_ / "objects" / "index.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      entries.push_back(nlohmann::json::parse(line));
    }
    return entries;
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
