#include "core/util/processor_quota.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

#include "core/util/first_line.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

std::optional<double> positive(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<double> share_of(const std::string& quota, const std::string& period) {
  const std::optional<double> time = positive(quota);  // "max" or -1: no limit
  const std::optional<double> of = positive(period);
  return time && of ? std::optional(*time / *of) : std::nullopt;
}

// "QUOTA PERIOD" in microseconds.
std::optional<double> quota_of_version_2(const fs::path& group) {
  std::istringstream words(first_line_of(group / "cpu.max"));
  std::string quota;
  std::string period;
  words >> quota >> period;
  return share_of(quota, period);
}

std::optional<double> quota_of_version_1(const fs::path& group) {
  return share_of(first_line_of(group / "cpu.cfs_quota_us"), first_line_of(group / "cpu.cfs_period_us"));
}

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

}  // namespace

std::optional<double> processor_quota(const fs::path& root) {
  std::optional<double> least;
  // From the group outwards; in a container its own group is the root of what can be seen.
  const auto look = [&](const fs::path& mount, const std::string& group, auto quota_of) {
    fs::path below = fs::path(group).relative_path();
    for (;;) {
      if (const std::optional<double> quota = quota_of(mount / below)) {
        least = std::min(least.value_or(*quota), *quota);
      }
      if (below.empty()) {
        return;
      }
      below = below.parent_path();
    }
  };
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "NUMBER:CONTROLLERS:PATH"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      look(root / "sys/fs/cgroup", group, quota_of_version_2);
    } else if (has_word(controllers, "cpu")) {
      look(root / "sys/fs/cgroup/cpu", group, quota_of_version_1);
    }
  }
  return least;
}

}  // namespace pascaline
