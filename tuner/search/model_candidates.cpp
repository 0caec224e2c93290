#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "tuner/search/model_searcher.hpp"

// Which configurations the model is asked about.
namespace pascaline {
namespace {

constexpr std::size_t kMuchKnown = 256;     // trials after which a space is no candidate whole any more
constexpr std::size_t kMaxKept = 4'000;     // but this many of it
constexpr std::size_t kMinFresh = 500;      // as long as this many of them were not seen
constexpr std::size_t kPool = 3'000;        // candidates of a larger one, drawn once
constexpr std::size_t kFreshPool = 500;     // and again at each fit
constexpr std::size_t kBestSurrounded = 5;  // whose neighbours are candidates, too
constexpr std::size_t kMaxNear = 400;       // neighbours of one
constexpr double kFailureReach = 20.0;

}  // namespace

// Everything, or what was drawn at first, some more, and the neighbourhoods of the best.
void ModelSearcher::choose_candidates() {
  if (whole_ && !candidates_.empty()) {
    return;
  }
  const SearchDomain& domain = points_.domain();
  candidates_.clear();
  index_.clear();
  candidate_rows_ = Rows(kinds_.size());
  posterior_.reset();
  if (whole_) {
    for (std::uint64_t number = 0; static_cast<double>(number) < domain.combinations(); ++number) {
      if (const auto point = domain.at(number)) {
        std::ignore = candidate(*point);
      }
    }
    return;
  }
  while (pool_.size() < kPool) {
    auto point = domain.sample(points_.random());
    if (!point) {
      break;
    }
    pool_.push_back(std::move(*point));
  }
  for (const Point& point : pool_) {
    std::ignore = candidate(point);
  }
  for (std::size_t i = 0; i < kFreshPool; ++i) {
    if (const auto point = domain.sample(points_.random())) {
      std::ignore = candidate(*point);
    }
  }
  const std::vector<std::size_t> order = by_time();
  for (std::size_t i = 0; i < std::min(order.size(), kBestSurrounded); ++i) {
    for (const Reach reach : {Reach::any, Reach::pair}) {
      add_neighbours(observed_[order[i]].point, reach);
    }
  }
}

// All of them, or so many drawn from them.
void ModelSearcher::add_neighbours(const Point& point, Reach reach) {
  std::vector<Point> near = points_.domain().neighbours(point, reach);
  for (std::size_t i = 0; near.size() > kMaxNear && i < kMaxNear; ++i) {
    std::swap(near[i], near[i + below(points_.random(), near.size() - i)]);
  }
  near.resize(std::min(near.size(), kMaxNear));
  for (const Point& each : near) {
    std::ignore = candidate(each);
  }
}

// A space that is a candidate whole is one only as long as little is known: most of it cannot be good after some
// hundred trials, and what a proposal costs goes with the candidates.
void ModelSearcher::narrow_candidates() {
  if (!whole_ || !posterior_ || observed_.size() < kMuchKnown) {
    return;
  }
  const auto fresh =
      static_cast<std::size_t>(std::count_if(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
        return !points_.seen(candidate.point);
      }));
  if (fresh < kMinFresh) {
    candidates_.clear();  // all are listed again
    return;
  }
  if (candidates_.size() <= kMaxKept) {
    return;
  }
  const std::vector<double> bounds = lower_bounds();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (!points_.seen(candidates_[i].point)) {
      order.push_back(i);
    }
  }
  if (order.size() > kMaxKept) {
    std::nth_element(order.begin(), order.begin() + kMaxKept, order.end(),
                     [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
    order.resize(kMaxKept);
  }
  std::vector<Candidate> kept;
  Rows rows(kinds_.size());
  index_.clear();
  for (const std::size_t i : order) {
    index_.emplace(candidates_[i].point, kept.size());
    kept.push_back(std::move(candidates_[i]));
    rows.add(candidate_rows_[i]);
  }
  candidates_ = std::move(kept);
  candidate_rows_ = std::move(rows);
}

// Index of the point among the candidates; it becomes one if it is none.
std::size_t ModelSearcher::candidate(const Point& point) {
  const auto [entry, added] = index_.try_emplace(point, candidates_.size());
  if (added) {
    const std::vector<float> here = row(point);
    Candidate fresh{point, before(point)};
    weigh(fresh, here, 0, weighed_);
    candidates_.push_back(std::move(fresh));
    candidate_rows_.add(here);
    if (posterior_) {
      posterior_->add_candidate(here);
    }
  }
  return entry->second;
}

// Failures are smoothed over their surroundings: a kernel regression with a small weight of success everywhere.
void ModelSearcher::weigh(Candidate& candidate, std::span<const float> row, std::size_t from, std::size_t to) const {
  const double reach = kFailureReach * std::min(1.0, 8.0 / static_cast<double>(std::max<std::size_t>(plain_, 1)));
  for (std::size_t i = from; i < to; ++i) {
    const auto weight = static_cast<float>(std::exp(-reach * apart(row, observed_rows_[i])));
    candidate.near += weight;
    candidate.failed += observed_[i].failed ? weight : 0;
  }
}

}  // namespace pascaline
