#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pascaline {

/// The source tree that the program, or the library or Python module that this code is part of, was built from; only
/// while that lies in its build folder, wherever both were moved to. Nothing for a copy and an installation.
[[nodiscard]] std::optional<std::filesystem::path> source_tree();

/// Folders with libraries that belong to the program: `.toolkit` of `source_tree`, and `share/pascaline/toolkit` of
/// `installation_prefix`.
[[nodiscard]] std::vector<std::filesystem::path> toolkit_folders();

/// Why a file or folder that lies beside the program is not to be used: others can change it, who cannot change the
/// program. Empty if they cannot.
[[nodiscard]] std::string why_not_the_programs(const std::filesystem::path& file);

/// Command line of the set-up script of `source_tree`, with `option`; empty if there is no such tree.
[[nodiscard]] std::string setup_command(const std::string& option = {});

}  // namespace pascaline
