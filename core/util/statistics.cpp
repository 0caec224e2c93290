#include "core/util/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace pascaline {
namespace {

constexpr int kLargeSample = 70;
constexpr int kLargeSignTest = 500;  // 0.5^n leaves the range of doubles not far above
constexpr double kZ95 = 1.959963984540054;

// Largest r (1-based) with P(Binomial(n, 1/2) < r) <= 0.025: x[r] and x[n+1-r] bound the median at 95 %.
int lower_rank(int n) {
  if (n > kLargeSample) {
    return std::max(1, static_cast<int>(std::floor((n - kZ95 * std::sqrt(static_cast<double>(n))) / 2.0)));
  }
  double cumulative = 0;
  double term = std::pow(0.5, n);
  int rank = 0;
  for (int k = 0; k < n; ++k) {
    cumulative += term;
    if (cumulative > 0.025) {
      break;
    }
    rank = k + 1;
    term = term * (n - k) / (k + 1);
  }
  return std::max(1, rank);
}

// What NaN makes of a sort, or of a walk over equal values, is undefined or endless.
bool comparable(std::span<const double> a, std::span<const double> b) {
  const auto is_nan = [](double x) { return std::isnan(x); };
  return !a.empty() && !b.empty() && std::none_of(a.begin(), a.end(), is_nan) &&
         std::none_of(b.begin(), b.end(), is_nan);
}

double normal_two_sided_p(double z) { return std::erfc(std::abs(z) / std::sqrt(2.0)); }

// Number of (a, b) pairs with a < b, ties as one half.
double pairs_below(std::span<const double> a, std::span<const double> b) {
  std::vector<double> sorted(b.begin(), b.end());
  std::sort(sorted.begin(), sorted.end());
  double wins = 0;
  for (const double x : a) {
    const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), x);
    wins += static_cast<double>(sorted.end() - high) + 0.5 * static_cast<double>(high - low);
  }
  return wins;
}

}  // namespace

TimeSummary summarize(std::span<const Sample> samples, double clock_scale) {
  std::vector<double> times;
  for (const Sample& sample : samples) {
    if (sample.counted()) {
      times.push_back(clock_scale * sample.time_us);
    }
  }
  TimeSummary summary;
  if (times.empty()) {
    return summary;
  }
  const auto n = times.size();
  summary.count = static_cast<int>(n);
  if (std::any_of(times.begin(), times.end(), [](double time) { return std::isnan(time); })) {
    summary.median_us = summary.low_us = summary.high_us = std::numeric_limits<double>::quiet_NaN();
    return summary;
  }
  std::sort(times.begin(), times.end());
  summary.median_us = n % 2 == 1 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
  const auto rank = static_cast<std::size_t>(lower_rank(summary.count));
  summary.low_us = times[rank - 1];
  summary.high_us = times[n - rank];
  return summary;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle : 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

double relative_half_width(const TimeSummary& summary) noexcept {
  if (!(summary.median_us > 0) || !std::isfinite(summary.median_us)) {
    return std::numeric_limits<double>::infinity();
  }
  return 0.5 * (summary.high_us - summary.low_us) / summary.median_us;
}

double probability_faster(std::span<const double> a, std::span<const double> b) {
  if (!comparable(a, b)) {
    return 0.5;
  }
  return pairs_below(a, b) / (static_cast<double>(a.size()) * static_cast<double>(b.size()));
}

double mann_whitney_p(std::span<const double> a, std::span<const double> b) {
  if (!comparable(a, b)) {
    return 1.0;
  }
  const auto m = static_cast<double>(a.size());
  const auto n = static_cast<double>(b.size());
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  double ties = 0;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t j = i;
    while (j < all.size() && all[j] == all[i]) {
      ++j;
    }
    const auto t = static_cast<double>(j - i);
    ties += t * t * t - t;
    i = j;
  }
  const double total = m + n;
  const double variance = m * n / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
  if (!(variance > 0)) {
    return 1.0;
  }
  const double distance = std::abs(pairs_below(a, b) - m * n / 2.0);
  return std::min(1.0, normal_two_sided_p(std::max(0.0, distance - 0.5) / std::sqrt(variance)));
}

double sign_test_p(std::span<const double> a, std::span<const double> b) {
  int below = 0;
  int above = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    below += a[i] < b[i] ? 1 : 0;
    above += a[i] > b[i] ? 1 : 0;
  }
  const int n = below + above;
  if (n == 0) {
    return 1.0;
  }
  if (n > kLargeSignTest) {
    const double distance = std::abs(below - 0.5 * n);
    return std::min(1.0, normal_two_sided_p(std::max(0.0, distance - 0.5) / (0.5 * std::sqrt(static_cast<double>(n)))));
  }
  double term = std::pow(0.5, n);
  double cumulative = 0;
  for (int k = 0; k <= std::min(below, above); ++k) {
    cumulative += term;
    term = term * (n - k) / (k + 1);
  }
  return std::min(1.0, 2.0 * cumulative);
}

double student_t_p(double t, int degrees) {
  if (std::isnan(t) || degrees < 1) {
    return 1.0;
  }
  if (std::isinf(t)) {
    return 0.0;
  }
  constexpr double kPi = 3.14159265358979323846;
  const double angle = std::atan(std::abs(t) / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1.0;
  double sum = degrees == 1 ? 0.0 : term;
  for (int k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / k;
    sum += term;
  }
  const double inside = odd ? 2 / kPi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
  return std::clamp(1.0 - inside, 0.0, 1.0);
}

TrimmedMean trimmed_mean(std::vector<double> values) {
  if (values.empty() || std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {none, none, 0};
  }
  std::sort(values.begin(), values.end());
  const std::size_t cut = values.size() / 10;
  const std::size_t last = values.size() - 1 - cut;
  const auto all = static_cast<double>(values.size());
  const auto kept = static_cast<double>(values.size() - 2 * cut);
  TrimmedMean out;
  double winsorized_mean = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.mean += i >= cut && i <= last ? values[i] / kept : 0;
    winsorized_mean += values[std::clamp(i, cut, last)] / all;
  }
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = values[std::clamp(i, cut, last)] - winsorized_mean;
    squares += off * off;
  }
  out.degrees = static_cast<int>(kept) - 1;
  out.error =
      values.size() < 2 ? std::numeric_limits<double>::infinity() : std::sqrt(squares / (all - 1) / all) * all / kept;
  return out;
}

double moved(std::span<const double> values) {
  const std::size_t half = values.size() / 2;
  if (half == 0) {
    return 0;
  }
  const auto mean = [half](std::span<const double> part) {
    return std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(half);
  };
  return 2 * std::abs(mean(values.last(half)) - mean(values.first(half)));
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<double> p(p_values.begin(), p_values.end());
  std::replace_if(
      p.begin(), p.end(), [](double value) { return std::isnan(value); }, 1.0);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    least = std::max(least, std::min(1.0, static_cast<double>(order.size() - rank) * p[order[rank]]));
    adjusted[order[rank]] = least;
  }
  return adjusted;
}

}  // namespace pascaline
