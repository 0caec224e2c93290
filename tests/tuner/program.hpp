#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace pascaline::testing {

/// How a run of the pascaline executable ended.
struct ProgramResult {
  int exit_code = -1;  ///< or 128 + signal
  std::string out;
  std::string error;
};

/// What a run may be given besides arguments.
struct ProgramSetting {
  std::vector<std::pair<std::string, std::string>> environment{};
  std::optional<std::size_t> file_size_limit{};  ///< files cannot grow beyond: a full disk
  bool unprivileged = false;                     ///< as a user whom permissions bind
  std::optional<std::string> input{};            ///< what it reads from standard input
  std::filesystem::path working_folder{};        ///< that it is started in; empty: that of the tests
};

/// Starts the pascaline executable with its output in files in `folder`; returns its process id.
[[nodiscard]] int start_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                                const ProgramSetting& setting = {});
/// Starts it and waits.
[[nodiscard]] ProgramResult run_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                                        const ProgramSetting& setting = {});

/// Fails the test unless the run ended with that code, one line on stderr that holds every one of `parts`, and no
/// output.
void expect_fault(const ProgramResult& result, int exit_code, const std::vector<std::string>& parts);
/// Parses output; a failure of the test if it is no JSON.
[[nodiscard]] nlohmann::json json_of(const ProgramResult& result);

}  // namespace pascaline::testing
