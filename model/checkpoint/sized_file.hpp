#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace pascaline {

/// A new file of a size that is known, written piece by piece, by any number of threads. Not to be moved. It is only
/// there under its name; who wants it atomic writes it under another one.
class SizedFile {
 public:
  /// Creates the file and takes the room that it needs. Throws Error with the errno if there is one of that name, it
  /// cannot be created, or the disk has not as much room.
  SizedFile(std::filesystem::path file, std::uint64_t bytes);
  SizedFile(const SizedFile&) = delete;
  SizedFile& operator=(const SizedFile&) = delete;
  ~SizedFile();

  /// Writes bytes from `place` on. Throws Error with the errno if they cannot be written.
  void write(std::uint64_t place, std::span<const std::byte> bytes) const;
  /// To be called once after all was written: waits until the disk has it. Throws Error as `write`.
  void finish();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  [[noreturn]] void fail(int code) const;

  std::filesystem::path file_;
  std::uint64_t bytes_;
  int descriptor_ = -1;
};

}  // namespace pascaline
