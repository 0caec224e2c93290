#include "core/util/ownership.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace pascaline {
namespace {

bool is_trusted(uid_t user) { return user == 0 || user == ::geteuid(); }

}  // namespace

std::string why_foreign(const struct ::stat& status) {
  if (!is_trusted(status.st_uid)) {
    return fmt::format("user {} owns it", status.st_uid);
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return "everybody can write it";
  }
  return (status.st_mode & S_IWGRP) != 0 ? fmt::format("group {} can write it", status.st_gid) : std::string();
}

std::string why_foreign(const std::filesystem::path& file, uid_t owner) {
  struct ::stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    return {};
  }
  status.st_mode &= ~static_cast<mode_t>(S_IWGRP);
  status.st_uid = status.st_uid == owner ? ::geteuid() : status.st_uid;
  return why_foreign(status);
}

}  // namespace pascaline
