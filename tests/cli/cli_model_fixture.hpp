#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/cli_fixture.hpp"
#include "tests/model/model_folder.hpp"

namespace pascaline::testing {

/// The program with a small model, in a folder of its own.
class CliModelFixture : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string model_ = (folder_ / "model").string();

  CliModelFixture() {
    std::filesystem::create_directory(model_);
    write_model_folder(model_);
  }

  /// A subcommand on the model without a database; with a context of 256 unless another is given.
  [[nodiscard]] ProgramResult run(const std::string& command, const std::vector<std::string>& more,
                                  const std::string& input = "") const {
    std::vector<std::string> words{command, "--model", model_, "--untuned"};
    words.insert(words.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--context") == more.end()) {
      words.insert(words.end(), {"--context", "256"});
    }
    ProgramSetting setting;
    setting.input = input;
    setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
    return run_program(folder_.path(), words, setting);
  }
  [[nodiscard]] ProgramResult on_cpu(const std::string& command, std::vector<std::string> more,
                                     const std::string& input = "") const {
    more.insert(more.end(), {"--device", "cpu"});
    return run(command, more, input);
  }
  void remove_weights() const { std::filesystem::remove(std::filesystem::path(model_) / "model.safetensors"); }
};

}  // namespace pascaline::testing
