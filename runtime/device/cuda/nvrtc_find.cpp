#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string_view>

#include "core/error.hpp"
#include "core/util/installation.hpp"
#include "runtime/device/cuda/nvrtc.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 8;

/// A library's name: the stem of its file, and what the dynamic loader may know it by.
struct Soname {
  std::string stem;
  std::vector<const char*> versions;

  [[nodiscard]] bool is_name(const std::string& file) const {
    constexpr std::string_view kVersion = ".0123456789";
    return file.starts_with(stem) && file.find_first_not_of(kVersion, stem.size()) == std::string::npos;
  }
};

const Soname kNvrtcLibrary{"libnvrtc.so", {".13", ".12", ".11.2", ""}};
const Soname kJitLinkLibrary{"libnvJitLink.so", {".13", ".12", ""}};

// Candidates in order, each file once however it is named, all with their full path: a bare name would be looked up by
// the dynamic loader.
class Candidates {
 public:
  explicit Candidates(const Soname& library) : library_(library) {}

  void add_file(const fs::path& file) {
    std::error_code error;
    const fs::path real = fs::canonical(file, error);
    if (!error && seen_.insert(real.string()).second) {
      found_.push_back(fs::absolute(file).string());
    }
  }
  void add_folder(const fs::path& folder, int depth = 0) {
    walk(folder, depth, [](const fs::path&) { return true; });
  }
  // One beside the program. What somebody can change who cannot change the program is left out.
  void add_own_folder(const fs::path& folder, int depth) {
    walk(folder, depth, [](const fs::path& place) { return why_not_the_programs(place).empty(); });
  }
  // A toolkit's root, whose libraries lie in one of a few folders.
  void add_toolkit(const fs::path& root) {
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/aarch64-linux/lib"}) {
      add_folder(root / folder);
    }
  }
  // Those that the dynamic loader finds.
  void add_known() {
    for (const char* version : library_.versions) {
      const std::string name = library_.stem + version;
      if (const std::optional<DynamicLibrary> library = DynamicLibrary::try_open(name, nullptr, true)) {
        add_file(library->path());
      }
    }
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(found_); }

 private:
  void walk(const fs::path& folder, int depth, const std::function<bool(const fs::path&)>& may_use) {
    if (!may_use(folder)) {
      return;
    }
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      entries.push_back(entry->path());
    }
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      if (!library_.is_name(entry.filename().string())) {
        if (depth > 0 && fs::is_directory(entry, error)) {
          walk(entry, depth - 1, may_use);
        }
      } else if (may_use(entry)) {
        add_file(entry);
      }
    }
  }

  Soname library_;
  std::vector<std::string> found_;
  std::set<std::string> seen_;
};

void add_wish(Candidates& candidates, const fs::path& wish) {
  std::error_code ignored;
  if (fs::is_directory(wish, ignored)) {
    candidates.add_folder(wish, kMaxDepth);
  } else {
    candidates.add_file(wish);
  }
}

// Only where the program itself lies: whoever starts it may stand in a folder with files of others.
void add_local_toolkits(Candidates& candidates) {
  for (const fs::path& folder : toolkit_folders()) {
    candidates.add_own_folder(folder, kMaxDepth);
  }
}

void add_installed_toolkits(Candidates& candidates) {
  candidates.add_known();
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    // A relative one would be a place in whatever folder this was started in.
    if (const char* root = std::getenv(variable); root != nullptr && fs::path(root).is_absolute()) {
      candidates.add_toolkit(root);
    }
  }
  glob_t matches{};
  if (::glob("/usr/local/cuda*", 0, nullptr, &matches) == 0) {
    for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
      candidates.add_toolkit(matches.gl_pathv[i]);
    }
  }
  ::globfree(&matches);
}

std::pair<int, int> version_number(const std::string& version) {
  char* rest = nullptr;
  const long major = std::strtol(version.c_str(), &rest, 10);
  const long minor = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
  return {static_cast<int>(major), static_cast<int>(minor)};
}

// "12.9", as the headers in a folder say; empty if none there does.
std::string version_of_headers(const fs::path& folder) {
  for (const auto& [header, macro] :
       {std::pair("cuda_runtime_api.h", "#define CUDART_VERSION"), std::pair("cuda.h", "#define CUDA_VERSION")}) {
    std::ifstream file(folder / header);
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(macro)) {
        const long number = std::strtol(line.c_str() + std::string_view(macro).size(), nullptr, 10);
        return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
      }
    }
  }
  return {};
}

std::string describe(const std::vector<NvrtcInfo>& found) {
  if (found.empty()) {
    return "none was found";
  }
  std::string text = "found: ";
  for (const NvrtcInfo& info : found) {
    const std::string range = info.architectures.empty()
                                  ? "no architecture"
                                  : info.architectures.front() + " to " + info.architectures.back();
    text += fmt::format("{}{} ({}, {})", &info == &found.front() ? "" : "; ", info.version, range, info.path);
  }
  return text;
}

}  // namespace

