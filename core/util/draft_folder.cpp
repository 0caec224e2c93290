#include "core/util/draft_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <atomic>
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

// Of what is in a draft, the draft's own end takes care.
bool is_in_draft(const fs::path& folder) {
  return std::any_of(folder.begin(), folder.end(), [](const fs::path& part) { return is_temporary(part.string()); });
}

// A compiler that was killed just now may still put a file there.
void remove_whole(const fs::path& folder) {
  constexpr int kMaxTries = 3;
  std::error_code error;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    fs::remove_all(folder, error);
    if (!error) {
      return;
    }
  }
}

/// The folders in which drafts were looked for. It only grows, so that a signal handler can read it.
class LookedIn {
 public:
  /// Whether the folder is new.
  bool add(const fs::path& folder) {
    std::error_code ignored;
    const fs::path real = fs::weakly_canonical(folder, ignored);
    const std::lock_guard lock(mutex_);
    if (!known_.insert(real).second) {
      return false;
    }
    if (const std::size_t count = count_; count < names_.size()) {
      names_[count] = ::strdup(real.c_str());
      count_ = names_[count] == nullptr ? count : count + 1;
    }
    return true;
  }
  [[nodiscard]] std::span<const char* const> names() const noexcept { return {names_.data(), count_}; }

 private:
  std::mutex mutex_;
  std::set<fs::path> known_;
  std::array<const char*, kMaxDraftPlaces> names_{};
  std::atomic<std::size_t> count_{0};
};

// Never destroyed: workers may be killed as late as at the end of the process.
LookedIn& looked_in() {
  static auto* const folders = new LookedIn;
  return *folders;
}

void remove_if_abandoned(const fs::path& folder) {
  const Descriptor descriptor = opened(folder);
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0 || status.st_uid != ::geteuid() ||
      ::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 || !is_at(folder, descriptor)) {
    return;
  }
  remove_whole(folder);
}

void remove_abandoned_in(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_temporary(entry->path().filename().string())) {
      remove_if_abandoned(entry->path());
    }
  }
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
    remove_whole(path_);
  }
}

void remove_abandoned(const fs::path& folder) {
  if (!is_in_draft(folder) && looked_in().add(folder)) {
    remove_abandoned_in(folder);
  }
}

void remove_abandoned_again() {
  for (const char* folder : looked_in().names()) {
    remove_abandoned_in(folder);
  }
}

std::span<const char* const> draft_places() noexcept { return looked_in().names(); }

fs::path temporary_files() {
  std::error_code unseen;
  fs::path folder = fs::temp_directory_path(unseen);
  const char* named = std::getenv("TMPDIR");
  return !unseen ? folder : named != nullptr ? named : "/tmp";
}

}  // namespace pascaline
