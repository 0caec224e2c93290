#include "core/space/portfolio_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/space/enumeration.hpp"
#include "core/space/settings_reader.hpp"

namespace pascaline {
namespace {

std::vector<std::vector<std::uint16_t>> read_members(const JsonNode& list, const Space& space,
                                                     const DeviceLimits& limits, std::size_t most) {
  if (list.array_size() > most) {
    list.fail(fmt::format("has {} configurations; at most {} are allowed", list.array_size(), most));
  }
  const std::vector<std::uint16_t> standard = space.default_indices(limits);
  std::vector<std::vector<std::uint16_t>> members;
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    const JsonNode place = list.at(i);
    std::vector<std::uint16_t> member = read_settings(place, space.parameters, standard);
    if (member == standard) {
      place.fail("is the default configuration, which comes first in any case");
    }
    if (const auto same = std::find(members.begin(), members.end(), member); same != members.end()) {
      place.fail(fmt::format("is the same configuration as entry {}", same - members.begin()));
    }
    if (const auto broken = broken_by_parameters(space, member)) {
      const Constraint& constraint = space.constraints[*broken];
      place.fail(fmt::format("is valid for no problem ('{}': {})", constraint.require.text(), constraint.reason));
    }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace

void read_portfolios(const JsonNode& node, Space& space, std::size_t most) {
  space.portfolio.clear();
  space.portfolios.clear();
  if (node.has("portfolio")) {
    space.portfolio = read_members(node.at("portfolio"), space, {.compute_capability = 0}, most);
  }
  if (!node.has("portfolios")) {
    return;
  }
  const JsonNode own = node.at("portfolios");
  for (const std::string& architecture : own.keys()) {
    const JsonNode list = own.at(architecture);
    const DeviceLimits limits = read_architecture(list, architecture);
    space.portfolios.push_back({limits.compute_capability, read_members(list, space, limits, most)});
  }
}

}  // namespace pascaline
