#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pascaline::cli {

/// The words this process was started with, without the program's name.
[[nodiscard]] std::vector<std::string> own_words();

/// Turns this process into one that goes on with the last run of the database that did not finish: the same command in
/// the same folder, with the words of this command behind it, which count where both say something. Returns never;
/// throws Error if there is no such run, or it cannot be started.
[[noreturn]] void resume_run(const std::filesystem::path& database);

}  // namespace pascaline::cli
