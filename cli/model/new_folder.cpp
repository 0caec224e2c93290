#include "cli/model/new_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include "core/error.hpp"

namespace pascaline::cli {
namespace {

namespace fs = std::filesystem;

// "a/b/" is "a/b".
fs::path without_slash(const fs::path& path) {
  const fs::path plain = path.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

bool is_taken(const fs::path& place) {
  std::error_code ignored;
  return fs::symlink_status(place, ignored).type() != fs::file_type::not_found;
}

// Only a folder as a model's is replaced: an option given by mistake should not cost more than that.
void require_replaceable(const fs::path& place) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(place, error))) {
    throw Error(fmt::format("{}: this is not a folder, so it is not replaced; name another one", place.string()));
  }
  bool has_config = false;
  std::size_t entries = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(place, error)) {
    if (entry.is_directory(error)) {
      throw Error(fmt::format("{}: it has the folder {} in it, so it is not replaced; name another one", place.string(),
                              entry.path().filename().string()));
    }
    has_config = has_config || entry.path().filename() == "config.json";
    entries += 1;
  }
  if (error || (entries > 0 && !has_config)) {
    throw Error(fmt::format("{}: {}, so it is not replaced; name another one", place.string(),
                            error ? error.message() : "this is not a model's folder (it has no config.json)"));
  }
}

[[noreturn]] void fail_to_create(const fs::path& place, int code) {
  throw Error(fmt::format("cannot create {}: {}; does the folder it is to be in exist, and may you write there?",
                          place.string(), std::strerror(code)),
              code);
}

}  // namespace

NewFolder::NewFolder(const fs::path& place, bool replace) : place_(without_slash(place)), replace_(replace) {
  if (is_taken(place_)) {
    if (!replace_) {
      throw Error(fmt::format("{} exists; name another folder, or replace it with --force", place_.string()));
    }
    require_replaceable(place_);
  }
  try {
    part_.emplace(place_, 0777);
  } catch (const Error& error) {
    fail_to_create(place_, error.code());
  }
}

void NewFolder::complete() {
  // One of the two is always in the place; where the file system cannot exchange them, the old one is moved away first.
  const fs::path part = part_->path();
  if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, place_.c_str(), RENAME_NOREPLACE) == 0) {
    part_->release();
    return;
  }
  if (errno == EEXIST && replace_) {
    require_replaceable(place_);
    if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0) {
      part_.reset();  // with the old one in it
      return;
    }
  }
  if (errno == EINVAL || errno == ENOSYS) {
    std::error_code error;
    const fs::path old = fs::path(part) += ".old";
    if (is_taken(place_) && replace_) {
      fs::rename(place_, old, error);
    }
    if (!error && !is_taken(place_)) {
      fs::rename(part, place_, error);
      if (!error) {
        part_->release();
        fs::remove_all(old, error);
        return;
      }
    }
    errno = error ? error.value() : EEXIST;
  }
  const int code = errno;
  throw Error(fmt::format("cannot put the folder in its place, {}: {}", place_.string(), std::strerror(code)), code);
}

}  // namespace pascaline::cli
