#include "runtime/device/device_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/argument_error.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
std::optional<int> cuda_ordinal(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const std::string_view number = name.substr(kPrefix.size());
  int ordinal = -1;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), ordinal);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == number.data() + number.size();
  return whole && !number.starts_with('-') ? std::optional(ordinal) : std::nullopt;
}

void check_device_name(const std::string& name, std::initializer_list<std::string_view> others) {
  if (is_emulator_name(name) || cuda_ordinal(name) || std::find(others.begin(), others.end(), name) != others.end()) {
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
  throw ArgumentError(fmt::format("'{}' is not a device; give {}{}{}{}", name, fmt::join(names, ", "),
                                  names.empty() ? "" : " or ", last, note.empty() ? "" : fmt::format(" ({})", note)));
}

}  // namespace pascaline
