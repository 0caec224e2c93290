#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace pascaline {

/// A file's first line, without its end; empty if the file cannot be read.
[[nodiscard]] inline std::string first_line_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace pascaline
