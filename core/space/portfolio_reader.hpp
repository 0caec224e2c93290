#pragma once

#include <cstddef>

#include "core/space/space.hpp"
#include "core/util/json_reader.hpp"

namespace pascaline {

/// Configurations that a portfolio of a search space may have.
inline constexpr std::size_t kMaxPortfolio = 16;

/// Gives `space`, whose parameters, defaults and constraints are read, the members `portfolio` and `portfolios` of
/// `node`, and empty ones where it lacks them. A configuration names what differs from the default of the same devices.
/// Fails at the place of what is no parameter or value, the default, a duplicate, excluded by a constraint over
/// parameters alone, or beyond `most` configurations.
void read_portfolios(const JsonNode& node, Space& space, std::size_t most);

}  // namespace pascaline
