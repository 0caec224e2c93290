#include "cli/model/new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace pascaline::cli {

NewFile::NewFile(std::filesystem::path place, bool replace) : place_(std::move(place)), replace_(replace) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(place_, ignored);
  if (status.type() != std::filesystem::file_type::not_found) {
    if (!replace_) {
      throw Error(fmt::format("{} exists; name another file, or replace it with --force", place_.string()));
    }
    if (status.type() != std::filesystem::file_type::regular) {
      throw Error(fmt::format("{}: this is not a file, so it is not replaced; name another one", place_.string()));
    }
  }
  try {
    folder_.emplace(place_);
  } catch (const Error& error) {
    throw Error(fmt::format("cannot write {}: {}; check that its folder exists and that you may write there",
                            place_.string(), std::strerror(error.code())),
                error.code());
  }
  part_ = folder_->path() / place_.filename();
}

void NewFile::complete() {
  int result = ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, place_.c_str(), replace_ ? 0 : RENAME_NOREPLACE);
  if (result != 0 && (errno == EINVAL || errno == ENOSYS) && (replace_ || !std::filesystem::exists(place_))) {
    result = std::rename(part_.c_str(), place_.c_str());
  }
  if (result != 0) {
    const int code = errno;
    throw Error(fmt::format("cannot put the file in its place, {}: {}", place_.string(), std::strerror(code)), code);
  }
  folder_.reset();
}

}  // namespace pascaline::cli
