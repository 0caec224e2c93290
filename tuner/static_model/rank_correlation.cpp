#include "tuner/static_model/rank_correlation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"

namespace pascaline {
namespace {

void require_comparable(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    throw Error(fmt::format("cannot compare the order of {} values with that of {}", a.size(), b.size()));
  }
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (std::any_of(a.begin(), a.end(), is_nan) || std::any_of(b.begin(), b.end(), is_nan)) {
    throw Error("cannot rank values that include NaN");
  }
}

std::vector<std::size_t> order_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

std::size_t count_of(double share, std::size_t all) {
  const auto count = static_cast<std::size_t>(std::llround(share * static_cast<double>(all)));
  return std::clamp<std::size_t>(count, 1, all);
}

}  // namespace

std::vector<double> ranks_of(std::span<const double> values) {
  const std::vector<std::size_t> order = order_of(values);
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) {
      ++end;
    }
    const double rank = static_cast<double>(first + 1 + end) / 2;
    for (; first < end; ++first) {
      ranks[order[first]] = rank;
    }
  }
  return ranks;
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  require_comparable(a, b);
  if (a.size() < 2) {
    return 0;
  }
  const std::vector<double> left = ranks_of(a);
  const std::vector<double> right = ranks_of(b);
  const double mean = static_cast<double>(a.size() + 1) / 2;
  double both = 0;
  double squares_left = 0;
  double squares_right = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (left[i] - mean) * (right[i] - mean);
    squares_left += (left[i] - mean) * (left[i] - mean);
    squares_right += (right[i] - mean) * (right[i] - mean);
  }
  const double scale = std::sqrt(squares_left * squares_right);
  return scale > 0 ? both / scale : 0;
}

double share_found(std::span<const double> actual, std::span<const double> predicted, double sought, double kept) {
  require_comparable(actual, predicted);
  if (actual.empty()) {
    return 0;
  }
  const std::vector<std::size_t> best = order_of(actual);
  const std::vector<std::size_t> likely = order_of(predicted);
  const std::size_t wanted = count_of(sought, best.size());
  const auto end = likely.begin() + static_cast<std::ptrdiff_t>(count_of(kept, likely.size()));
  const auto found = std::count_if(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(wanted),
                                   [&](std::size_t index) { return std::find(likely.begin(), end, index) != end; });
  return static_cast<double>(found) / static_cast<double>(wanted);
}

}  // namespace pascaline
