#include "core/util/config_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/util/unknown_keys.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxShown = 60;

// ASCII, so that it can be cut anywhere.
std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > kMaxShown) {
    text.resize(kMaxShown);
    text += "...";
  }
  return text;
}

bool same_value(const json& a, const json& b) {
  if (a.is_number() && b.is_number()) {
    return static_cast<float>(a.get<double>()) == static_cast<float>(b.get<double>());
  }
  return a == b;
}

bool holds(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

void check_supported(const JsonNode& node, const LimitedKey& limit) {
  const json supported = json::parse(limit.values);
  const auto is_it = [&](const json& value) { return same_value(value, node.value()); };
  if (std::any_of(supported.begin(), supported.end(), is_it)) {
    return;
  }
  std::vector<std::string> texts;
  std::transform(supported.begin(), supported.end(), std::back_inserter(texts), shown);
  node.fail(fmt::format("{} is not supported, only {}", shown(node.value()), fmt::join(texts, " or ")));
}

void check_limits(const JsonNode& object, std::span<const LimitedKey> limited) {
  for (const LimitedKey& limit : limited) {
    if (object.has_value(limit.key)) {
      check_supported(object.at(limit.key), limit);
    }
  }
}

void check_keys(const JsonNode& object, const ConfigKeys& keys) {
  check_limits(object, keys.limited);
  const auto is_limited = [&](std::string_view key) {
    return std::any_of(keys.limited.begin(), keys.limited.end(),
                       [&](const LimitedKey& limit) { return limit.key == key; });
  };
  std::vector<std::string> unknown;
  for (const std::string& key : object.keys()) {
    if (object.has_value(key) && !holds(keys.read, key) && !holds(keys.no_effect, key) && !is_limited(key)) {
      unknown.push_back(object.at(key).pointer());
    }
  }
  pass_over_unknown(object.file(), unknown);
}

}  // namespace pascaline
