#include "tuner/sweep/proposals.hpp"

#include <algorithm>
#include <set>

#include "runtime/dispatch/closest_valid.hpp"

namespace pascaline {

Proposals::Proposals(const BoundSpace& bound, SearchedPart part, Options options)
    : bound_(bound), part_(part), options_(std::move(options)), stop_rule_(options_.min_gain) {}

bool Proposals::lists(const Config& config) const { return std::ranges::find(first_, config) != first_.end(); }

std::vector<bool> Proposals::add_winners(const std::vector<Config>& winners, const Config& default_config,
                                         std::size_t defaults, const CandidateTable& table) {
  const auto standard = std::ranges::find(first_, default_config);
  std::size_t at = standard == first_.end()
                       ? 0
                       : static_cast<std::size_t>(standard - first_.begin()) + std::max<std::size_t>(1, defaults);
  std::vector<bool> among;
  for (const Config& winner : winners) {
    const auto config = nearest_valid(bound_, winner);
    among.push_back(config && part_.holds(bound_.space().indices_of(*config)) && table.find(*config) == nullptr);
    if (!among.back() || *config == default_config) {
      continue;
    }
    const auto twin = std::ranges::find(first_, *config);
    if (twin != first_.end()) {
      if (static_cast<std::size_t>(twin - first_.begin()) < at) {
        continue;
      }
      first_.erase(twin);
    }
    at = std::min(at, first_.size());
    first_.insert(first_.begin() + static_cast<std::ptrdiff_t>(at++), *config);
  }
  return among;
}

SearchDomain& Proposals::domain() {
  if (!domain_) {
    domain_.emplace(bound_, part_.part, part_.parameters, SearchDomain::kMaxTuples, check_);
  }
  return *domain_;
}

std::vector<Config> Proposals::untried_near(const std::vector<Config>& centres, std::size_t most,
                                            const CandidateTable& table) {
  const Space& space = bound_.space();
  std::vector<Config> found;
  std::set<std::string> taken;
  const auto add = [&](const Config& config) {
    if (found.size() < most && part_.holds(space.indices_of(config)) && table.find(config) == nullptr &&
        taken.insert(config.text()).second) {
      found.push_back(config);
    }
  };
  std::vector<Point> points;
  for (const Config& centre : centres) {
    if (const auto config = nearest_valid(bound_, centre)) {
      add(*config);
      points.push_back(space.indices_of(*config));
    }
  }
  for (const Reach reach : {Reach::any, Reach::pair}) {
    for (const Point& point : points) {
      if (found.size() == most) {
        return found;
      }
      for (const Point& neighbour : domain().neighbours(point, reach)) {
        add(space.config_at(neighbour));
      }
    }
  }
  return found;
}

void Proposals::try_only(const std::vector<Config>& configs) {
  spent_before_ = spent_;
  spent_ = false;
  first_.assign(configs.begin(), configs.end());
}

void Proposals::search_on() {
  if (spent_before_) {
    first_.clear();
    spent_ = *std::exchange(spent_before_, std::nullopt);
  }
}

void Proposals::begin_search() {
  SearchOptions search;
  search.seed = options_.seed;
  search.expected_trials = expected_trials_;
  if (knowledge_) {
    search.priors = knowledge_(domain());
  }
  searcher_ = make_searcher(options_.searcher, domain(), search);
  for (const auto& [config, observation] : std::exchange(observed_, {})) {
    observe(config, observation);
  }
}

std::optional<Proposals::Proposal> Proposals::next() {
  looking_ = false;
  if (!spent_ && !first_.empty()) {
    Proposal next{std::move(first_.front())};
    first_.pop_front();
    return next;
  }
  spent_ = spent_ || only_list();
  if (spent_) {
    return std::nullopt;
  }
  if (!searcher_) {
    begin_search();
  }
  const std::vector<Point> points = searcher_->propose(1);
  looking_ = points.empty() && searcher_->looking();
  if (looking_) {
    return std::nullopt;
  }
  little_left_ = !points.empty() && stop_rule_.is_reached(*searcher_);
  spent_ = points.empty() || (little_left_ && options_.ends_with_little_left);
  return spent_ ? std::nullopt : std::optional(Proposal{bound_.space().config_at(points.front()), true});
}

void Proposals::observe(const Config& config, const Observation& observation) {
  if (searcher_) {
    searcher_->observe(bound_.space().indices_of(config), observation);
  } else {
    observed_.emplace_back(config, observation);
  }
}

}  // namespace pascaline
