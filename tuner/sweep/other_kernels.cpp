#include "tuner/sweep/other_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "tuner/search/transfer.hpp"
#include "tuner/sweep/other_types.hpp"

namespace pascaline {
namespace {

bool share_parameters(const Space& a, const Space& b) {
  const auto shared = std::count_if(a.parameters.begin(), a.parameters.end(), [&](const Parameter& parameter) {
    return std::any_of(b.parameters.begin(), b.parameters.end(),
                       [&](const Parameter& other) { return other.name == parameter.name; });
  });
  return shared > 0 && static_cast<double>(shared) >=
                           kMinShared * static_cast<double>(std::max(a.parameters.size(), b.parameters.size()));
}

// The default with the values that the other configuration has for parameters of the same name.
std::optional<Config> mapped(const BoundSpace& space, const Config& default_config, const Config& other) {
  std::vector<Config::Setting> settings = default_config.settings();
  for (auto& [name, value] : settings) {
    if (const Value* theirs = other.find(name)) {
      value = *theirs;
    }
  }
  const Config config(std::move(settings));
  try {
    return space.why_invalid(config) ? std::nullopt : std::optional(config);
  } catch (const Error&) {  // a value that this space does not have
    return std::nullopt;
  }
}

}  // namespace

std::optional<double> kernel_octaves(const Space& space, const Problem& problem, const Space& other_space,
                                     const Problem& other) {
  if (problem.kernel == other.kernel || !share_parameters(space, other_space)) {
    return std::nullopt;
  }
  double squares = 0;
  int shared = 0;
  for (std::size_t i = 0; i < problem.dimensions.size(); ++i) {
    const auto& [name, value] = problem.dimensions[i];
    const auto found = std::find_if(other.dimensions.begin(), other.dimensions.end(),
                                    [&, &wanted = name](const auto& dimension) { return dimension.first == wanted; });
    if (found == other.dimensions.end()) {
      continue;
    }
    if (space.dimensions.at(i).fixed && value != found->second) {
      return std::nullopt;
    }
    const double octaves =
        std::log2(std::max(static_cast<double>(value), 0.5) / std::max(static_cast<double>(found->second), 0.5));
    squares += octaves * octaves;
    ++shared;
  }
  double of_types = 0;
  for (const auto& type : problem.types) {
    of_types +=
        std::any_of(other.types.begin(), other.types.end(),
                    [&](const auto& theirs) { return theirs.first == type.first && theirs.second != type.second; })
            ? kOctavesOfOtherType
            : 0;
  }
  return shared > 0 ? std::optional(std::sqrt(squares) + of_types + kOctavesOfOtherKernel) : std::nullopt;
}

std::optional<RelatedProblem> of_other_kernel(const BoundSpace& space, const Space& other_space,
                                              const RelatedProblem& other) {
  const auto octaves = kernel_octaves(space.space(), space.problem(), other_space, other.problem);
  if (!octaves) {
    return std::nullopt;
  }
  const Config default_config = space.default_config();
  RelatedProblem related{other.problem, {}, other.device_octaves, octaves};
  std::map<std::string, std::size_t> places;  // by configuration
  for (const auto& [config, time_us] : other.times_us) {
    auto here = mapped(space, default_config, config);
    if (!here) {
      continue;
    }
    const auto [place, is_new] = places.emplace(here->text(), related.times_us.size());
    if (is_new) {
      related.times_us.emplace_back(std::move(*here), time_us);
    } else {
      double& fastest_us = related.times_us[place->second].second;
      fastest_us = std::min(fastest_us, time_us);
    }
  }
  return related.times_us.size() < kMinRelated ? std::nullopt : std::optional(std::move(related));
}

}  // namespace pascaline
