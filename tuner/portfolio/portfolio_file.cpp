#include "tuner/portfolio/portfolio_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/space/portfolio_reader.hpp"
#include "core/util/json_reader.hpp"

namespace pascaline {
namespace {

using PortfolioJson = nlohmann::ordered_json;

constexpr std::size_t kMaxListed = 4096;

PortfolioJson value_of(const Value& value) {
  return std::visit([](const auto& held) { return PortfolioJson(held); }, value);
}

}  // namespace

void use_portfolio_file(std::vector<Space>& spaces, const std::filesystem::path& file) {
  use_portfolios(spaces, read_space_file(file), file.string());
}

void use_portfolios(std::vector<Space>& spaces, std::string_view text, const std::string& name) {
  const nlohmann::json document = parse_json(text, name);
  const JsonNode root(document, name);
  for (const std::string& kernel : root.keys()) {
    root.at(kernel).only_keys({"portfolio", "portfolios"});
  }
  use_no_portfolio(spaces);
  for (Space& space : spaces) {
    if (root.has(space.kernel)) {
      read_portfolios(root.at(space.kernel), space, kMaxListed);
    }
  }
}

void use_no_portfolio(std::vector<Space>& spaces) {
  for (Space& space : spaces) {
    space.portfolio.clear();
    space.portfolios.clear();
  }
}

std::string portfolio_architecture(const Space& space, const DeviceLimits& limits) {
  const auto is_it = [&](const auto& own) { return own.compute_capability == limits.compute_capability; };
  const bool own = std::any_of(space.defaults.begin(), space.defaults.end(), is_it) ||
                   std::any_of(space.portfolios.begin(), space.portfolios.end(), is_it);
  return own ? fmt::format("sm_{}", limits.compute_capability) : "";
}

nlohmann::ordered_json portfolio_json(const Space& space, const std::string& architecture,
                                      const std::vector<Config>& members) {
  DeviceLimits limits{.compute_capability = 0};
  if (!architecture.empty()) {
    const auto known = limits_of_architecture(architecture);
    if (!known) {
      throw Error(fmt::format("unknown architecture '{}': give one from sm_50 to sm_90, such as sm_61", architecture));
    }
    limits = *known;
  }
  const std::vector<std::uint16_t> standard = space.default_indices(limits);
  PortfolioJson list = PortfolioJson::array();
  for (const Config& member : members) {
    const std::vector<std::uint16_t> indices = space.indices_of(member);
    PortfolioJson settings = PortfolioJson::object();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != standard[i]) {
        settings[space.parameters[i].name] = value_of(space.parameters[i].values[indices[i]]);
      }
    }
    if (!settings.empty()) {
      list.push_back(std::move(settings));
    }
  }
  PortfolioJson out;
  if (architecture.empty()) {
    out["portfolio"] = std::move(list);
  } else {
    out["portfolios"][architecture] = std::move(list);
  }
  return out;
}

}  // namespace pascaline
