#include "core/util/paths.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/util/descriptor.hpp"
#include "core/util/file_draft.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// The folder that the variable names with its full path; a relative one would be another in every working directory.
std::optional<fs::path> absolute_environment(const char* name) {
  const char* folder = environment(name);
  return folder != nullptr && fs::path(folder).is_absolute() ? std::optional<fs::path>(folder) : std::nullopt;
}

// What the password database says of the user; nothing if that is no place for files.
std::optional<fs::path> registered_home() {
  std::vector<char> texts(1 << 14);
  passwd entry{};
  passwd* found = nullptr;
  while (::getpwuid_r(::geteuid(), &entry, texts.data(), texts.size(), &found) == ERANGE && texts.size() < 1 << 20) {
    texts.resize(2 * texts.size());
  }
  const char* folder = found != nullptr ? found->pw_dir : nullptr;
  return folder != nullptr && *folder == '/' ? std::optional<fs::path>(folder) : std::nullopt;
}

// A folder of the user's own. Never one such as /tmp, where others could have put files.
fs::path home(std::string_view what, std::string_view options) {
  if (const auto folder = absolute_environment("HOME")) {
    return *folder;
  }
  if (const auto folder = registered_home()) {
    return *folder;
  }
  throw Error(
      fmt::format("there is no folder for {}: HOME is not set to a full path, and the user has no home in the "
                  "password database; set HOME, or give {}",
                  what, options));
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw Error(std::strerror(errno), errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

fs::path cache_folder() {
  if (const char* folder = environment("PASCALINE_CACHE_DIR")) {
    return folder;
  }
  if (const auto folder = absolute_environment("XDG_CACHE_HOME")) {
    return *folder / "pascaline";
  }
  return home("compiled kernels", "--cache or PASCALINE_CACHE_DIR") / ".cache" / "pascaline";
}

fs::path default_database() {
  if (const char* file = environment("PASCALINE_DB")) {
    return file;
  }
  if (const auto folder = absolute_environment("XDG_DATA_HOME")) {
    return *folder / "pascaline" / "tuned.db";
  }
  return home("the database", "--db or PASCALINE_DB") / ".local" / "share" / "pascaline" / "tuned.db";
}

namespace {

// A named pipe would be waited for, perhaps for ever; a shell's `<(command)` is one that somebody writes into.
void refuse_pipe(const fs::path& file) {
  struct stat status {};
  const bool pipe = ::stat(file.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  if (pipe && !file.string().starts_with("/dev/") && !file.string().starts_with("/proc/")) {
    throw Error(fmt::format("cannot read {}: it is a pipe; give a regular file", file.string()));
  }
}

}  // namespace

std::string read_file(const fs::path& file, std::size_t most) {
  refuse_pipe(file);
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) {
    throw Error(fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)), errno);
  }
  return read_file(descriptor, file, most);
}

std::string read_file(const Descriptor& descriptor, const fs::path& file, std::size_t most) {
  std::string bytes;
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(descriptor.get(), block, sizeof block);
    if (count == 0) {
      return bytes;
    }
    if (count > 0) {
      bytes.append(block, static_cast<std::size_t>(count));
      if (bytes.size() > most) {
        throw Error(fmt::format("cannot read {}: it has more than {} bytes", file.string(), most));
      }
    } else if (errno != EINTR) {
      throw Error(fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)), errno);
    }
  }
}

void write_file_atomically(const fs::path& file, std::string_view bytes, mode_t mode) {
  FileDraft draft(file, mode);
  try {
    Descriptor descriptor = draft.open();
    write_all(descriptor.get(), bytes);
    // Some file systems let the rename reach the disk before the bytes do. Not everything can wait for a disk.
    if ((::fdatasync(descriptor.get()) != 0 && errno != EINVAL && errno != EROFS) ||
        ::close(descriptor.release()) != 0) {
      throw Error(std::strerror(errno), errno);
    }
  } catch (const Error& error) {
    draft.fail(error.code());
  }
  draft.complete();
}

void replace_file(const fs::path& file, std::string_view bytes) {
  const DraftFolder made(file);
  const fs::path draft = made.path() / file.filename();
  write_file_atomically(draft, bytes);
  if (std::rename(draft.c_str(), file.c_str()) != 0) {
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)), errno);
  }
}

}  // namespace pascaline
