#include "core/util/file_draft.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// In a folder such as /tmp anybody can make a link that leads to a file of the user. The kernel follows only those of
// the folder's owner and of the user, where it is set to (proc(5), protected_symlinks); here they never are.
void refuse_planted_link(const fs::path& link) {
  struct stat status {};
  struct stat folder {};
  const fs::path parent = link.has_parent_path() ? link.parent_path() : ".";
  if (::lstat(link.c_str(), &status) == 0 && ::stat(parent.c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0 &&
      (folder.st_mode & S_IWOTH) != 0 && status.st_uid != ::geteuid() && status.st_uid != folder.st_uid) {
    throw Error(
        fmt::format("cannot write {}: it is a link that user {} made in a folder where every user can write; give "
                    "another file",
                    link.string(), status.st_uid),
        EACCES);
  }
}

// Where symbolic links lead, be there a file or not.
fs::path behind_links(fs::path file) {
  constexpr int kMaxLinks = 40;
  std::error_code ignored;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(file, ignored); ++i) {
    refuse_planted_link(file);
    file = file.parent_path() / fs::read_symlink(file, ignored);  // an absolute one takes the place of all
  }
  return file;
}

}  // namespace

FileDraft::FileDraft(const fs::path& place, mode_t mode) : given_(place), place_(behind_links(place)), mode_(mode) {
  std::error_code ignored;
  if (fs::exists(given_, ignored) && !fs::is_regular_file(given_, ignored)) {
    path_ = given_;
    return;
  }
  try {
    folder_.emplace(place_);
  } catch (const Error& error) {
    fail(error.code());
  }
  path_ = folder_->path() / place_.filename();
}

Descriptor FileDraft::open() const {
  const int how = folder_ ? O_CREAT | O_EXCL | O_NOFOLLOW : 0;
  Descriptor descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | how, mode_));
  if (descriptor.get() < 0) {
    fail(errno);
  }
  return descriptor;
}

void FileDraft::complete() {
  if (!folder_) {
    return;
  }
  struct stat replaced {};
  if ((::stat(place_.c_str(), &replaced) == 0 && ::chmod(path_.c_str(), replaced.st_mode & 0777U) != 0) ||
      std::rename(path_.c_str(), place_.c_str()) != 0) {
    fail(errno);
  }
  folder_.reset();
}

void FileDraft::fail(int code) const {
  throw Error(fmt::format("cannot write {}: {}", given_.string(), std::strerror(code)), code);
}

}  // namespace pascaline
