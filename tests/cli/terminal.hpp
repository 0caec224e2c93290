#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace pascaline::testing {

/// A FILE whose text is kept in memory.
class MemoryFile {
 public:
  MemoryFile() : file_(::open_memstream(&data_, &size_)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();
  [[nodiscard]] std::FILE* file() const noexcept { return file_; }
  /// All that was written so far.
  [[nodiscard]] std::string text() const;

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

/// The lines on a terminal after it was sent the text: cursor up, erase below, and wrapping off and on are understood;
/// any other control sequence is a failure of the test, as is a line that is wider than `columns` (0: any width), each
/// code point counted as one column. Trailing empty lines are left out.
[[nodiscard]] std::vector<std::string> screen_after(const std::string& text, std::size_t columns = 0);

}  // namespace pascaline::testing
