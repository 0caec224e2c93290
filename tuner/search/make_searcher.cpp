#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "tuner/search/model_searcher.hpp"
#include "tuner/search/plain_searchers.hpp"
#include "tuner/search/walking_searchers.hpp"

namespace pascaline {
namespace {

// The constraint that most random configurations break, for the message that nothing is valid.
std::string worst_constraint(const BoundSpace& space, std::uint64_t seed) {
  constexpr int kDraws = 2000;
  SearchRandom random(seed);
  std::vector<std::pair<int, std::string>> failures;
  for (int draw = 0; draw < kDraws; ++draw) {
    Point point;
    for (const Parameter& parameter : space.space().parameters) {
      point.push_back(static_cast<std::uint16_t>(below(random, parameter.values.size())));
    }
    const auto why = space.why_invalid(space.space().config_at(point));
    if (!why) {
      continue;
    }
    const auto known =
        std::find_if(failures.begin(), failures.end(), [&](const auto& entry) { return entry.second == *why; });
    if (known == failures.end()) {
      failures.emplace_back(1, *why);
    } else {
      ++known->first;
    }
  }
  return failures.empty() ? "no constraint" : std::max_element(failures.begin(), failures.end())->second;
}

void require_valid(const SearchDomain& domain, std::uint64_t seed) {
  SearchRandom random(seed);
  if (domain.sample(random)) {
    return;
  }
  if (domain.space() == nullptr) {
    throw Error("the recorded space has no configuration");
  }
  const BoundSpace& space = *domain.space();
  throw SpaceError(space.space().file, "/constraints",
                   fmt::format("{} for {}; most fail because {}",
                               domain.exact() ? "no configuration is valid"
                                              : "no valid configuration was found in many random draws",
                               space.problem().text(), worst_constraint(space, seed)));
}

}  // namespace

const std::vector<SearcherName>& searcher_names() {
  static const std::vector<SearcherName> names{
      {"auto", "the best overall: model-based, using prior results"},
      {"model", "Bayesian optimisation by a Gaussian process"},
      {"genetic", "genetic algorithm, steady-state"},
      {"local", "local search with restarts"},
      {"annealing", "simulated annealing"},
      {"random", "uniform over the valid configurations"},
      {"exhaustive", "every valid configuration"},
  };
  return names;
}

std::unique_ptr<Searcher> make_searcher(std::string_view name, const SearchDomain& domain,
                                        const SearchOptions& options) {
  require_valid(domain, options.seed);
  if (name == "auto") {
    return std::make_unique<ModelSearcher>(domain, options);
  }
  if (name == "model") {
    SearchOptions plain = options;
    plain.priors.clear();
    return std::make_unique<ModelSearcher>(domain, plain);
  }
  if (name == "genetic") {
    return std::make_unique<GeneticSearcher>(domain, options);
  }
  if (name == "local") {
    return std::make_unique<LocalSearcher>(domain, options);
  }
  if (name == "annealing") {
    return std::make_unique<AnnealingSearcher>(domain, options);
  }
  if (name == "random") {
    return std::make_unique<RandomSearcher>(domain, options.seed);
  }
  if (name == "exhaustive") {
    return std::make_unique<ExhaustiveSearcher>(domain);
  }
  std::string known;
  for (const SearcherName& searcher : searcher_names()) {
    known += (known.empty() ? "" : ", ") + std::string(searcher.name);
  }
  throw Error(fmt::format("unknown searcher '{}' (known: {})", name, known));
}

}  // namespace pascaline
