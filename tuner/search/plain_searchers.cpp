#include "tuner/search/plain_searchers.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr double kMaxExhaustive = 1e15;
constexpr int kLooksAtOnce = 50'000;  // some milliseconds

}  // namespace

ExhaustiveSearcher::ExhaustiveSearcher(const SearchDomain& domain) : domain_(domain) {
  if (domain.combinations() > kMaxExhaustive) {
    throw Error(fmt::format("about {:.1e} configurations are too many to try one by one: choose another --searcher",
                            domain.combinations()));
  }
}

std::vector<Point> ExhaustiveSearcher::propose(std::size_t count) {
  std::vector<Point> out;
  looking_ = false;
  for (int looks = 0; out.size() < count && static_cast<double>(next_) < domain_.combinations(); ++next_) {
    if (looks++ == kLooksAtOnce) {
      looking_ = true;
      break;
    }
    auto point = domain_.at(next_);
    if (point && !known_.contains(*point)) {
      out.push_back(std::move(*point));
    }
  }
  return out;
}

void ExhaustiveSearcher::observe(const Point& point, const Observation& /*observation*/) { known_.insert(point); }

std::vector<Point> RandomSearcher::propose(std::size_t count) {
  std::vector<Point> out;
  while (out.size() < count) {
    auto point = points_.take();
    if (!point) {
      break;
    }
    out.push_back(std::move(*point));
  }
  return out;
}

void RandomSearcher::observe(const Point& point, const Observation& /*observation*/) { points_.note(point); }

}  // namespace pascaline
