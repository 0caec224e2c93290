#include "model/checkpoint/families/llama_rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pascaline {
namespace {

constexpr double kRounding = 2e-6;  // of divisors that another program computed in float32, relative
constexpr Llama3Scaling kReleased{1, 1, 4, 8192};

// Waves of frequency `slot` within a length of one token.
double waves_per_token(std::size_t slot, double theta, std::size_t slots) {
  return std::pow(theta, -static_cast<double>(slot) / static_cast<double>(slots)) / (2 * std::numbers::pi);
}

bool is_near(double a, double b) { return std::abs(a - b) <= kRounding * std::abs(b); }

// A frequency between those that stay and those that are divided by the whole factor.
struct MiddleSlot {
  double waves;  // within a length of one token
  double share;  // 0 at `low`, 1 at `high`
};

std::vector<MiddleSlot> middle_slots(std::span<const float> divisors, double theta) {
  const double factor = divisors.back();
  std::vector<MiddleSlot> found;
  for (std::size_t j = 0; j < divisors.size(); ++j) {
    if (!is_near(divisors[j], 1) && !is_near(divisors[j], factor)) {
      found.push_back(
          {waves_per_token(j, theta, divisors.size()), (1 / double{divisors[j]} - 1 / factor) / (1 - 1 / factor)});
    }
  }
  return found;
}

// Shares lie on a line over waves: with low = 1 its zero and slope give the others.
std::vector<double> possible_highs(const std::vector<MiddleSlot>& middle) {
  constexpr double kSteps = 1000;
  std::vector<double> highs{kReleased.high};
  if (middle.size() > 1) {
    const MiddleSlot& a = middle.front();
    const MiddleSlot& b = middle.back();
    const double at_zero = a.share - (b.share - a.share) / (b.waves - a.waves) * a.waves;
    highs.push_back(std::round((1 - 1 / at_zero) * kSteps) / kSteps);
  }
  return highs;
}

std::vector<double> possible_lengths(const std::vector<MiddleSlot>& middle, double high) {
  constexpr double kShortest = 64;
  constexpr double kLongest = 1 << 24;
  if (!middle.empty()) {
    const MiddleSlot& slot = middle.front();
    return {std::round((1 + slot.share * (high - 1)) / slot.waves)};
  }
  std::vector<double> lengths{kReleased.trained};
  for (double length = kShortest; length <= kLongest; length *= 2) {
    lengths.push_back(length);
  }
  return lengths;
}

}  // namespace

std::vector<float> llama3_divisors(const Llama3Scaling& scaling, double theta, std::int64_t head_dim) {
  std::vector<float> divisors;
  const auto slots = static_cast<std::size_t>(head_dim / 2);
  for (std::size_t j = 0; j < slots; ++j) {
    const double waves = scaling.trained * waves_per_token(j, theta, slots);
    const double share = std::clamp((waves - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - share) / scaling.factor + share)));
  }
  return divisors;
}

std::optional<Llama3Scaling> find_llama3_scaling(std::span<const float> divisors, double theta) {
  if (divisors.empty() || !(divisors.back() > 1)) {
    return std::nullopt;
  }
  const std::vector<MiddleSlot> middle = middle_slots(divisors, theta);
  for (const double high : possible_highs(middle)) {
    if (!(high > kReleased.low)) {
      continue;
    }
    for (const double trained : possible_lengths(middle, high)) {
      const Llama3Scaling scaling{divisors.back(), kReleased.low, high, trained};
      const auto head_dim = static_cast<std::int64_t>(2 * divisors.size());
      const std::vector<float> computed = llama3_divisors(scaling, theta, head_dim);
      if (std::equal(computed.begin(), computed.end(), divisors.begin(), is_near)) {
        return scaling;
      }
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
