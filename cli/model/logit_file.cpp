#include "cli/model/logit_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"

namespace pascaline::cli {
namespace {

std::string temporary_folder() {
  std::error_code unseen;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(unseen);
  if (!unseen) {
    return folder.string();
  }
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr ? named : "/tmp";  // opening a file there says what is wrong
}

}  // namespace

LogitFile::LogitFile(std::int64_t rows, std::int64_t vocabulary)
    : row_bytes_(vocabulary * static_cast<std::int64_t>(sizeof(float))),
      bytes_(rows * row_bytes_),
      folder_(temporary_folder()) {
  std::string name = (std::filesystem::path(folder_) / "pascaline-XXXXXX").string();
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) {
    fail("keep", errno);
  }
  ::unlink(name.c_str());
  int reason = EINTR;
  while (reason == EINTR) {
    reason = ::posix_fallocate(file_, 0, bytes_);
  }
  if (reason != 0) {
    ::close(file_);
    fail("keep", reason);
  }
}

LogitFile::~LogitFile() { ::close(file_); }

void LogitFile::fail(const char* what, int reason) const {
  throw Error(fmt::format("cannot {} {:.1f} MiB of logits in {}: {}; set TMPDIR to a folder with that much room, or "
                          "compare fewer tokens with --tokens",
                          what, static_cast<double>(bytes_) / (1 << 20), folder_, std::strerror(reason)),
              reason);
}

void LogitFile::write(std::int64_t first, std::span<const float> logits) {
  auto bytes = std::as_bytes(logits);
  for (off_t place = first * row_bytes_; !bytes.empty();) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), place);
    if (count < 0 && errno != EINTR) {
      fail("write", errno);
    }
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      place += count;
    }
  }
}

void LogitFile::read(std::int64_t first, std::span<float> logits) const {
  auto bytes = std::as_writable_bytes(logits);
  for (off_t place = first * row_bytes_; !bytes.empty();) {
    const ssize_t count = ::pread(file_, bytes.data(), bytes.size(), place);
    if (count == 0 || (count < 0 && errno != EINTR)) {
      fail("read", count == 0 ? EIO : errno);
    }
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      place += count;
    }
  }
}

}  // namespace pascaline::cli
