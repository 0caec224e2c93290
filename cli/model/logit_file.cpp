#include "cli/model/logit_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/util/draft_folder.hpp"

namespace pascaline::cli {
LogitFile::LogitFile(std::int64_t rows, std::int64_t vocabulary)
    : row_bytes_(vocabulary * static_cast<std::int64_t>(sizeof(float))),
      bytes_(rows * row_bytes_),
      folder_(temporary_files().string()) {
  try {
    const DraftFolder made(temporary_files() / "pascaline");
    file_ = ::open((made.path() / "logits").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  } catch (const Error& error) {
    fail("keep", error.code());
  }
  if (file_ < 0) {
    fail("keep", errno);
  }
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
