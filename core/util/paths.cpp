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

namespace pascaline {
namespace {

namespace fs = std::filesystem;

fs::path g_prefix;  // empty: the program's

// An open file, closed once.
class Descriptor {
 public:
  explicit Descriptor(int value) noexcept : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_;
};

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

void set_installation_prefix(const fs::path& prefix) { g_prefix = prefix; }

std::optional<fs::path> installation_prefix() {
  if (!g_prefix.empty()) {
    return g_prefix;
  }
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  return unknown ? std::nullopt : std::optional(program.parent_path().parent_path());
}

fs::path data_folder(std::string_view name) {
  std::vector<fs::path> places;
  if (const char* folder = environment("PASCALINE_DATA_DIR")) {
    places.push_back(fs::path(folder) / name);
  } else {
    if (const auto prefix = installation_prefix()) {
      places.push_back(*prefix / "share" / "pascaline" / name);
    }
    places.push_back(fs::path(PASCALINE_SOURCE_DIR) / name);
    places.push_back(fs::path(PASCALINE_SOURCE_DIR) / "runtime" / "device" / name);
    places.push_back(fs::path(PASCALINE_INSTALL_DATA_DIR) / name);
  }
  std::string tried;
  for (const fs::path& place : places) {
    std::error_code ignored;
    if (fs::is_directory(place, ignored)) {
      return place;
    }
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw Error(fmt::format(
      "cannot find Pascaline's folder '{}' (looked at {}); set PASCALINE_DATA_DIR to the folder that holds it", name,
      tried));
}

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

namespace {

// Where symbolic links lead, be there a file or not.
fs::path behind_links(fs::path file) {
  constexpr int kMaxLinks = 40;
  std::error_code ignored;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(file, ignored); ++i) {
    file = file.parent_path() / fs::read_symlink(file, ignored);  // an absolute one takes the place of all
  }
  return file;
}

// Into what is there and must stay what it is: a device, a pipe.
void write_through(const fs::path& file, std::string_view bytes) {
  Descriptor descriptor(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (descriptor.get() < 0) {
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)), errno);
  }
  try {
    write_all(descriptor.get(), bytes);
  } catch (const Error& error) {
    throw Error(fmt::format("cannot write {}: {}", file.string(), error.what()), error.code());
  }
}

}  // namespace

void write_file_atomically(const fs::path& given, std::string_view bytes) {
  std::error_code ignored;
  const fs::path file = behind_links(given);
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) {
    write_through(file, bytes);
  } else {
    replace_file(file, bytes);
  }
}

void replace_file(const fs::path& file, std::string_view bytes) {
  std::string temporary = file.string() + ".XXXXXX";
  Descriptor descriptor(::mkostemp(temporary.data(), O_CLOEXEC));
  if (descriptor.get() < 0) {
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)), errno);
  }
  const auto require = [](int code) {
    if (code != 0) {
      throw Error(std::strerror(errno), errno);
    }
  };
  try {
    write_all(descriptor.get(), bytes);
    require(::fchmod(descriptor.get(), 0644));
    // Some file systems let the rename reach the disk before the bytes do.
    require(::fdatasync(descriptor.get()));
    require(::close(descriptor.release()));
    require(std::rename(temporary.c_str(), file.c_str()));
  } catch (const Error& error) {
    ::unlink(temporary.c_str());
    throw Error(fmt::format("cannot write {}: {}", file.string(), error.what()), error.code());
  }
}

}  // namespace pascaline
