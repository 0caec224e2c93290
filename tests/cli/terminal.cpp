#include "tests/cli/terminal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>

namespace pascaline::testing {
namespace {

struct Screen {
  std::vector<std::string> lines{""};
  std::size_t row = 0;

  void up(std::size_t count) {
    EXPECT_LE(count, row) << "beyond the top";
    row -= std::min(count, row);
  }
  void next() {
    ++row;
    lines.resize(std::max(lines.size(), row + 1));
  }
};

}  // namespace

MemoryFile::~MemoryFile() {
  std::fclose(file_);
  std::free(data_);
}

std::string MemoryFile::text() const {
  std::fflush(file_);
  return {data_, size_};
}

std::vector<std::string> screen_after(const std::string& text, std::size_t columns) {
  static const std::regex kSequence("\033\\[(\\d+A|J|\\?7l|\\?7h)");
  Screen screen;
  for (auto at = text.begin(); at != text.end();) {
    std::smatch match;
    if (std::regex_search(at, text.end(), match, kSequence, std::regex_constants::match_continuous)) {
      const std::string what = match[1];
      if (what.back() == 'A') {
        screen.up(std::stoul(what));
      } else if (what == "J") {
        screen.lines.resize(screen.row + 1);
        screen.lines[screen.row].clear();
      }
      at += match.length();
      continue;
    }
    EXPECT_NE(*at, '\033') << "unknown sequence in " << text;
    if (*at == '\n') {
      screen.next();
    } else if (*at != '\r') {
      screen.lines[screen.row] += *at;
    }
    ++at;
  }
  while (!screen.lines.empty() && screen.lines.back().empty()) {
    screen.lines.pop_back();
  }
  for (const std::string& line : screen.lines) {
    const auto width = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_TRUE(columns == 0 || static_cast<std::size_t>(width) <= columns) << line;
  }
  return screen.lines;
}

}  // namespace pascaline::testing
