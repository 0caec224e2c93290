#include "core/error_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "core/util/worker_pool.hpp"

namespace pascaline {
namespace {

// Rounding errors of a sum add up like steps of a random walk (Higham and Mary, "A new approach to probabilistic
// rounding error analysis", 2019): in units of roundoff, sqrt(terms) times this is far above what any order of
// additions was seen to give, see docs/results.md.
constexpr double kDeviations = 4;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of float32: whatever is computed in it may be flushed to zero below this (`--use_fast_math`, `--ftz=true`).
constexpr double kMinNormal = 0x1p-126;

// What a product and a sum are multiplied by to be no more than they are before they are rounded.
constexpr double kLess = 1 - 0x1p-50;

// Half the distance of neighbouring integers.
constexpr double kHalfStep = 0.5;

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

// Of the finite values: one infinity among them would make every error zero. So would squares beyond the numbers that
// there are, hence in parts of the largest; a power of two rounds nothing.
double root_mean_square(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  }
  const double scale = std::max(power_of_two_below(largest), std::numeric_limits<double>::min());
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values) {
    if (std::isfinite(value)) {
      const double part = value / scale;
      sum += part * part;
      ++count;
    }
  }
  return count > 0 ? scale * std::sqrt(sum / static_cast<double>(count)) : 0;
}

// far / (size + unit), of which the sum may be beyond the numbers that there are.
double in_parts(double far, double size, double unit) {
  const double whole = size + unit;
  return std::isfinite(whole) ? far / whole : far / 2 / (size / 2 + unit / 2);
}

