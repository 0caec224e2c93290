#include "model/logit_divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace pascaline {
namespace {

std::ptrdiff_t likeliest(std::span<const float> logits) noexcept {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

// The logarithm of q / p is a difference of logits, the same for all but a constant, so that equal logits give exactly
// 0. Others may be below it by rounding alone.
double divergence(std::span<const float> reference, double reference_sum, std::span<const float> own,
                  double own_sum) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double probability = std::exp(reference[i] - reference_sum);
    sum += probability * (static_cast<double>(reference[i]) - own[i]);
  }
  return std::max(0.0, sum - (reference_sum - own_sum));
}

double ratio(double sum, std::int64_t count) noexcept {
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void require_finite(std::span<const float> logits, std::string_view model, std::int64_t token) {
  const auto wrong = std::find_if_not(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); });
  if (wrong != logits.end()) {
    throw Error(fmt::format("{}: after token {}, logit {} is {}; the weights are damaged, or overflow float16", model,
                            token, wrong - logits.begin(), *wrong));
  }
}

double log_sum_exp(std::span<const float> logits) noexcept {
  if (logits.empty()) {
    return -std::numeric_limits<double>::infinity();
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - largest);
  }
  return largest + std::log(sum);
}

void LogitDivergence::add(std::span<const float> reference, std::span<const float> own,
                          std::optional<std::int32_t> next) {
  const double reference_sum = log_sum_exp(reference);
  const double own_sum = log_sum_exp(own);
  divergences_.push_back(divergence(reference, reference_sum, own, own_sum));
  same_top1_ += likeliest(reference) == likeliest(own) ? 1 : 0;
  if (next) {
    const auto token = static_cast<std::size_t>(*next);
    ++predicted_;
    reference_loss_ += reference_sum - reference[token];
    own_loss_ += own_sum - own[token];
  }
}

double LogitDivergence::mean() const noexcept {
  return ratio(std::accumulate(divergences_.begin(), divergences_.end(), 0.0), tokens());
}

double LogitDivergence::quantile(double share) const {
  if (divergences_.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::vector<double> sorted = divergences_;
  std::sort(sorted.begin(), sorted.end());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double LogitDivergence::top1_agreement() const noexcept { return ratio(static_cast<double>(same_top1_), tokens()); }

double LogitDivergence::perplexity() const noexcept { return std::exp(ratio(own_loss_, predicted_)); }

double LogitDivergence::reference_perplexity() const noexcept { return std::exp(ratio(reference_loss_, predicted_)); }

}  // namespace pascaline
