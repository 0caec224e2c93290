#include "model/checkpoint/sized_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace pascaline {

SizedFile::SizedFile(std::filesystem::path file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail(errno);
  }
  // Not all file systems can; then a full disk is seen later.
  if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes_)) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    const int code = errno;
    ::close(descriptor_);
    fail(code);
  }
}

SizedFile::~SizedFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void SizedFile::fail(int code) const {
  throw Error(fmt::format("cannot write {}: {}; does the folder exist, and has it {} MiB of free space?",
                          file_.string(), std::strerror(code), (bytes_ >> 20U) + 1),
              code);
}

void SizedFile::write(std::uint64_t place, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (written < 0 && errno != EINTR) {
      fail(errno);
    }
    if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      place += static_cast<std::uint64_t>(written);
    }
  }
}

void SizedFile::finish() {
  const int descriptor = std::exchange(descriptor_, -1);
  const int synced = ::fdatasync(descriptor) != 0 ? errno : 0;
  const int closed = ::close(descriptor) != 0 ? errno : 0;
  if (synced != 0 || closed != 0) {
    fail(synced != 0 ? synced : closed);
  }
}

}  // namespace pascaline
