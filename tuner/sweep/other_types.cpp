#include "tuner/sweep/other_types.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "core/space/shape_distance.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/search/transfer.hpp"

namespace pascaline {
namespace {

// Values that the space no longer has make a configuration none of it.
bool is_valid(const BoundSpace& space, const Config& config) {
  try {
    return !space.why_invalid(config);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::optional<double> transfer_octaves(const Space& space, const Problem& problem, const Problem& other) {
  if (problem.types.size() != other.types.size()) {
    return std::nullopt;
  }
  double of_types = 0;
  for (std::size_t i = 0; i < problem.types.size(); ++i) {
    if (problem.types[i].first != other.types[i].first) {
      return std::nullopt;
    }
    of_types += problem.types[i].second != other.types[i].second ? kOctavesOfOtherType : 0;
  }
  Problem alike = other;
  alike.types = problem.types;
  const auto octaves = shape_distance(space, problem, alike);
  return octaves ? std::optional(*octaves + of_types) : std::nullopt;
}

std::vector<RelatedProblem> nearest_of_other_types(const BoundSpace& space,
                                                   const std::vector<RelatedProblem>& related) {
  std::vector<std::pair<double, const RelatedProblem*>> near;
  for (const RelatedProblem& other : related) {
    const auto octaves = transfer_octaves(space.space(), space.problem(), other.problem);
    if (octaves && other.problem.types != space.problem().types && other.times_us.size() >= kMinRelated) {
      near.emplace_back(*octaves, &other);
    }
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RelatedProblem> nearest;
  for (const auto& [octaves, other] : near) {
    if (nearest.size() == kMaxOtherTypes) {
      break;
    }
    RelatedProblem valid{other->problem, {}, other->device_octaves};
    std::copy_if(other->times_us.begin(), other->times_us.end(), std::back_inserter(valid.times_us),
                 [&](const auto& trial) { return is_valid(space, trial.first); });
    if (valid.times_us.size() >= kMinRelated) {
      nearest.push_back(std::move(valid));
    }
  }
  return nearest;
}

std::vector<const Winner*> winners_of_other_types(const Space& space, const Problem& problem, const DeviceRow& device,
                                                  const std::vector<Winner>& winners) {
  std::vector<std::pair<double, const Winner*>> found;
  for (const Winner& winner : winners) {
    const Problem& other = winner.trial.problem;
    const auto octaves = transfer_octaves(space, problem, other);
    const bool first_of_problem = std::none_of(
        found.begin(), found.end(), [&](const auto& earlier) { return earlier.second->trial.problem == other; });
    if (octaves && other.dimensions == problem.dimensions && other.types != problem.types && first_of_problem &&
        same_identity(winner.device, device)) {
      found.emplace_back(*octaves, &winner);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Winner*> nearest;
  for (const auto& [octaves, winner] : found) {
    nearest.push_back(winner);
  }
  return nearest;
}

}  // namespace pascaline
