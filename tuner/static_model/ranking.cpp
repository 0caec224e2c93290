#include "tuner/static_model/ranking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {
namespace {

struct Drawn {
  std::optional<std::uint64_t> valid;
  std::vector<Point> sample;
};

// All of them, or the default and so many more of them, each with the same chance.
Drawn draw_valid(const BoundSpace& space, std::uint64_t most, std::uint64_t seed, const StopCheck& check) {
  const SearchDomain domain(space, SearchDomain::kMaxTuples, check);
  Drawn out;
  if (domain.exact() && domain.combinations() < static_cast<double>(std::numeric_limits<std::int64_t>::max())) {
    out.valid = static_cast<std::uint64_t>(domain.combinations());
    for (std::uint64_t number = 0; *out.valid <= most && number < *out.valid; ++number) {
      out.sample.push_back(*domain.at(number));
    }
    if (*out.valid <= most) {
      return out;
    }
  }
  SearchOptions search;
  search.seed = seed;
  const auto draws = make_searcher("random", domain, search);  // says so if nothing is valid
  const Point& standard = space.default_indices();
  if (domain.contains(standard)) {
    out.sample.push_back(standard);
    draws->observe(standard, {});
  }
  for (Point& point : draws->propose(most - out.sample.size())) {
    out.sample.push_back(std::move(point));
  }
  return out;
}

}  // namespace

void sort_by_time(std::vector<RankedConfig>& configs) {
  const auto key = [](const RankedConfig& ranked) {
    return std::pair(!ranked.code, ranked.code ? ranked.code->time_us() : ranked.estimate.time_us);
  };
  std::stable_sort(configs.begin(), configs.end(),
                   [&](const RankedConfig& a, const RankedConfig& b) { return key(a) < key(b); });
}

Ranking rank_configs(const BoundSpace& space, const DeviceRates& rates, std::size_t top, std::uint64_t most,
                     std::uint64_t seed, const StopCheck& check) {
  const Drawn drawn = draw_valid(space, std::max<std::uint64_t>(1, most), seed, check);
  if (drawn.sample.empty()) {
    throw SpaceError(space.space().file, "/constraints",
                     fmt::format("no configuration is valid for {} on a device with {} SMs", space.problem().text(),
                                 space.limits().sm_count));
  }
  const StaticModel model(space, rates);
  std::vector<std::pair<double, std::size_t>> times;
  times.reserve(drawn.sample.size());
  CheckedSteps steps(check);
  for (std::size_t i = 0; i < drawn.sample.size(); ++i) {
    steps.step();
    const auto time = model.time_us(drawn.sample[i]);
    if (!time) {
      // Says which configuration it is.
      (void)estimate(space, space.space().config_at(drawn.sample[i]), rates);
    }
    times.emplace_back(*time, i);
  }
  const std::size_t count = std::min(top, times.size());
  std::partial_sort(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count), times.end());
  Ranking out{drawn.valid, drawn.sample.size(), {}};
  for (std::size_t i = 0; i < count; ++i) {
    const Point& indices = drawn.sample[times[i].second];
    out.best.push_back({space.space().config_at(indices), *model.estimate(indices), std::nullopt, std::nullopt});
  }
  return out;
}

}  // namespace pascaline
