#include "tuner/search/transfer.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "tuner/search/coordinates.hpp"
#include "tuner/search/gaussian_process.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxRelated = 150;
constexpr int kTransferFitSteps = 12;
constexpr double kTrustedDistance = 2.0;

std::vector<float> row_of(const Coordinates& coordinates, const Point& point) {
  std::vector<float> row(coordinates.size());
  coordinates.write(point, row);
  return row;
}

}  // namespace

std::optional<Prior> transfer_prior(const SearchDomain& domain, std::vector<RelatedTrial> trials, double distance,
                                    std::uint64_t seed) {
  const auto coordinates = std::make_shared<const Coordinates>(domain.axes());
  if (trials.size() < kMinRelated || coordinates->size() == 0) {
    return std::nullopt;
  }
  std::stable_sort(trials.begin(), trials.end(),
                   [](const RelatedTrial& a, const RelatedTrial& b) { return a.time_us < b.time_us; });
  SearchRandom random(seed);
  for (std::size_t i = kMaxRelated / 2; i < std::min(kMaxRelated, trials.size()); ++i) {
    std::swap(trials[i], trials[i + below(random, trials.size() - i)]);
  }
  trials.resize(std::min(trials.size(), kMaxRelated));
  Rows rows(coordinates->size());
  std::vector<double> values;
  for (const RelatedTrial& trial : trials) {
    rows.add(row_of(*coordinates, trial.point));
    values.push_back(std::log(trial.time_us));
  }
  Covariance covariance = first_covariance(coordinates->kinds());
  fit_covariance(covariance, rows, values, kTransferFitSteps);
  const auto posterior = std::make_shared<Posterior>(std::move(covariance), Rows(coordinates->size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    posterior->observe(rows[i], values[i]);
  }
  Prior prior;
  prior.trust = std::exp(-distance / kTrustedDistance);
  prior.log_time = [coordinates, posterior](const Point& point) {
    return posterior->expected(row_of(*coordinates, point));
  };
  return prior;
}

}  // namespace pascaline
