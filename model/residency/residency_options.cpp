#include "model/residency/residency_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace pascaline {
namespace {

// By number of the value.
constexpr std::array<std::string_view, 4> kVisionResidencies{"auto", "gpu", "cpu", "stream"};
constexpr std::array<std::string_view, 3> kOffloads{"auto", "cpu", "stream"};

template <typename Value, std::size_t N>
Value value_named(const std::array<std::string_view, N>& names, std::string_view name, const char* option) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error(fmt::format("{}: '{}' is none of its values", option, name));
  }
  return static_cast<Value>(found - names.begin());
}

}  // namespace

std::string_view name_of(VisionResidency where) noexcept { return kVisionResidencies[static_cast<std::size_t>(where)]; }
std::string_view name_of(Offload offload) noexcept { return kOffloads[static_cast<std::size_t>(offload)]; }

VisionResidency vision_residency_named(std::string_view name) {
  return value_named<VisionResidency>(kVisionResidencies, name, "--vision");
}
Offload offload_named(std::string_view name) { return value_named<Offload>(kOffloads, name, "--offload"); }

}  // namespace pascaline