std::string nvrtc_wish(const std::string& nvrtc) {
  const char* chosen = std::getenv("PASCALINE_NVRTC");
  return !nvrtc.empty() ? nvrtc : chosen != nullptr ? chosen : "";
}

std::vector<NvrtcInfo> wanted_nvrtc(const std::string& wish) {
  if (wish.empty()) {
    return find_nvrtc();
  }
  if (!is_nvrtc_version(wish)) {
    return probe_nvrtc(nvrtc_candidates(wish));
  }
  std::vector<NvrtcInfo> found = find_nvrtc();
  std::erase_if(found, [&](const NvrtcInfo& info) { return !has_version(info, wish); });
  return found;
}

bool has_version(const NvrtcInfo& info, const std::string& version) {
  return info.version.starts_with(version) &&
         (info.version.size() == version.size() || info.version[version.size()] == '.' || version.back() == '.');
}

bool compiles_for(const NvrtcInfo& info, const std::string& architecture) {
  return std::find(info.architectures.begin(), info.architectures.end(), architecture) != info.architectures.end();
}

int compare_versions(const std::string& a, const std::string& b) {
  const auto first = version_number(a);
  const auto second = version_number(b);
  return first < second ? -1 : first == second ? 0 : 1;
}

void throw_no_nvrtc(const std::string& architecture, const std::string& wish, const std::vector<NvrtcInfo>& found) {
  const std::string setup = setup_command();
  throw NvrtcError(fmt::format(
      "no NVRTC{} compiles for {}; {}. {}nstall libnvrtc11.2 or CUDA 12.9 or older (CUDA 13 dropped everything before "
      "sm_75), or set PASCALINE_NVRTC to a library or its folder",
      wish.empty() ? std::string() : fmt::format(" that is '{}'", wish), architecture, describe(found),
      setup.empty() ? "I" : fmt::format("Run {}, or i", setup)));
}

bool is_nvrtc_version(const std::string& wish) {
  return !wish.empty() && wish.find_first_not_of("0123456789.") == std::string::npos &&
         wish.find_first_not_of('.') != std::string::npos;
}

std::vector<std::string> nvrtc_candidates(const fs::path& wish) {
  Candidates candidates(kNvrtcLibrary);
  if (!wish.empty()) {
    add_wish(candidates, wish);
    return candidates.take();
  }
  if (const char* chosen = std::getenv("PASCALINE_NVRTC");
      chosen != nullptr && *chosen != '\0' && !is_nvrtc_version(chosen)) {
    add_wish(candidates, chosen);
  }
  add_local_toolkits(candidates);
  add_installed_toolkits(candidates);
  return candidates.take();
}

std::vector<fs::path> find_cuda_headers(const fs::path& library, const std::string& version) {
  std::vector<fs::path> places;
  // Looks in a toolkit, in NVIDIA's Python wheels, in a distribution.
  for (const char* place : {"../include", "../../cuda_runtime/include", "../../include", "../../../include"}) {
    places.push_back((library.parent_path() / place).lexically_normal());
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable); root != nullptr && fs::path(root).is_absolute()) {
      places.push_back(fs::path(root) / "include");
    }
  }
  places.push_back(fmt::format("/usr/local/cuda-{}/include", version));
  places.emplace_back("/usr/local/cuda/include");
  places.emplace_back("/usr/include");
  for (const fs::path& place : places) {
    std::error_code ignored;
    if (!fs::exists(place / "cuda_fp16.h", ignored) || version_of_headers(place) != version) {
      continue;
    }
    std::vector<fs::path> folders{place};
    // CUDA's C++ library, which some of its headers need, has a folder of its own in wheels and in newer toolkits.
    for (const fs::path& further : {place / "cccl", place / "../../cuda_cccl/include"}) {
      if (fs::is_directory(further, ignored)) {
        folders.push_back(further.lexically_normal());
      }
    }
    return folders;
  }
  return {};
}

std::vector<std::string> jit_link_candidates() {
  Candidates candidates(kJitLinkLibrary);
  add_local_toolkits(candidates);
  add_installed_toolkits(candidates);
  return candidates.take();
}

std::vector<NvrtcInfo> probe_nvrtc(const std::vector<std::string>& candidates) {
  std::vector<NvrtcInfo> found;
  for (const std::string& candidate : candidates) {
    try {
      found.push_back(Nvrtc(candidate).info());
    } catch (const NvrtcError&) {
      // A broken or too old library is no reason not to use another.
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const NvrtcInfo& a, const NvrtcInfo& b) { return compare_versions(a.version, b.version) > 0; });
  return found;
}

std::vector<NvrtcInfo> find_nvrtc() { return probe_nvrtc(nvrtc_candidates({})); }

}  // namespace pascaline
