#include "tuner/search/model_searcher.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <tuple>

namespace pascaline {
namespace {

constexpr std::size_t kFirstDesign = 6;        // trials before the model is asked
constexpr std::size_t kJudged = 8;             // trials before its expectations may end a search
constexpr std::size_t kMinUsable = 4;          // times it needs at least
constexpr std::size_t kDrawn = 20;             // of which the most distant is taken
constexpr int kClimbs = 3;                     // from the best candidate to a better neighbour
constexpr std::size_t kMaxFitted = 150;        // observations that the covariance is fitted to
constexpr std::size_t kMaxObservations = 256;  // that the posterior begins with
constexpr std::size_t kMaxFailures = 150;      // and the last failures
constexpr double kFitAgain = 1.25;
constexpr int kFitSteps = 12;
constexpr double kBound = 2.0;  // standard deviations below the mean
constexpr double kRiskWeight = 0.3;
constexpr double kNegligible = 5;  // standard deviations slower than the best
constexpr std::size_t kPriorSample = 256;
constexpr double kBestByPrior = 0.05;

constexpr std::size_t kMuchKnown = 256;     // trials after which a space is not taken whole any more
constexpr std::size_t kMaxKept = 4'000;     // but this many of it
constexpr std::size_t kMinFresh = 500;      // as long as this many of them were not seen
constexpr std::size_t kPool = 3'000;        // candidates of a larger one, drawn once
constexpr std::size_t kFreshPool = 500;     // and again at each fit
constexpr std::size_t kBestSurrounded = 5;  // whose neighbours are candidates, too
constexpr std::size_t kMaxNear = 400;       // neighbours of one
constexpr double kFailureReach = 20.0;

}  // namespace

ModelSearcher::ModelSearcher(const SearchDomain& domain, const SearchOptions& options)
    : points_(domain, options.seed), coordinates_(domain.axes()), priors_(options.priors) {
  kinds_ = coordinates_.kinds();
  plain_ = kinds_.size();
  kinds_.insert(kinds_.end(), priors_.size(), CoordinateKind::linear);
  covariance_ = first_covariance(kinds_);
  whole_ = domain.combinations() <= static_cast<double>(kMaxWhole);
  prior_centres_.assign(priors_.size(), 0);
  if (!priors_.empty()) {
    for (std::size_t i = 0; i < kPriorSample; ++i) {
      if (const auto point = domain.sample(points_.random())) {
        for (std::size_t k = 0; k < priors_.size(); ++k) {
          prior_centres_[k] += priors_[k].log_time(*point) / kPriorSample;
        }
      }
    }
  }
}

std::vector<Point> ModelSearcher::propose(std::size_t count) {
  std::vector<Point> out;
  while (out.size() < count) {
    auto point = next();
    if (!point) {
      break;
    }
    points_.note(*point);
    pending_.push_back({*point, std::nullopt});
    out.push_back(std::move(*point));
  }
  return out;
}

void ModelSearcher::observe(const Point& point, const Observation& observation) {
  points_.note(point);
  const bool usable = has_time(observation.status) && observation.time_us > 0;
  const std::size_t index = observed_.size();
  observed_.push_back({point, usable ? std::log(observation.time_us) : 0, !usable});
  observed_rows_.push_back(row(point));
  if (usable) {
    least_log_ = usable_ == 0 ? observed_.back().log_time : std::min(least_log_, observed_.back().log_time);
    ++usable_;
  }
  any_failed_ = any_failed_ || !usable;
  const auto out = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& p) { return p.point == point; });
  if (posterior_ && out != pending_.end() && out->believed) {
    revise(*out->believed, index);
  } else {
    waiting_.push_back(index);
  }
  if (out != pending_.end()) {
    pending_.erase(out);
  }
}

std::optional<Point> ModelSearcher::next() {
  if (candidates_.empty()) {
    choose_candidates();
  }
  const bool ready = usable_ >= kMinUsable && points_.seen() >= kFirstDesign && plain_ > 0;
  auto point = ready ? best_by_model() : spread_out();
  return point ? point : points_.draw();
}

