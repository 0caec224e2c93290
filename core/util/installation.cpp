#include "core/util/installation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "core/error.hpp"
#include "core/util/ownership.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

fs::path g_prefix;  // empty: the program's

// The file that this code was loaded from, as the kernel knows it: a program, a library or a Python module. What the
// dynamic loader says of a program is how it was called.
fs::path file_of_this_code() {
  const auto here = reinterpret_cast<std::uintptr_t>(&file_of_this_code);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string skipped;
    fields >> std::hex >> begin >> dash >> end >> skipped >> skipped >> skipped >> skipped >> std::ws;
    if (here >= begin && here < end) {
      std::string file;
      std::getline(fields, file);
      return file;
    }
  }
  return {};
}

const fs::path& program_file() {
  static const fs::path file = file_of_this_code();
  return file;
}

// The owner of the program, who can make it do anything; nobody if it is not known.
uid_t program_owner() {
  struct ::stat status {};
  return ::stat(program_file().c_str(), &status) == 0 ? status.st_uid : 0;
}

bool is_source_tree(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "CMakeLists.txt", ignored) &&
         fs::is_directory(folder / "kernel_templates", ignored) &&
         fs::is_directory(folder / "runtime" / "device" / "shim", ignored);
}

// What CMake wrote down of a build folder. Its paths are those of the time when it was configured: what was moved since
// is found by the way from the build folder to the sources, which is still the same.
std::optional<fs::path> sources_of_build(const fs::path& build, const fs::path& cache) {
  std::map<std::string, std::string, std::less<>> paths{{"Pascaline_SOURCE_DIR:STATIC", ""},
                                                        {"CMAKE_CACHEFILE_DIR:INTERNAL", ""}};
  std::ifstream lines(cache);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = std::min(line.find('='), line.size());
    if (const auto path = paths.find(std::string_view(line).substr(0, equals)); path != paths.end()) {
      path->second = line.substr(std::min(equals + 1, line.size()));
    }
  }
  const fs::path source = paths.at("Pascaline_SOURCE_DIR:STATIC");
  if (!source.is_absolute()) {
    return std::nullopt;
  }
  const fs::path way = source.lexically_relative(paths.at("CMAKE_CACHEFILE_DIR:INTERNAL"));
  for (const fs::path& place : {(build / way).lexically_normal(), source}) {
    if (is_source_tree(place)) {
      return place;
    }
  }
  return std::nullopt;
}

// Programs lie in `bin`, the Python module in `python/pascaline`: an installation somewhere below is none of the build.
std::optional<fs::path> find_source_tree() {
  constexpr int kMaxDepth = 2;
  fs::path folder = program_file().parent_path();
  for (int i = 0; i < kMaxDepth && folder.has_relative_path(); ++i) {
    folder = folder.parent_path();
    const fs::path cache = folder / "CMakeCache.txt";
    std::error_code ignored;
    if (fs::is_regular_file(cache, ignored) && why_not_the_programs(cache).empty()) {
      return sources_of_build(folder, cache);
    }
  }
  return std::nullopt;
}

std::vector<fs::path> data_places(std::string_view name) {
  std::vector<fs::path> places;
  if (!g_prefix.empty()) {
    places.push_back(g_prefix / "share" / "pascaline" / name);
  } else if (!program_file().empty()) {
    places.push_back((program_file().parent_path() / PASCALINE_DATA_FROM_PROGRAM / name).lexically_normal());
  }
  if (const auto sources = source_tree()) {
    places.push_back(*sources / name);
    places.push_back(*sources / "runtime" / "device" / name);
  }
  return places;
}

// Why others could change what lies in a folder of the program's: all of it may be compiled or run.
std::string why_not_the_programs_folder(const fs::path& folder) {
  if (std::string foreign = why_not_the_programs(folder); !foreign.empty()) {
    return foreign;
  }
  constexpr int kMaxDepth = 8;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator entry(folder, options); entry != fs::recursive_directory_iterator(); ++entry) {
    if (const std::string foreign = why_not_the_programs(entry->path()); !foreign.empty()) {
      return fmt::format("{} in it is not safe: {}", entry->path().lexically_relative(folder).string(), foreign);
    }
    if (entry.depth() == kMaxDepth) {
      entry.disable_recursion_pending();
    }
  }
  return {};
}

}  // namespace

void set_installation_prefix(const fs::path& prefix) { g_prefix = prefix; }

std::optional<fs::path> installation_prefix() {
  if (!g_prefix.empty()) {
    return g_prefix;
  }
  const fs::path& program = program_file();
  return program.empty() ? std::nullopt : std::optional(program.parent_path().parent_path());
}

std::optional<fs::path> source_tree() {
  static const std::optional<fs::path> tree = find_source_tree();
  return tree;
}

std::vector<fs::path> toolkit_folders() {
  std::vector<fs::path> folders;
  if (const auto sources = source_tree()) {
    folders.push_back(*sources / ".toolkit");
  }
  if (const auto prefix = installation_prefix()) {
    folders.push_back(*prefix / "share" / "pascaline" / "toolkit");
  }
  return folders;
}

std::string why_not_the_programs(const fs::path& file) { return why_foreign(file, program_owner()); }

std::string setup_command(const std::string& option) {
  if (!source_tree()) {
    return {};
  }
  return option.empty() ? "./scripts/setup.sh" : "./scripts/setup.sh " + option;
}

fs::path data_folder(std::string_view name) {
  const char* given = std::getenv("PASCALINE_DATA_DIR");
  const bool is_given = given != nullptr && *given != '\0';
  std::string tried;
  for (const fs::path& place : is_given ? std::vector{fs::path(given) / name} : data_places(name)) {
    std::error_code ignored;
    const bool is_there = fs::is_directory(place, ignored);
    const std::string foreign = is_there ? why_not_the_programs_folder(place) : std::string();
    if (is_there && foreign.empty()) {
      return place;
    }
    tried += (tried.empty() ? "" : ", ") + place.string() + (foreign.empty() ? "" : ", but " + foreign);
  }
  throw Error(fmt::format(
      "cannot find Pascaline's folder '{}' (looked at {}); set PASCALINE_DATA_DIR to the folder that holds it", name,
      tried.empty() ? "nothing, as it is not known where the program lies" : tried));
}

}  // namespace pascaline
