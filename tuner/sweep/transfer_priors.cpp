#include "tuner/sweep/transfer_priors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>

#include "core/error.hpp"
#include "tuner/search/transfer.hpp"
#include "tuner/static_model/static_model.hpp"
#include "tuner/sweep/other_types.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxRelatedProblems = 2;  // of each kind
// The static model's order is half right (docs/results.md), and its differences are about as large as the real
// ones.
constexpr double kTrustInModel = 0.5;
constexpr double kHopelessUs = 1e9;  // of what does not fit the device at all

Prior model_prior(const BoundSpace& space, const DeviceRates& rates) {
  const auto model = std::make_shared<const StaticModel>(space, rates);
  return {[model](const Point& point) {
            const auto time_us = model->time_us(point);
            return std::log(time_us && std::isfinite(*time_us) ? *time_us : kHopelessUs);
          },
          kTrustInModel};
}

// Configurations that are not of this space any more tell nothing.
std::vector<RelatedTrial> in_domain(const SearchDomain& domain, const RelatedProblem& related) {
  std::vector<RelatedTrial> trials;
  for (const auto& [config, time_us] : related.times_us) {
    try {
      trials.push_back({domain.space()->space().indices_of(config), time_us});
    } catch (const Error&) {
      continue;
    }
  }
  return trials;
}

}  // namespace

std::vector<Prior> transfer_priors(const SearchDomain& domain, const std::optional<DeviceRates>& rates,
                                   const std::vector<RelatedProblem>& related, std::uint64_t seed) {
  const BoundSpace& space = *domain.space();
  std::vector<Prior> priors;
  if (rates) {
    priors.push_back(model_prior(space, *rates));
  }
  std::vector<std::pair<double, const RelatedProblem*>> near;
  for (const RelatedProblem& other : related) {
    const auto octaves =
        other.kernel_octaves ? other.kernel_octaves : transfer_octaves(space.space(), space.problem(), other.problem);
    if (octaves && other.times_us.size() >= kMinRelated) {
      // Trust falls with the natural logarithm.
      near.emplace_back((*octaves + other.device_octaves) * std::numbers::ln2, &other);
    }
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::array<std::size_t, 3> used{};  // of the same device and types, of other types or kernels, of other devices
  for (const auto& [distance, other] : near) {
    const bool alike = !other->kernel_octaves && other->problem.types == space.problem().types;
    std::size_t& of_kind = used.at(other->device_octaves > 0 ? 2 : alike ? 0 : 1);
    if (of_kind == kMaxRelatedProblems) {
      continue;
    }
    if (auto prior = transfer_prior(domain, in_domain(domain, *other), distance, seed)) {
      priors.push_back(std::move(*prior));
      ++of_kind;
    }
  }
  return priors;
}

}  // namespace pascaline
