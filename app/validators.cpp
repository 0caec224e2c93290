#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "app/options.hpp"
#include "core/device/device_limits.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/util/duration.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/device_names.hpp"
#include "tuner/fleet/shard.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kAllCompilers = "all";

std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> entries;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    entries.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return entries;
}

bool is_all(const std::string& text) {
  return std::equal(text.begin(), text.end(), kAllCompilers.begin(), kAllCompilers.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

// What `parse` throws of a text, which is not empty.
template <typename Parse>
CLI::Validator parsed_by(const Parse& parse, const char* name) {
  const auto check = [parse](const std::string& text) -> std::string {
    try {
      parse(text);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  return {check, name};
}

}  // namespace

CLI::Validator architecture_name(bool with_emulator) {
  return {[with_emulator](const std::string& text) {
            return limits_of_architecture(text) || (with_emulator && is_emulator_name(text))
                       ? std::string()
                       : fmt::format("unknown architecture '{}': it is one of {}{}", text, known_architectures(),
                                     with_emulator ? ", or emulator" : "");
          },
          ""};
}

CLI::Validator target_name() {
  return {[](const std::string& text) {
            // Of newer ones than are known a device's own is possible; it decides.
            const bool may_be_newer = text.starts_with("sm_") && text.size() > 5 &&
                                      text.find_first_not_of("0123456789", 3) == std::string::npos;
            return limits_of_architecture(text) || is_emulator_name(text) || may_be_newer
                       ? std::string()
                       : fmt::format("unknown architecture '{}': it is one of {}", text, known_architectures());
          },
          ""};
}

CLI::Validator shard_text() {
  return parsed_by([](const std::string& text) { (void)parse_shard(text); }, "i/N");
}

CLI::Validator device_name(bool with_processor) {
  return parsed_by(
      [with_processor](const std::string& text) {
        with_processor ? check_device_name(text, {"cpu"}) : check_device_name(text);
      },
      "");
}

CLI::Validator device_list() {
  return parsed_by(
      [](const std::string& text) {
        if (text != "all") {
          for (const std::string& each : entries_of(text)) {
            check_device_name(each, {"all"});
          }
        }
      },
      "");
}

CLI::Validator duration(double least_s, double most_s) {
  return parsed_by(
      [least_s, most_s](const std::string& text) {
        const double seconds = parse_duration_s(text);
        if (seconds < least_s) {
          throw Error(fmt::format("'{}' is too short; give {}s or more", text, least_s));
        }
        if (seconds > most_s) {
          throw Error(fmt::format("'{}' is too long; give {}s or less", text, most_s));
        }
      },
      "");
}

CLI::Validator time_of_day() {
  return parsed_by([](const std::string& text) { (void)parse_time_of_day(text, std::chrono::system_clock::now()); },
                   "");
}

CLI::Validator nvrtc_choice() {
  const auto check = [](std::string& text) -> std::string {
    if (is_all(text)) {
      text = kAllCompilers;
      return {};
    }
    const std::vector<std::string> entries = entries_of(text);
    // Of a path any character is possible; a list is what has a version or "all" in it.
    const bool is_list = entries.size() > 1 && std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
                           return is_nvrtc_version(entry) || is_all(entry);
                         });
    for (const std::string& entry : entries) {
      if (is_list && !is_nvrtc_version(entry)) {
        return fmt::format(
            "'{}' is not a list of versions: {}", text,
            entry.empty() ? std::string("an entry is empty") : fmt::format("'{}' is no version such as 11.8", entry));
      }
    }
    return {};
  };
  return {check, ""};
}

}  // namespace pascaline
