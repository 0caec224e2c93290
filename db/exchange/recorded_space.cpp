#include "db/exchange/recorded_space.hpp"

#include <utility>

namespace pascaline {

Config RecordedSpace::config(const RecordedTrial& trial) const {
  std::vector<Config::Setting> settings;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    settings.emplace_back(parameters[i].name, parameters[i].values.at(trial.indices.at(i)));
  }
  return Config(std::move(settings));
}

}  // namespace pascaline
