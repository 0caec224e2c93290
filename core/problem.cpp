#include "core/problem.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline {
namespace {

template <typename Value>
std::string nearest(std::string_view name, const std::vector<std::pair<std::string, Value>>& entries) {
  std::vector<std::string> known;
  for (const auto& [key, value] : entries) {
    known.push_back(key);
  }
  return did_you_mean(name, known);
}

}  // namespace

std::int64_t Problem::dimension(std::string_view name) const {
  for (const auto& [key, value] : dimensions) {
    if (key == name) {
      return value;
    }
  }
  throw Error(fmt::format("problem of kernel '{}' has no dimension '{}'{}", kernel, name, nearest(name, dimensions)));
}

ElementType Problem::type(std::string_view name) const {
  for (const auto& [key, value] : types) {
    if (key == name) {
      return value;
    }
  }
  throw Error(fmt::format("problem of kernel '{}' has no element type '{}'{}", kernel, name, nearest(name, types)));
}

std::string Problem::text() const {
  std::string out = kernel;
  for (const auto& [name, value] : dimensions) {
    out += fmt::format(" {}={}", name, value);
  }
  for (const auto& [name, type] : types) {
    out += fmt::format(" {}={}", name, name_of(type));
  }
  return data.empty() ? out : fmt::format("{} {}={}", out, kDataName, data);
}

}  // namespace pascaline