// Root mean square of what fills a buffer.
double root_mean_square(const BoundSpace& space, const Argument& argument) {
  const auto [low, high] = space.fill_range(argument);
  switch (argument.fill) {
    case Fill::uniform:
    case Fill::sorted:
    case Fill::ramp:
    case Fill::row_ramp:
      return std::sqrt((low * low + low * high + high * high) / 3);
    case Fill::normal:
      return std::hypot(low, high);
    case Fill::constant:
      return std::fabs(low);
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
  const Config config = default_config();
  for (const std::size_t index : sum->of) {
    const Argument& argument = space_->arguments[index];
    // What the problem has no buffer of, such as scales, is not multiplied with.
    magnitude *= value(argument, config) > 0 ? root_mean_square(*this, argument) : 1;
  }
  return std::pow(magnitude, sum->product_of ? at_least_one(*sum->product_of, "the number of sums multiplied") : 1);
}

ErrorBound::ErrorBound(const BoundSpace& space, ElementType type, std::span<const double> expected,
                       std::vector<double> slack)
    : ErrorBound(space, {&type, 1}, expected, std::move(slack)) {}

ErrorBound::ErrorBound(const BoundSpace& space, std::span<const ElementType> types, std::span<const double> expected,
                       std::vector<double> slack)
    : slack_(std::move(slack)) {
  if (types.size() == 1) {
    types_.push_back(of_type(space, types.front(), expected));
    return;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    std::vector<double> own;
    for (std::size_t at = i; at < expected.size(); at += types.size()) {
      own.push_back(expected[at]);
    }
    types_.push_back(of_type(space, types[i], own));
  }
}

ErrorBound::OfType ErrorBound::of_type(const BoundSpace& space, ElementType type, std::span<const double> expected) {
  OfType of{{}, kInfinity};
  ElementLimits& limits = of.limits;
  limits.unit = std::max(root_mean_square(expected), space.space().error_floor);
  limits.relative = space.tolerance(type);
  limits.absolute = limits.relative * limits.unit;
  const auto& sum = space.space().summation;
  if (!sum) {
    return of;
  }
  limits.absolute = limits.relative * std::max(space.space().error_floor,
                                               sum->positive ? 0 : space.sum_magnitude().value_or(limits.unit));
  const double roundings = space.space().reference.by_default ? 2 : 1;
  if (type == ElementType::float16) {
    limits.rounding = roundings * 0x1p-11;
    limits.least_rounding = roundings * 0x1p-25;
    of.overflow = 65520;
  } else if (type == ElementType::float32) {
    limits.least_rounding = kMinNormal;
  } else if (type == ElementType::bfloat16) {
    limits.rounding = roundings * 0x1p-8;
    limits.least_rounding = kMinNormal;
    of.overflow = 0x1.FFp127;
  } else if (type != ElementType::float64) {
    limits.least_rounding = roundings * kHalfStep;
  }
  return of;
}

// An infinity to which a narrow type's numbers are rounded is as far as the least of those.
double ErrorBound::distance(double value, double expected, std::size_t place) const noexcept {
  if (value == expected || (std::isnan(value) && std::isnan(expected))) {
    return 0;
  }
  if (!std::isfinite(expected) || std::isnan(value)) {
    return kInfinity;
  }
  if (std::isinf(value)) {
    const double overflow = type_at(place).overflow;
    if (!(overflow < kInfinity) || std::signbit(value) != std::signbit(expected)) {
      return kInfinity;
    }
    return std::max(0.0, overflow - std::abs(expected));
  }
  return std::abs(value - expected);
}

double ErrorBound::largest_distance(double value, double expected, std::size_t place) const noexcept {
  if (!std::isfinite(expected)) {
    return 0;
  }
  const double size = std::abs(expected);
  const double larger = std::isfinite(value) ? std::max(std::abs(value), size) : size;
  return type_at(place).limits.largest_distance(size, larger) + slack(place);
}

double ErrorBound::error(double value, double expected, std::size_t place) const noexcept {
  const double far = distance(value, expected, place);
  return far > 0 && far < kInfinity ? in_parts(far, std::abs(expected), type_at(place).limits.unit) : far;
}

double ErrorBound::tolerance(double value, double expected, std::size_t at) const noexcept {
  const double most = largest_distance(value, expected, at);
  return most > 0 ? in_parts(most, std::abs(expected), type_at(at).limits.unit) : 0;
}

std::optional<ElementLimits> ErrorBound::limits() const noexcept {
  return slack_.empty() && types_.size() == 1 ? std::optional(types_.front().limits) : std::nullopt;
}

ErrorBound::Verdict ErrorBound::verdict(double value, double expected, std::size_t at) const noexcept {
  const bool within = distance(value, expected, at) <= largest_distance(value, expected, at);
  return {error(value, expected, at), tolerance(value, expected, at), at, value, within};
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

void ErrorBound::Verdict::keep_worse(const Verdict& other) noexcept {
  const bool earlier = !worse_than(other) && other.at < at;
  if (other.worse_than(*this) || earlier) {
    *this = other;
  }
}

// Elements from `first` on, the values of which are given. Of nearly all it is enough to know that they are within
// their bound, and no further off than one before.
void ErrorBound::compare_range(std::span<const double> values, std::span<const double> expected, std::size_t first,
                               Verdict& worst) const noexcept {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double right = expected[first + i];
    const double size = std::abs(right);
    const double larger = std::max(std::abs(value), size);
    const ElementLimits& limits = type_at(first + i).limits;
    const double most = limits.largest_distance(size, larger) + slack(first + i);
    const double far = std::abs(value - right);
    const double as_worst = (worst.error * size + worst.error * limits.unit) * kLess;
    if (larger < kInfinity && far <= most && far <= as_worst) {
      continue;
    }
    const Verdict next = verdict(value, right, first + i);
    worst = next.worse_than(worst) ? next : worst;
  }
}

ErrorBound::Verdict ErrorBound::compare(std::span<const double> values, std::span<const double> expected) const {
  return compare(ElementType::float64, std::as_bytes(values), expected);
}

ErrorBound::Verdict ErrorBound::compare(ElementType type, std::span<const std::byte> bytes,
                                        std::span<const double> expected, std::size_t first) const {
  constexpr std::size_t kSlice = std::size_t{1} << 16U;
  constexpr std::size_t kWidened = 1024;  // at a time, so that they stay in the cache
  const std::size_t size = size_of(type);
  Verdict worst;
  worst.at = first;
  std::mutex worst_mutex;
  worker_pool().run(bytes.size() / size, kSlice, [&](std::size_t begin, std::size_t end) {
    std::array<double, kWidened> values{};
    Verdict local;
    for (std::size_t at = begin; at < end; at += kWidened) {
      const std::span<double> widened = std::span(values).first(std::min(kWidened, end - at));
      widen_into(widened, type, bytes.subspan(at * size, widened.size() * size));
      if (at == begin) {
        local = verdict(widened[0], expected[first + begin], first + begin);
      }
      compare_range(widened, expected, first + at, local);
    }
    const std::scoped_lock lock(worst_mutex);
    worst.keep_worse(local);
  });
  return worst;
}

}  // namespace pascaline
