#pragma once

#include <filesystem>
#include <string>

namespace pascaline::cli {

/// Makes a folder that output goes into, with those that it is in; nothing if it is there. Throws Error, naming the
/// folder, the reason and what to do: `way_out`, such as "give another folder with --emit".
void make_output_folder(const std::filesystem::path& folder, const std::string& way_out);

/// A fault of the file system in plain words: what was being done, with which files, and why it failed.
[[nodiscard]] std::string plain_text(const std::filesystem::filesystem_error& error);

}  // namespace pascaline::cli
