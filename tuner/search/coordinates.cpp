#include "tuner/search/coordinates.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace pascaline {
namespace {

// The values as numbers, if they are all numbers.
std::optional<std::vector<double>> numbers(const std::vector<Value>& values) {
  std::vector<double> out;
  for (const Value& value : values) {
    if (const auto* real = std::get_if<double>(&value)) {
      out.push_back(*real);
    } else if (std::holds_alternative<std::string>(value)) {
      return std::nullopt;
    } else {
      out.push_back(static_cast<double>(integer_of(value)));
    }
  }
  return out;
}

// From 0 to 1: the mean of rank and, where all values are positive, logarithm.
std::vector<float> places(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const double last = static_cast<double>(sorted.size() - 1);
  const bool positive = sorted.front() > 0 && sorted.back() > sorted.front();
  std::vector<float> out;
  for (const double value : values) {
    const double rank = static_cast<double>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
    double place = rank / last;
    if (positive) {
      place = 0.5 * (place + (std::log(value) - std::log(sorted.front())) /
                                 (std::log(sorted.back()) - std::log(sorted.front())));
    }
    out.push_back(static_cast<float>(place));
  }
  return out;
}

// How often two divides each of some whole numbers, from 0 to 1; empty if that tells nothing that their size does not.
std::vector<float> powers_of_two(const std::vector<double>& values) {
  std::vector<double> counts;
  bool only_powers = true;
  for (const double value : values) {
    const double size = std::abs(value);
    if (size != std::floor(size) || size > 0x1p40) {
      return {};
    }
    int count = 0;
    for (double rest = size; rest >= 2 && std::fmod(rest, 2) == 0; rest /= 2) {
      ++count;
    }
    only_powers = only_powers && size == std::ldexp(1.0, count);
    counts.push_back(count);
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  if (only_powers || *least == *most) {
    return {};
  }
  std::vector<float> out;
  for (const double count : counts) {
    out.push_back(static_cast<float>((count - *least) / (*most - *least)));
  }
  return out;
}

}  // namespace

Coordinates::Coordinates(const std::vector<Axis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t count = axes[i].values.size();
    if (count < 2) {
      continue;
    }
    const auto values = numbers(axes[i].values);
    std::vector<float> which(count);
    std::iota(which.begin(), which.end(), 0.0F);
    if (values) {
      add(i, CoordinateKind::ordered, places(*values));
    }
    if (!values || count > 2) {
      add(i, CoordinateKind::category, std::move(which));
    }
    if (values && count > 2) {
      if (std::vector<float> twos = powers_of_two(*values); !twos.empty()) {
        add(i, CoordinateKind::ordered, std::move(twos));
      }
    }
  }
}

void Coordinates::add(std::size_t axis, CoordinateKind kind, std::vector<float> of_value) {
  columns_.push_back({axis, std::move(of_value)});
  kinds_.push_back(kind);
}

void Coordinates::write(const Point& point, std::span<float> out) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    out[i] = columns_[i].of_value[point[columns_[i].axis]];
  }
}

}  // namespace pascaline
