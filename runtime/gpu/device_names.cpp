#include "runtime/gpu/device_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "runtime/gpu/device.hpp"

namespace pascaline {
namespace {

bool is_cuda_name(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) {
    return false;
  }
  const std::string_view number = name.substr(kPrefix.size());
  int ordinal = -1;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), ordinal);
  return parsed.ec == std::errc() && parsed.ptr == number.data() + number.size() && ordinal >= 0;
}

}  // namespace

void check_device_name(const std::string& name, std::initializer_list<std::string_view> others) {
  if (name == "host" || is_cuda_name(name) || std::find(others.begin(), others.end(), name) != others.end()) {
    return;
  }
  std::string note;
  std::vector<std::string> names;
  for (const DeviceInfo& device : list_devices(&note)) {
    names.push_back(device.id);
  }
  names.insert(names.end(), others.begin(), others.end());
  const std::string last = names.back();
  names.pop_back();
  throw Error(fmt::format("'{}' is not a device; give {}{}{}{}", name, fmt::join(names, ", "),
                          names.empty() ? "" : " or ", last, note.empty() ? "" : fmt::format(" ({})", note)));
}

}  // namespace pascaline
