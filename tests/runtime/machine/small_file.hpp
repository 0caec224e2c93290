#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace pascaline::testing {

/// Writes a file as the kernel shows them, with its folders.
inline void put_file(const std::filesystem::path& file, const std::string& line) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << line << '\n';
}

}  // namespace pascaline::testing