// Half of the first design are the most distant of some draws; the other half, where there is a prior, the most distant
// among those it likes best.
std::optional<Point> ModelSearcher::spread_out() {
  std::vector<Point> drawn;
  if (!priors_.empty() && points_.seen() % 2 == 0) {
    std::vector<std::size_t> order(candidates_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return candidates_[a].before < candidates_[b].before; });
    const auto liked = static_cast<std::size_t>(kBestByPrior * static_cast<double>(order.size())) + 1;
    const std::size_t most = points_.seen() == 0 ? 1 : liked;
    for (std::size_t i = 0; i < order.size() && drawn.size() < most; ++i) {
      if (!points_.seen(candidates_[order[i]].point)) {
        drawn.push_back(candidates_[order[i]].point);
      }
    }
  }
  for (std::size_t i = 0; drawn.empty() || (priors_.empty() && i < kDrawn); ++i) {
    auto point = points_.draw();
    if (!point) {
      break;
    }
    drawn.push_back(std::move(*point));
  }
  std::optional<Point> best;
  double most_apart = -1;
  for (const Point& point : drawn) {
    const std::vector<float> here = row(point);
    double least = std::numeric_limits<double>::max();
    for (const auto& there : observed_rows_) {
      least = std::min(least, apart(here, there));
    }
    for (const Pending& other : pending_) {
      least = std::min(least, apart(here, row(other.point)));
    }
    if (least > most_apart) {
      most_apart = least;
      best = point;
    }
  }
  return best;
}

std::optional<Point> ModelSearcher::best_by_model() {
  take_in();
  believe();
  auto best = least_bound();
  for (int climb = 0; best && !whole_ && climb < kClimbs; ++climb) {
    const std::size_t from = *best;
    const Point here = candidates_[from].point;
    add_neighbours(here, Reach::any);
    best = least_bound();
    if (best == from) {
      break;
    }
  }
  by_model_ = true;
  by_model_point_ = best ? std::optional(candidates_[*best].point) : std::nullopt;
  least_at_proposal_ = least_log_;
  improvement_.reset();
  return by_model_point_;
}

// The candidate not seen whose time may well be the least.
std::optional<std::size_t> ModelSearcher::least_bound() {
  const std::vector<double> bounds = lower_bounds();
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (bounds[i] < least && !points_.seen(candidates_[i].point)) {
      least = bounds[i];
      best = i;
    }
  }
  return best;
}

// What the logarithm of each candidate's time may well be at best.
std::vector<double> ModelSearcher::lower_bounds() {
  posterior_->predict(expected_, deviations_);
  const double scale = posterior_->deviation();
  std::vector<double> bounds(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    bounds[i] = candidate.before + expected_[i] - kBound * deviations_[i];
    if (any_failed_) {
      bounds[i] -= kRiskWeight * scale * std::log(1 - risk(candidate) + 1e-3);
    }
  }
  return bounds;
}

// How likely a candidate fails, by the failures near it.
double ModelSearcher::risk(const Candidate& candidate) const {
  return std::min(1.0, (static_cast<double>(candidate.failed) + 0.05) / (static_cast<double>(candidate.near) + 0.5));
}

std::optional<double> ModelSearcher::expected_improvement() const {
  if (by_model_ && !improvement_ && points_.seen() > kJudged) {
    improvement_ = largest_improvement();
  }
  return improvement_;
}

// By the predictions of the last proposal. What was proposed by them was not seen then.
double ModelSearcher::largest_improvement() const {
  double most = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const double faster = least_at_proposal_ - candidates_[i].before - expected_[i];
    const double deviation = deviations_[i];
    if (!(deviation > 0) || faster < -kNegligible * deviation ||
        (points_.seen(candidates_[i].point) && candidates_[i].point != by_model_point_)) {
      continue;
    }
    const double z = faster / deviation;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double gain = faster * std::erfc(-z / std::numbers::sqrt2) / 2 + deviation * density;
    most = std::max(most, gain * (any_failed_ ? 1 - risk(candidates_[i]) : 1));
  }
  return most;
}

