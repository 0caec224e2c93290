#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace pascaline::cli {

/// Rows of logits in a file in the folder for temporary files (TMPDIR). It has no name there: it is gone when the
/// process is, however that ends.
class LogitFile {
 public:
  /// Takes the room of all rows at once. Throws Error with the folder, the size and what to do if it cannot be had.
  LogitFile(std::int64_t rows, std::int64_t vocabulary);
  LogitFile(const LogitFile&) = delete;
  LogitFile& operator=(const LogitFile&) = delete;
  ~LogitFile();

  /// Rows from `first` on, as many as `logits` holds; they must be within the file's. Throws Error.
  void write(std::int64_t first, std::span<const float> logits);
  void read(std::int64_t first, std::span<float> logits) const;

 private:
  [[noreturn]] void fail(const char* what, int reason) const;

  std::int64_t row_bytes_;
  std::int64_t bytes_;
  std::string folder_;
  int file_ = -1;
};

}  // namespace pascaline::cli
