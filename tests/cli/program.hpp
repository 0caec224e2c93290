#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace pascaline::testing {

/// What the program did.
struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

/// A folder of its own with the pair toy.cu / toy.json, in which the real program is run.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  /// Runs the program with these words; `before` is shell text run first (e.g. a limit).
  [[nodiscard]] Outcome run(const std::vector<std::string>& words, const std::string& before = {}) const;
  /// A sweep of the toy on the host device into `database`.
  [[nodiscard]] Outcome sweep(const std::vector<std::string>& more = {}) const;
  /// Writes toy.json with the text `from` replaced, which must be there.
  void change_space(const std::string& from, const std::string& to) const;
  void write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Trials in the database.
  [[nodiscard]] int stored_trials() const;

  std::filesystem::path folder_;
  std::string database_;
};

/// Whether the outcome is a fault told on one line of stderr that holds every one of `pieces`.
::testing::AssertionResult is_one_line_fault(const Outcome& outcome, const std::vector<std::string>& pieces);

}  // namespace pascaline::testing
