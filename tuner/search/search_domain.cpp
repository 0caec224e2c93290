#include "tuner/search/search_domain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr double kFirstDraws = 100'000;  // combinations looked at before draws are given up,
constexpr double kMaxDraws = 2'000;      // and so many more for each valid one
constexpr std::size_t kMinSteps = 32;    // of a walk from one draw to the next
constexpr std::size_t kMaxWalks = 16;    // of that length, for each part of the space, until one ends in this part
constexpr std::size_t kMaxPairs = 500;   // of parameters whose joint steps are looked at
constexpr double kMaxNumbers = 9.2e18;
constexpr std::size_t kMaxValuesVisited = 64;

double product_of_sizes(const std::vector<TupleList>& groups) {
  double product = 1;
  for (const TupleList& group : groups) {
    product *= static_cast<double>(group.size());
  }
  return product;
}

}  // namespace

std::uint64_t below(SearchRandom& random, std::uint64_t count) {
  const std::uint64_t rest = (std::numeric_limits<std::uint64_t>::max() - count + 1) % count;
  for (;;) {
    const std::uint64_t drawn = random();
    if (drawn <= std::numeric_limits<std::uint64_t>::max() - rest) {
      return drawn % count;
    }
  }
}

double uniform(SearchRandom& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

SearchDomain::SearchDomain(const BoundSpace& space, std::size_t most_tuples, const StopCheck& check)
    : SearchDomain(space, SpacePart(), space.space().parameters.size(), most_tuples, check) {}

SearchDomain::SearchDomain(const BoundSpace& space, SpacePart part, std::size_t parameters, std::size_t most_tuples,
                           const StopCheck& check)
    : space_(&space), part_(part), part_parameters_(parameters) {
  for (const Parameter& parameter : space.space().parameters) {
    axes_.push_back({parameter.name, parameter.values});
  }
  ConstraintGroups found = constraint_groups(space, most_tuples, check);
  groups_ = std::move(found.groups);
  exact_ = found.exact && part_.is_whole();
  combinations_ = product_of_sizes(groups_);
  enumerator_.emplace(space, check);
  const Point& standard = space.default_indices();
  if (enumerator_->valid(standard)) {
    draws_.last = standard;
  }
}

bool SearchDomain::in_part(const Point& point) const { return part_.holds(std::span(point).first(part_parameters_)); }

SearchDomain::SearchDomain(std::vector<Axis> axes, const std::vector<Point>& points) : axes_(std::move(axes)) {
  TupleList all;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    all.axes.push_back(i);
  }
  for (const Point& point : points) {
    if (point.size() != axes_.size()) {
      throw Error(fmt::format("a point has {} indices, the domain {} parameters", point.size(), axes_.size()));
    }
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (point[i] >= axes_[i].values.size()) {
        throw Error(fmt::format("parameter {} has {} values, a point has the index {}", axes_[i].name,
                                axes_[i].values.size(), point[i]));
      }
    }
    if (recorded_.insert(point).second) {
      all.indices.insert(all.indices.end(), point.begin(), point.end());
    }
  }
  if (!axes_.empty()) {
    groups_.push_back(std::move(all));
  }
  combinations_ = static_cast<double>(recorded_.size());
}

bool SearchDomain::contains(const Point& point) const {
  if (!enumerator_) {
    return recorded_.contains(point);
  }
  return in_part(point) && enumerator_->valid(point);
}

void SearchDomain::put(std::size_t group, std::size_t tuple, Point& point) const {
  const auto values = groups_[group].at(tuple);
  for (std::size_t i = 0; i < values.size(); ++i) {
    point[groups_[group].axes[i]] = values[i];
  }
}

std::optional<Point> SearchDomain::at(std::uint64_t number) const {
  if (combinations_ > kMaxNumbers) {
    throw Error("the space has too many configurations to number them");
  }
  Point point(axes_.size());
  for (std::size_t group = groups_.size(); group-- > 0;) {
    put(group, number % groups_[group].size(), point);
    number /= groups_[group].size();
  }
  return exact_ || contains(point) ? std::optional(std::move(point)) : std::nullopt;
}

std::optional<Point> SearchDomain::sample(SearchRandom& random) const {
  if (combinations_ == 0) {
    return std::nullopt;
  }
  while (!draws_.given_up) {
    auto point = draw_combination(random);
    if (exact_) {
      return point;
    }
    draws_.tried += 1;
    if (contains(*point)) {
      draws_.valid += 1;
      draws_.last = *point;
      return point;
    }
    draws_.given_up = draws_.tried > kFirstDraws + kMaxDraws * draws_.valid;
  }
  return walk(random);
}

std::optional<Point> SearchDomain::draw_combination(SearchRandom& random) const {
  Point point(axes_.size());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    put(group, below(random, groups_[group].size()), point);
  }
  return point;
}

// Every change is as likely as the one that undoes it. It goes through the whole space, and ends where the part is.
std::optional<Point> SearchDomain::walk(SearchRandom& random) const {
  if (!draws_.last) {
    return std::nullopt;
  }
  Point& here = *draws_.last;
  const std::size_t steps = std::max(kMinSteps, axes_.size());
  const std::size_t most = steps * kMaxWalks * static_cast<std::size_t>(part_.count);
  for (std::size_t step = 0; step < steps || (!in_part(here) && step < most); ++step) {
    Point there = here;
    if (random() % 2 == 0) {
      const std::size_t axis = below(random, axes_.size());
      there[axis] = static_cast<std::uint16_t>(below(random, axes_[axis].values.size()));
    } else {
      for (int part = 0; part < 2; ++part) {
        const std::size_t axis = below(random, axes_.size());
        there[axis] = static_cast<std::uint16_t>(there[axis] + (random() % 2 == 0 ? 1 : -1));
      }
    }
    bool within = true;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      within = within && there[axis] < axes_[axis].values.size();
    }
    if (within && enumerator_->valid(there)) {
      here = std::move(there);
    }
  }
  return in_part(here) ? std::optional(here) : std::nullopt;
}

std::vector<Point> SearchDomain::neighbours(const Point& point, Reach reach) const {
  std::vector<Point> found;
  Point other = point;
  const auto steps = [&](std::size_t axis, const auto& visit) {
    const std::uint16_t here = point[axis];
    for (const int step : {-1, 1}) {
      const int there = here + step;
      if (there >= 0 && there < static_cast<int>(axes_[axis].values.size())) {
        other[axis] = static_cast<std::uint16_t>(there);
        visit();
      }
    }
    other[axis] = here;
  };
  const auto keep = [&] {
    if (contains(other)) {
      found.push_back(other);
    }
  };
  const std::size_t pair_stride = axes_.size() * axes_.size() / 2 / kMaxPairs + 1;
  std::size_t pair = PointHash()(point) % pair_stride;  // other pairs of other points
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    if (reach == Reach::step) {
      steps(axis, keep);
    } else if (reach == Reach::pair) {
      for (std::size_t second = axis + 1; second < axes_.size(); ++second, ++pair) {
        if (pair % pair_stride == 0) {
          steps(axis, [&] { steps(second, keep); });
        }
      }
    } else {
      const std::size_t count = axes_[axis].values.size();
      const std::size_t stride = (count + kMaxValuesVisited - 1) / kMaxValuesVisited;
      for (std::size_t value = point[axis] % stride; value < count; value += stride) {
        if (value != point[axis]) {
          other[axis] = static_cast<std::uint16_t>(value);
          keep();
        }
      }
      other[axis] = point[axis];
    }
  }
  return found;
}

}  // namespace pascaline
