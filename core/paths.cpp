#include "core/paths.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/error.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

fs::path home() {
  const char* folder = environment("HOME");
  return folder != nullptr ? fs::path(folder) : fs::path("/tmp");
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

fs::path data_folder(std::string_view name) {
  std::vector<fs::path> places;
  if (const char* folder = environment("PASCALINE_DATA_DIR")) {
    places.push_back(fs::path(folder) / name);
  } else {
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    if (!ignored) {
      places.push_back(program.parent_path().parent_path() / "share" / "pascaline" / name);
    }
    places.push_back(fs::path(PASCALINE_SOURCE_DIR) / name);
    places.push_back(fs::path(PASCALINE_SOURCE_DIR) / "runtime" / "gpu" / name);
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
  if (const char* folder = environment("XDG_CACHE_HOME")) {
    return fs::path(folder) / "pascaline";
  }
  return home() / ".cache" / "pascaline";
}

fs::path default_database() {
  if (const char* file = environment("PASCALINE_DB")) {
    return file;
  }
  if (const char* folder = environment("XDG_DATA_HOME")) {
    return fs::path(folder) / "pascaline" / "tuned.db";
  }
  return home() / ".local" / "share" / "pascaline" / "tuned.db";
}

std::string read_file(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    throw Error(fmt::format("cannot read {}: it is a folder", file.string()), EISDIR);
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw Error(fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)), errno);
  }
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (in.bad()) {
    throw Error(fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)), errno);
  }
  return std::move(bytes).str();
}

void write_file_atomically(const fs::path& file, std::string_view bytes) {
  std::string temporary = file.string() + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0) {
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)), errno);
  }
  try {
    write_all(descriptor, bytes);
    ::fchmod(descriptor, 0644);
    if (::close(descriptor) != 0) {
      throw Error(std::strerror(errno), errno);
    }
    if (std::rename(temporary.c_str(), file.c_str()) != 0) {
      throw Error(std::strerror(errno), errno);
    }
  } catch (const Error& error) {
    ::close(descriptor);
    ::unlink(temporary.c_str());
    throw Error(fmt::format("cannot write {}: {}", file.string(), error.what()), error.code());
  }
}

}  // namespace pascaline
