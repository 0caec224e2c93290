#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "db/exchange/read.hpp"

namespace pascaline::testing {

/// A cache of Kernel Tuner with parameters x (1, 2, 4), opt (true, false), scale (0.5, 1) and layout ("row", "col"),
/// four entries: three with a time, one that did not compile.
[[nodiscard]] std::string kernel_tuner_sample();
/// T4 results of parameters x and y, one result of each invalidity.
[[nodiscard]] nlohmann::json t4_sample();
[[nodiscard]] std::string csv_sample();

/// The text with the first `from` replaced; fails the test if there is none.
[[nodiscard]] std::string with(const std::string& text, const std::string& from, const std::string& to);
/// Message of the SpaceError that reading the text must end with; a failure of the test if it does not. The file is
/// called "sample".
[[nodiscard]] std::string refusal(const std::string& text);
/// Bytes as gzip writes them.
[[nodiscard]] std::string packed(const std::string& bytes);
/// A file or folder of the larger fixtures, if they are on this machine.
[[nodiscard]] std::optional<std::filesystem::path> shared_fixture(const std::string& name);
/// Fails the test where two spaces differ; formats and names are not looked at.
void expect_same_space(const RecordedSpace& a, const RecordedSpace& b);

}  // namespace pascaline::testing
