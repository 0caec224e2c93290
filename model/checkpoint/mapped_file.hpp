#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace pascaline {

/// A regular file mapped for reading. Move-only; unmaps itself. A file that another program shortens while it is mapped
/// ends the process with SIGBUS where the missing part is read.
class MappedFile {
 public:
  /// Throws ModelError naming the file if it is missing, no regular file or cannot be mapped; `code()` is the errno.
  explicit MappedFile(std::filesystem::path file);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Asks the system to have these bytes of the file in memory soon; returns at once.
  static void read_ahead(std::span<const std::byte> bytes) noexcept;
  /// Says that these bytes of the file are not needed again soon, so that their memory can serve others.
  static void forget(std::span<const std::byte> bytes) noexcept;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace pascaline