// Adds what is out as if it were as expected.
void ModelSearcher::believe() {
  for (Pending& pending : pending_) {
    if (!pending.believed) {
      const std::vector<float> here = row(pending.point);
      pending.believed = posterior_->observations();
      posterior_->observe(here, posterior_->expected(here));
    }
  }
}

void ModelSearcher::take_in() {
  if (!posterior_ || usable_ >= next_fit_) {
    rebuild();
  }
  for (const std::size_t index : waiting_) {
    take_in(index);
  }
  waiting_.clear();
  if (any_failed_ && weighed_ < observed_.size()) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      weigh(candidates_[i], candidate_rows_[i], weighed_, observed_.size());
    }
    weighed_ = observed_.size();
  }
}

// A failure is taken in as if it were what is expected there, but no better than the mean: what failed is not unknown
// any more, or the search would go on looking where nothing works.
void ModelSearcher::take_in(std::size_t index) {
  const std::span<const float> here = observed_rows_[index];
  posterior_->observe(here, observed_[index].failed ? std::max(posterior_->expected(here), posterior_->mean())
                                                    : value(observed_[index]));
}

// What was believed has come.
void ModelSearcher::revise(std::size_t believed, std::size_t index) {
  posterior_->revise(believed, observed_[index].failed ? std::max(posterior_->value(believed), posterior_->mean())
                                                       : value(observed_[index]));
}

void ModelSearcher::rebuild() {
  next_fit_ = std::max(usable_ + 1, static_cast<std::size_t>(static_cast<double>(usable_) * kFitAgain));
  Rows rows(kinds_.size());
  std::vector<double> values;
  for (const std::size_t i : selection(kMaxFitted)) {
    rows.add(observed_rows_[i]);
    values.push_back(value(observed_[i]));
  }
  fit_covariance(covariance_, rows, std::move(values), kFitSteps);
  narrow_candidates();
  choose_candidates();
  posterior_.emplace(covariance_, candidate_rows_);
  for (Pending& pending : pending_) {
    pending.believed.reset();
  }
  for (const std::size_t i : selection(kMaxObservations)) {
    take_in(i);
  }
  std::size_t failures = 0;
  for (std::size_t i = observed_.size(); i-- > 0 && failures < kMaxFailures;) {
    if (observed_[i].failed) {
      take_in(i);
      ++failures;
    }
  }
  waiting_.clear();
}

// Usable observations, the fastest first.
std::vector<std::size_t> ModelSearcher::by_time() const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < observed_.size(); ++i) {
    if (!observed_[i].failed) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return observed_[a].log_time < observed_[b].log_time; });
  return order;
}

// The usable observations, or half of `most` from the fastest and half from the others.
std::vector<std::size_t> ModelSearcher::selection(std::size_t most) {
  std::vector<std::size_t> order = by_time();
  if (order.size() <= most) {
    return order;
  }
  for (std::size_t i = most / 2; i < most; ++i) {
    std::swap(order[i], order[i + below(points_.random(), order.size() - i)]);
  }
  order.resize(most);
  return order;
}

std::vector<float> ModelSearcher::row(const Point& point) const {
  std::vector<float> out(kinds_.size());
  coordinates_.write(point, std::span(out).first(plain_));
  for (std::size_t k = 0; k < priors_.size(); ++k) {
    out[plain_ + k] = static_cast<float>(priors_[k].log_time(point) - prior_centres_[k]);
  }
  return out;
}

double ModelSearcher::before(const Point& point) const {
  double sum = 0;
  double trust = 0;
  for (std::size_t k = 0; k < priors_.size(); ++k) {
    sum += priors_[k].trust * (priors_[k].log_time(point) - prior_centres_[k]);
    trust += priors_[k].trust;
  }
  return sum / std::max(1.0, trust);
}

// What the process is of: what the priors leave unsaid.
double ModelSearcher::value(const Seen& seen) const { return seen.log_time - before(seen.point); }

double ModelSearcher::apart(std::span<const float> a, std::span<const float> b) const {
  double sum = 0;
  for (std::size_t i = 0; i < plain_; ++i) {
    const double difference = coordinate_difference(kinds_[i], a[i], b[i]);
    sum += difference * difference;
  }
  return sum;
}

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
