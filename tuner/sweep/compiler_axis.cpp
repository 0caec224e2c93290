#include "tuner/sweep/compiler_axis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace pascaline {

Space CompilerAxis::searched(const Space& space) const {
  if (!several()) {
    return space;
  }
  nlohmann::json document = nlohmann::json::parse(space.json);
  nlohmann::json values = nlohmann::json::array();
  for (const CompilerInfo& compiler : compilers_) {
    values.push_back(compiler.name());
  }
  const nlohmann::json standard = values.front();
  document["parameters"].push_back({{"name", kCompilerParameter},
                                    {"description", "what the code is built with"},
                                    {"values", std::move(values)},
                                    {"default", standard}});
  Space searched = Space::parse(document.dump(), space.file);
  searched.portfolio = space.portfolio;  // which may be another than the file's
  searched.portfolios = space.portfolios;
  const auto add_first_compiler = [](std::vector<std::vector<std::uint16_t>>& members) {
    for (std::vector<std::uint16_t>& member : members) {
      member.push_back(0);
    }
  };
  add_first_compiler(searched.portfolio);
  for (ArchitecturePortfolio& own : searched.portfolios) {
    add_first_compiler(own.members);
  }
  return searched;
}

Config CompilerAxis::with(const Config& config, std::size_t compiler) const {
  if (!several()) {
    return config;
  }
  std::vector<Config::Setting> settings = config.settings();
  settings.emplace_back(kCompilerParameter, compilers_.at(compiler).name());
  return Config(std::move(settings));
}

Config CompilerAxis::without(const Config& config) const {
  if (!several()) {
    return config;
  }
  std::vector<Config::Setting> settings = config.settings();
  std::erase_if(settings, [](const Config::Setting& setting) { return setting.first == kCompilerParameter; });
  return Config(std::move(settings));
}

std::size_t CompilerAxis::index_of(const Config& config) const {
  if (!several()) {
    return 0;
  }
  const Value* value = config.find(kCompilerParameter);
  for (std::size_t i = 0; value != nullptr && i < compilers_.size(); ++i) {
    if (*value == Value(compilers_[i].name())) {
      return i;
    }
  }
  throw Error(fmt::format("the configuration {} names no compiler of this sweep", config.text()));
}

}  // namespace pascaline
