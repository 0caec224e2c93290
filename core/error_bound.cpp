#include "core/error_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/error.hpp"
#include "core/parallel.hpp"

namespace pascaline {
namespace {

// Rounding errors of a sum add up like steps of a random walk (Higham and Mary, "A new approach to probabilistic
// rounding error analysis", 2019): in units of roundoff, sqrt(terms) times this is far above what any order of
// additions was seen to give, see docs/measurements.md.
constexpr double kDeviations = 4;

/// A floating-point type's precision, and where its numbers end.
struct Format {
  int fraction_bits;
  int least_exponent;
  double overflow;  ///< least magnitude that rounds to infinity
};

constexpr Format kFloat16{10, -14, 65520.0};
constexpr Format kBfloat16{7, -126, 0x1.FFp127};

bool is_narrow(ElementType type) { return type == ElementType::float16 || type == ElementType::bfloat16; }

const Format& format_of(ElementType type) { return type == ElementType::float16 ? kFloat16 : kBfloat16; }

// The largest relative error of one rounding to the type; whole numbers are added without.
double roundoff(ElementType type) {
  switch (type) {
    case ElementType::float64:
      return 0x1p-53;
    case ElementType::float32:
      return 0x1p-24;
    case ElementType::float16:
      return 0x1p-11;
    case ElementType::bfloat16:
      return 0x1p-8;
    default:
      return 0;
  }
}

// Of the finite values: one infinity among them would make every error zero.
double root_mean_square(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::isfinite(value) ? value * value : 0;
  }
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// Root mean square of what fills a buffer.
double root_mean_square(const BoundSpace& space, const Argument& argument) {
  const auto [low, high] = space.fill_range(argument);
  switch (argument.fill) {
    case Fill::uniform:
    case Fill::ramp:
      return std::sqrt((low * low + low * high + high * high) / 3);
    case Fill::normal:
      return std::hypot(low, high);
    default:
      return 0;
  }
}

}  // namespace

double BoundSpace::at_least_one(const Expression& expression, const char* what) const {
  const std::int64_t value = expression.evaluate(slots_);
  if (value < 1) {
    throw Error(fmt::format("{} for {} is {}; it must be at least 1", what, problem_.text(), value));
  }
  return static_cast<double>(value);
}

double BoundSpace::tolerance(ElementType type) const {
  double tolerance = space_->tolerance(type);
  if (const auto& sum = space_->summation) {
    const bool wide = type == ElementType::float64;
    const ElementType added_in = sum->type.value_or(wide ? ElementType::float64 : ElementType::float32);
    const double terms = at_least_one(sum->terms, "the number of a sum's terms");
    tolerance += roundoff(type) > 0 ? kDeviations * roundoff(added_in) * std::sqrt(terms) : 0;
    tolerance *= sum->product_of ? at_least_one(*sum->product_of, "the number of sums multiplied") : 1;
    tolerance *= space_->reference.by_default ? 2 : 1;  // what is compared with is rounded as well
  }
  const auto& factor = space_->tolerance_factor;
  return tolerance * (factor ? at_least_one(*factor, "the tolerance's factor") : 1);
}

std::optional<double> BoundSpace::sum_magnitude() const {
  const auto& sum = space_->summation;
  if (!sum || sum->of.empty()) {
    return std::nullopt;
  }
  double magnitude = std::sqrt(at_least_one(sum->terms, "the number of a sum's terms"));
  for (const std::size_t argument : sum->of) {
    magnitude *= root_mean_square(*this, space_->arguments[argument]);
  }
  return std::pow(magnitude, sum->product_of ? at_least_one(*sum->product_of, "the number of sums multiplied") : 1);
}

ErrorBound::ErrorBound(const BoundSpace& space, ElementType type, std::span<const double> expected)
    : type_(type),
      unit_(std::max(root_mean_square(expected), space.space().error_floor)),
      relative_(space.tolerance(type)),
      scale_(unit_) {
  if (const auto& sum = space.space().summation) {
    scale_ = std::max(space.space().error_floor, sum->positive ? 0 : space.sum_magnitude().value_or(unit_));
    roundings_ = !is_narrow(type) ? 0 : space.space().reference.by_default ? 2 : 1;
  }
}

// An infinity to which numbers of a narrow type are rounded is as far as the least of those.
double ErrorBound::distance(double value, double expected) const noexcept {
  if (value == expected || (std::isnan(value) && std::isnan(expected))) {
    return 0;
  }
  if (roundings_ > 0 && std::isinf(value) && std::signbit(value) == std::signbit(expected)) {
    return std::max(0.0, format_of(type_).overflow - std::abs(expected));
  }
  const double distance = std::abs(value - expected);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

double ErrorBound::largest_distance(double value, double expected) const noexcept {
  const double computed = relative_ * (std::abs(expected) + scale_);
  if (!(roundings_ > 0)) {
    return computed;
  }
  const Format& format = format_of(type_);
  const double larger = std::isfinite(value) ? std::max(std::abs(value), std::abs(expected)) : std::abs(expected);
  const int exponent = larger > 0 && std::isfinite(larger) ? std::ilogb(larger) : format.least_exponent;
  return computed + roundings_ * std::ldexp(0.5, std::max(exponent, format.least_exponent) - format.fraction_bits);
}

double ErrorBound::error(double value, double expected) const noexcept {
  const double far = distance(value, expected);
  return far > 0 ? far / (std::abs(expected) + unit_) : 0;
}

double ErrorBound::tolerance(double value, double expected) const noexcept {
  const double most = largest_distance(value, expected);
  return most > 0 ? most / (std::abs(expected) + unit_) : 0;
}

ErrorBound::Verdict ErrorBound::verdict(double value, double expected, std::size_t at) const noexcept {
  const double far = distance(value, expected);
  // The bound itself takes longer to work out than the part of it that most results keep within.
  const bool within = far <= relative_ * (std::abs(expected) + scale_) || far <= largest_distance(value, expected);
  return {error(value, expected), within ? 0 : tolerance(value, expected), at, within};
}

bool ErrorBound::Verdict::worse_than(const Verdict& other) const noexcept {
  if (within != other.within) {
    return other.within;
  }
  const auto excess = [](const Verdict& of) {
    return of.tolerance > 0 ? of.error / of.tolerance : std::numeric_limits<double>::infinity();
  };
  if (!within && excess(*this) != excess(other)) {
    return excess(*this) > excess(other);
  }
  return error > other.error;
}

ErrorBound::Verdict ErrorBound::compare(std::span<const double> values, std::span<const double> expected) const {
  Verdict worst;
  std::mutex worst_mutex;
  parallel_for(values.size(), std::size_t{1} << 16U, [&](std::size_t begin, std::size_t end) {
    Verdict local = verdict(values[begin], expected[begin], begin);
    for (std::size_t i = begin + 1; i < end; ++i) {
      const Verdict next = verdict(values[i], expected[i], i);
      local = next.worse_than(local) ? next : local;
    }
    const std::scoped_lock lock(worst_mutex);
    const bool earlier = !worst.worse_than(local) && local.at < worst.at;
    worst = local.worse_than(worst) || earlier ? local : worst;
  });
  if (!values.empty()) {
    worst.tolerance = tolerance(values[worst.at], expected[worst.at]);
  }
  return worst;
}

}  // namespace pascaline
