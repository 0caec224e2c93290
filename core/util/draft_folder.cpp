#include "core/util/draft_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/util/hash.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// A name ends with the mark, the machine's digits, a dash, and digits that nobody can guess.
constexpr std::string_view kMark = ".part-";
constexpr std::size_t kMachineDigits = 8;
constexpr std::size_t kRandomBytes = 12;
constexpr std::size_t kEndSize = kMark.size() + kMachineDigits + 1 + 2 * kRandomBytes;
constexpr std::size_t kMaxName = 255;

// On a network file system the locks of other machines may not be seen here.
const std::string& end_of_this_machine() {
  static const std::string end = [] {
    utsname names{};
    ::uname(&names);
    return fmt::format("{}{}-", kMark, hash_hex(names.nodename).substr(0, kMachineDigits));
  }();
  return end;
}

std::string random_digits() {
  std::array<unsigned char, kRandomBytes> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    throw Error(fmt::format("cannot draw a random name: {}", std::strerror(errno)), errno);
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool is_temporary(std::string_view name) {
  if (name.size() < kEndSize) {
    return false;
  }
  const std::string_view end = name.substr(name.size() - kEndSize);
  const std::string& machine = end_of_this_machine();
  return end.starts_with(machine) &&
         end.find_first_not_of("0123456789abcdef", machine.size()) == std::string_view::npos;
}

Descriptor opened(const fs::path& folder) {
  return Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Whether `folder` is still what was opened.
bool is_at(const fs::path& folder, const Descriptor& descriptor) {
  struct stat there {};
  struct stat here {};
  return ::lstat(folder.c_str(), &there) == 0 && ::fstat(descriptor.get(), &here) == 0 && there.st_dev == here.st_dev &&
         there.st_ino == here.st_ino;
}

void remove_if_abandoned(const fs::path& folder) {
  const Descriptor descriptor = opened(folder);
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0 || status.st_uid != ::geteuid() ||
      ::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 || !is_at(folder, descriptor)) {
    return;
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace

DraftFolder::DraftFolder(const fs::path& place, mode_t mode) {
  const fs::path parent = place.has_parent_path() ? place.parent_path() : ".";
  const std::string stem = place.filename().string().substr(0, kMaxName - kEndSize);
  remove_abandoned(parent);
  for (;;) {
    fs::path path = parent / (stem + end_of_this_machine() + random_digits());
    if (::mkdir(path.c_str(), mode) != 0) {
      const int code = errno;
      if (code == EEXIST) {
        continue;
      }
      throw Error(fmt::format("cannot make a temporary folder in {}: {}", parent.string(), std::strerror(code)), code);
    }
    // Another process may have taken it for abandoned before it was locked. Where nothing can be locked, nothing is
    // ever taken for abandoned.
    Descriptor lock = opened(path);
    while (lock.get() >= 0 && ::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    std::error_code ignored;
    if (lock.get() >= 0 ? is_at(path, lock) : fs::exists(path, ignored)) {
      path_ = std::move(path);
      lock_ = std::move(lock);
      return;
    }
  }
}

DraftFolder::~DraftFolder() {
  if (!path_.empty()) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
}

void remove_abandoned(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<fs::path> seen;
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  {
    const std::lock_guard lock(mutex);
    if (error || !seen.insert(real).second) {
      return;
    }
  }
  for (fs::directory_iterator entry(real, error), end; !error && entry != end; entry.increment(error)) {
    if (is_temporary(entry->path().filename().string())) {
      remove_if_abandoned(entry->path());
    }
  }
}

fs::path temporary_files() {
  std::error_code unseen;
  fs::path folder = fs::temp_directory_path(unseen);
  const char* named = std::getenv("TMPDIR");
  return !unseen ? folder : named != nullptr ? named : "/tmp";
}

}  // namespace pascaline
