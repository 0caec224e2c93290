#include "tuner/search/walking_searchers.hpp"

#include <algorithm>
#include <cmath>

namespace pascaline {
namespace {

constexpr double kFirstTemperature = 0.5;  // of the difference of the times' logarithms
constexpr double kLastTemperature = 0.01;
constexpr std::size_t kPopulation = 20;
constexpr std::size_t kTournament = 3;
constexpr int kMaxMutations = 200;

void shuffle(std::vector<Point>& points, SearchRandom& random) {
  for (std::size_t i = points.size(); i > 1; --i) {
    std::swap(points[i - 1], points[below(random, i)]);
  }
}

template <typename Step>
std::vector<Point> collect(std::size_t count, FreshPoints& points, Step&& step) {
  std::vector<Point> out;
  while (out.size() < count) {
    std::optional<Point> next = step();
    if (!next) {
      break;
    }
    points.note(*next);
    out.push_back(std::move(*next));
  }
  return out;
}

}  // namespace

AnnealingSearcher::AnnealingSearcher(const SearchDomain& domain, const SearchOptions& options)
    : points_(domain, options.seed), expected_trials_(std::max(1, options.expected_trials)) {}

std::optional<Point> AnnealingSearcher::step() {
  if (here_) {
    std::vector<Point> near = points_.domain().neighbours(here_->first, Reach::any);
    std::erase_if(near, [&](const Point& point) { return points_.seen(point); });
    if (!near.empty()) {
      return near[below(points_.random(), near.size())];
    }
    here_.reset();
  }
  return points_.draw();
}

std::vector<Point> AnnealingSearcher::propose(std::size_t count) {
  return collect(count, points_, [&] { return step(); });
}

void AnnealingSearcher::observe(const Point& point, const Observation& observation) {
  points_.note(point);
  const double progress = std::min(1.0, static_cast<double>(observed_++) / expected_trials_);
  if (!has_time(observation.status)) {
    return;
  }
  const double log_time = std::log(observation.time_us);
  const double temperature = kFirstTemperature * std::pow(kLastTemperature / kFirstTemperature, progress);
  if (!here_ || log_time < here_->second ||
      uniform(points_.random()) < std::exp((here_->second - log_time) / temperature)) {
    here_.emplace(point, log_time);
  }
}

LocalSearcher::LocalSearcher(const SearchDomain& domain, const SearchOptions& options)
    : points_(domain, options.seed) {}

void LocalSearcher::surround(const Point& point) {
  std::vector<Point> near = points_.domain().neighbours(point, Reach::any);
  shuffle(near, points_.random());
  around_.assign(near.begin(), near.end());
}

std::optional<Point> LocalSearcher::step() {
  while (!around_.empty()) {
    Point next = std::move(around_.front());
    around_.pop_front();
    if (!points_.seen(next)) {
      return next;
    }
  }
  if (pending_ == 0) {  // the point is a local optimum
    here_.reset();
  }
  return points_.draw();
}

std::vector<Point> LocalSearcher::propose(std::size_t count) {
  return collect(count, points_, [&] {
    auto next = step();
    pending_ += next ? 1 : 0;
    return next;
  });
}

void LocalSearcher::observe(const Point& point, const Observation& observation) {
  points_.note(point);
  pending_ -= std::min<std::size_t>(pending_, 1);
  if (has_time(observation.status) && (!here_ || observation.time_us < here_->second)) {
    here_.emplace(point, observation.time_us);
    surround(point);
  }
}

GeneticSearcher::GeneticSearcher(const SearchDomain& domain, const SearchOptions& options)
    : points_(domain, options.seed) {}

const Point& GeneticSearcher::parent() {
  const std::pair<double, Point>* best = nullptr;
  for (std::size_t i = 0; i < kTournament; ++i) {
    const auto& drawn = population_[below(points_.random(), population_.size())];
    best = best == nullptr || drawn.first < best->first ? &drawn : best;
  }
  return best->second;
}

std::optional<Point> GeneticSearcher::child() {
  SearchRandom& random = points_.random();
  if (begun_ < kPopulation || population_.size() < 2) {
    ++begun_;
    return points_.draw();
  }
  Point child = parent();
  const Point& other = parent();
  for (std::size_t i = 0; i < child.size(); ++i) {
    child[i] = random() % 2 == 0 ? child[i] : other[i];
  }
  for (int mutation = 0; mutation < kMaxMutations; ++mutation) {
    if (!points_.seen(child) && points_.domain().contains(child)) {
      return child;
    }
    const std::size_t axis = below(random, child.size());
    child[axis] = static_cast<std::uint16_t>(below(random, points_.domain().axes()[axis].values.size()));
    if (mutation % 10 == 9) {
      child = parent();
    }
  }
  return points_.draw();
}

std::vector<Point> GeneticSearcher::propose(std::size_t count) {
  return collect(count, points_, [&] { return child(); });
}

void GeneticSearcher::observe(const Point& point, const Observation& observation) {
  points_.note(point);
  if (!has_time(observation.status)) {
    return;
  }
  if (population_.size() < kPopulation) {
    population_.emplace_back(observation.time_us, point);
    return;
  }
  const auto slowest = std::max_element(population_.begin(), population_.end());
  if (observation.time_us < slowest->first) {
    *slowest = {observation.time_us, point};
  }
}

}  // namespace pascaline
