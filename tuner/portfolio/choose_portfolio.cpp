#include "tuner/portfolio/choose_portfolio.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr double kMinImprovement = 5e-4;  // of the logarithm
constexpr int kMaxExchanges = 100;

/// The matrix as logarithms of the ratio to each row's best.
class Ratios {
 public:
  explicit Ratios(const TimeMatrix& times) : times_(&times) {
    for (const TimeMatrix::Row& row : times.rows) {
      double slowest = row.best_us;
      for (const double time_us : row.time_us) {
        slowest = std::isfinite(time_us) ? std::max(slowest, time_us) : slowest;
      }
      uncovered_.push_back(std::log(slowest / row.best_us));
      rows_in_group_.resize(std::max(rows_in_group_.size(), row.group + 1), 0);
      ++rows_in_group_[row.group];
    }
  }

  [[nodiscard]] std::size_t rows() const { return uncovered_.size(); }
  [[nodiscard]] std::size_t group(std::size_t row) const { return times_->rows[row].group; }
  [[nodiscard]] bool knows(std::size_t row, std::size_t config) const {
    return std::isfinite(times_->rows[row].time_us[config]);
  }
  // Of nothing: what a row without a member's time counts as.
  [[nodiscard]] const std::vector<double>& of_none() const { return uncovered_; }
  // The row's, with a further member.
  [[nodiscard]] double with(double least, std::size_t row, std::size_t config) const {
    return knows(row, config) ? std::min(least, std::log(times_->rows[row].time_us[config] / times_->rows[row].best_us))
                              : least;
  }
  [[nodiscard]] std::vector<double> of(const std::vector<std::size_t>& members) const {
    std::vector<double> least = uncovered_;
    for (const std::size_t member : members) {
      for (std::size_t row = 0; row < rows(); ++row) {
        least[row] = with(least[row], row, member);
      }
    }
    return least;
  }

  // Means of each group's rows; empty groups have none.
  [[nodiscard]] double worst_group(const std::vector<double>& least) const {
    std::vector<double> sums(rows_in_group_.size(), 0);
    for (std::size_t row = 0; row < rows(); ++row) {
      sums[group(row)] += least[row];
    }
    double worst = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      worst = rows_in_group_[i] > 0 ? std::max(worst, sums[i] / static_cast<double>(rows_in_group_[i])) : worst;
    }
    return worst;
  }
  [[nodiscard]] double mean(const std::vector<double>& least) const {
    double sum = 0;
    for (const double each : least) {
      sum += each;
    }
    return sum / static_cast<double>(rows());
  }
  [[nodiscard]] double cost(const std::vector<double>& least) const { return (mean(least) + worst_group(least)) / 2; }

 private:
  const TimeMatrix* times_;
  std::vector<double> uncovered_;
  std::vector<std::size_t> rows_in_group_;
};

bool contains(const std::vector<std::size_t>& members, std::size_t config) {
  return std::find(members.begin(), members.end(), config) != members.end();
}

// The candidate that helps the members most; nothing if none helps.
std::optional<std::size_t> best_addition(const Ratios& ratios, const std::vector<std::size_t>& members,
                                         const std::vector<std::size_t>& candidates) {
  const std::vector<double> least = ratios.of(members);
  double lowest = ratios.cost(least) - kMinImprovement;
  std::optional<std::size_t> best;
  std::vector<double> with(least.size());
  for (const std::size_t candidate : candidates) {
    if (contains(members, candidate)) {
      continue;
    }
    for (std::size_t row = 0; row < least.size(); ++row) {
      with[row] = ratios.with(least[row], row, candidate);
    }
    if (const double cost = ratios.cost(with); cost < lowest) {
      lowest = cost;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::size_t> greedy(const Ratios& ratios, const std::vector<std::size_t>& given,
                                const std::vector<std::size_t>& candidates, std::size_t most) {
  std::vector<std::size_t> members = given;
  while (members.size() < given.size() + most) {
    const auto next = best_addition(ratios, members, candidates);
    if (!next) {
      break;
    }
    members.push_back(*next);
  }
  return members;
}

// Puts another configuration in the place of a chosen one if that helps.
bool exchange(const Ratios& ratios, std::vector<std::size_t>& members, std::size_t given,
              const std::vector<std::size_t>& candidates) {
  const double before = ratios.cost(ratios.of(members));
  for (std::size_t place = given; place < members.size(); ++place) {
    std::vector<std::size_t> others = members;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(place));
    const auto next = best_addition(ratios, others, candidates);
    if (!next || *next == members[place]) {
      continue;
    }
    others.push_back(*next);
    if (ratios.cost(ratios.of(others)) < before - kMinImprovement) {
      members = std::move(others);
      return true;
    }
  }
  return false;
}

}  // namespace

PortfolioQuality portfolio_quality(const TimeMatrix& times, const std::vector<std::size_t>& members) {
  const Ratios ratios(times);
  const std::vector<double> least = ratios.of(members);
  PortfolioQuality quality;
  quality.mean = std::exp(ratios.mean(least));
  quality.worst_group = std::exp(ratios.worst_group(least));
  const auto worst = std::max_element(least.begin(), least.end());
  quality.worst = std::exp(*worst);
  quality.worst_row = static_cast<std::size_t>(worst - least.begin());
  for (std::size_t row = 0; row < ratios.rows(); ++row) {
    quality.uncovered +=
        std::none_of(members.begin(), members.end(), [&](std::size_t member) { return ratios.knows(row, member); }) ? 1
                                                                                                                    : 0;
  }
  return quality;
}

PortfolioChoice choose_portfolio(const TimeMatrix& times, const std::vector<std::size_t>& given, std::size_t most) {
  if (times.rows.empty()) {
    throw Error("there is no problem to choose a portfolio for");
  }
  const Ratios ratios(times);
  std::vector<std::size_t> candidates(times.configs);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i] = i;
  }
  std::vector<std::size_t> members = greedy(ratios, given, candidates, most);
  for (int i = 0; i < kMaxExchanges && exchange(ratios, members, given.size(), candidates); ++i) {
  }
  std::sort(members.begin(), members.end());  // of equal ones the first is taken
  PortfolioChoice choice;
  choice.members = greedy(ratios, given, members, most);
  for (std::size_t count = given.size(); count <= choice.members.size(); ++count) {
    const auto end = choice.members.begin() + static_cast<std::ptrdiff_t>(count);
    choice.quality.push_back(portfolio_quality(times, {choice.members.begin(), end}));
  }
  return choice;
}

}  // namespace pascaline
