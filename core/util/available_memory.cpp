#include "core/util/available_memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace pascaline {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;  // "max" is no number
}

// The value beside a name in a file of lines "name value".
std::optional<std::uint64_t> named_number(const fs::path& file, const std::string& wanted) {
  std::ifstream in(file);
  std::string name;
  std::uint64_t value = 0;
  for (std::string rest; in >> name >> value; std::getline(in, rest)) {
    if (name == wanted) {
      return value;
    }
  }
  return std::nullopt;
}

// Names of a control group's files, which differ between the two versions.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* cached;  // in memory.stat
};

std::uint64_t left_in_group(const fs::path& group, const GroupFiles& files) {
  const auto limit = number_in(group / files.limit);
  const auto used = number_in(group / files.used);
  if (!limit || !used) {
    return kUnlimited;
  }
  const std::uint64_t cached = named_number(group / "memory.stat", files.cached).value_or(0);
  const std::uint64_t held = *used - std::min(*used, cached);
  return *limit - std::min(*limit, held);
}

// Every group above this process's own has a limit as well. In a container its groups may be mounted as the root.
std::uint64_t left_in_groups(const fs::path& mount, const std::string& own, const GroupFiles& files) {
  std::uint64_t left = left_in_group(mount, files);
  fs::path group = mount;
  for (const fs::path& part : fs::path(own).relative_path()) {
    group /= part;
    left = std::min(left, left_in_group(group, files));
  }
  return left;
}

std::uint64_t left_in_groups(const fs::path& root) {
  std::uint64_t left = kUnlimited;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string own = line.substr(second + 1);
    if (controllers == ",,") {
      left = std::min(left,
                      left_in_groups(root / "sys/fs/cgroup", own, {"memory.max", "memory.current", "inactive_file"}));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups(root / "sys/fs/cgroup/memory", own,
                                           {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}));
    }
  }
  return left;
}

std::uint64_t left_of_addresses(const fs::path& root) {
  rlimit limit{};
  const auto pages = number_in(root / "proc/self/statm");
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !pages) {
    return kUnlimited;
  }
  const std::uint64_t used = *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

}  // namespace

std::uint64_t available_memory_bytes(const fs::path& root) {
  const auto kibibytes = named_number(root / "proc/meminfo", "MemAvailable:");
  return std::min({kibibytes ? *kibibytes << 10 : kUnlimited, left_in_groups(root), left_of_addresses(root)});
}

}  // namespace pascaline
