#include "tuner/search/fresh_points.hpp"

#include <numeric>
#include <utility>

namespace pascaline {
namespace {

// Up to so many numbers are shuffled, so that the last point is found as fast as the first.
constexpr double kMaxShuffled = 2'000'000;
constexpr int kMaxRepeats = 1'000;

}  // namespace

bool FreshPoints::note(const Point& point) {
  const bool fresh = seen_.insert(point).second;
  if (fresh && domain_->combinations() > kMaxShuffled) {
    noted_.push_back(point);
  }
  return fresh;
}

std::optional<Point> FreshPoints::draw_neighbour() {
  for (; centre_ < noted_.size(); ++centre_) {
    for (const Reach reach : {Reach::any, Reach::pair}) {
      for (Point& point : domain_->neighbours(noted_[centre_], reach)) {
        if (!seen(point)) {
          return std::move(point);
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<Point> FreshPoints::take() {
  auto point = draw();
  if (point) {
    note(*point);
    if (!left_.empty()) {
      left_.pop_back();  // where `draw` left it
    }
  }
  return point;
}

std::optional<Point> FreshPoints::draw() {
  if (domain_->combinations() > kMaxShuffled) {
    for (int repeat = 0; repeat < kMaxRepeats; ++repeat) {
      auto point = domain_->sample(random_);
      if (!point) {
        break;
      }
      if (!seen(*point)) {
        return point;
      }
    }
    return draw_neighbour();
  }
  if (!std::exchange(listed_, true)) {
    left_.resize(static_cast<std::size_t>(domain_->combinations()));
    std::iota(left_.begin(), left_.end(), std::uint64_t{0});
  }
  while (!left_.empty()) {
    std::swap(left_[below(random_, left_.size())], left_.back());
    auto point = domain_->at(left_.back());
    if (!point || seen(*point)) {
      left_.pop_back();
      continue;
    }
    return point;
  }
  return std::nullopt;
}

}  // namespace pascaline
