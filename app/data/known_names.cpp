#include "app/data/known_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "app/options.hpp"
#include "core/argument_error.hpp"
#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline {
namespace {

void require_known(const Store& store, const char* what, const std::string& name,
                   const std::vector<std::string>& known) {
  if (name.empty() || known.empty() || std::find(known.begin(), known.end(), name) != known.end()) {
    return;
  }
  throw ArgumentError(fmt::format("{} has nothing of a {} '{}'{}; it has {}", store.file().string(), what, name,
                                  did_you_mean(name, known), fmt::join(known, ", ")));
}

}  // namespace

void require_known_kernel(const Store& store, const std::string& kernel) {
  require_known(store, "kernel", kernel, store.kernel_names());
}

void require_known_device(const Store& store, const std::string& device) {
  std::vector<std::string> names;
  for (const DeviceRow& row : store.devices()) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) {
      names.push_back(row.name);
    }
  }
  require_known(store, "device", device, names);
}

void require_kernel_of(const std::string& settings, const std::string& kernel) {
  if (!settings.empty() && kernel.empty()) {
    throw UsageError("--problem needs --kernel");
  }
}

std::string stored_problem(const Store& store, const std::string& kernel, const std::string& settings) {
  if (settings.empty()) {
    return {};
  }
  const std::vector<std::string> stored = store.problem_texts(kernel);
  std::vector<std::string> matching = stored;
  for (const auto& [name, value] : split_settings(settings)) {
    const std::string setting = fmt::format(" {}={} ", name, value);
    std::erase_if(matching, [&](const std::string& text) { return (text + " ").find(setting) == std::string::npos; });
  }
  if (matching.size() == 1) {
    return matching.front();
  }
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> named = matching.empty() ? stored : matching;
  const std::size_t count = named.size();
  std::transform(named.begin(), named.end(), named.begin(), [](const std::string& text) { return clean_line(text); });
  named.resize(std::min(count, kNamed));
  throw Error(
      fmt::format("{} has {} with {}: {}{}", store.file().string(),
                  matching.empty() ? "no problem of " + kernel : fmt::format("{} problems of {}", count, kernel),
                  clean_line(settings), fmt::join(named, "; "),
                  count > kNamed ? fmt::format("; and {} more", count - kNamed) : ""));
}

}  // namespace pascaline
