#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/formats/block_format.hpp"
#include "runtime/formats/blocks.hpp"
#include "runtime/formats/int4_groups.hpp"

// Scales are searched for, not computed: the largest value's scale is seldom the one of least squared error. A
// candidate is judged by the error of the values that its block will give, scales already rounded to what is stored.
// Each search ends with the scales that are best for the integers found (linear least squares), which may move some of
// them.
namespace pascaline {
namespace {

using namespace blocks;

constexpr float kMaxHalf = 65504;

[[nodiscard]] float as_stored(float value) noexcept { return float_from_half(half_from_float(value)); }

/// The nearest integer in the range, ties to even. By adding and subtracting 1.5 · 2^23, behind which float32 has no
/// fraction: unlike nearbyint that is done for several values at a time by every processor.
[[nodiscard]] float clamped_round(float value, float low, float high) noexcept {
  constexpr float kNoFraction = 12'582'912;
  const float clamped = value < low ? low : value > high ? high : value;
  return (clamped + kNoFraction) - kNoFraction;
}

/// Sums of squares by four, for the same reason: in one order, which the compiler may not choose.
class SquareSum {
 public:
  void add(std::size_t i, float value, float approximation) noexcept {
    const double difference = static_cast<double>(value) - static_cast<double>(approximation);
    sums_[i % 4] += difference * difference;
  }
  [[nodiscard]] double total() const noexcept { return (sums_[0] + sums_[1]) + (sums_[2] + sums_[3]); }

 private:
  std::array<double, 4> sums_{};
};

[[nodiscard]] float largest_of(std::span<const float> values) noexcept {
  float largest = 0;
  for (const float value : values) {
    largest = std::fabs(value) > std::fabs(largest) ? value : largest;
  }
  return largest;
}

/// `value ≈ scale · q`, q from `low` to `high`, for up to kCount values.
template <std::size_t kCount>
struct Symmetric {
  float scale = 0;
  double error = std::numeric_limits<double>::infinity();  // sum of squares
  std::array<float, kCount> quants{};
};

template <std::size_t kCount>
[[nodiscard]] double error_of(const float* values, float scale, const std::array<float, kCount>& quants) noexcept {
  SquareSum error;
  for (std::size_t i = 0; i < kCount; ++i) {
    error.add(i, values[i], scale * quants[i]);
  }
  return error.total();
}

/// Takes the scale, as it is, if it is better than `best`.
template <std::size_t kCount>
void consider(const float* values, float scale, float low, float high, Symmetric<kCount>& best) noexcept {
  if (!std::isfinite(scale)) {
    return;
  }
  Symmetric<kCount> tried;
  tried.scale = scale;
  // The quotient of two floats, not a product with the reciprocal, which may be infinite.
  for (std::size_t i = 0; i < kCount; ++i) {
    tried.quants[i] = scale == 0 ? 0.0F : clamped_round(values[i] / scale, low, high);
  }
  tried.error = error_of(values, scale, tried.quants);
  if (tried.error < best.error) {
    best = tried;
  }
}

/// The scale that is best for the integers found and that minimum; 0 if they are all zero.
template <std::size_t kCount>
[[nodiscard]] float least_squares_scale(const float* values, float min,
                                        const std::array<float, kCount>& quants) noexcept {
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    products += (static_cast<double>(values[i]) - static_cast<double>(min)) * static_cast<double>(quants[i]);
    squares += static_cast<double>(quants[i]) * static_cast<double>(quants[i]);
  }
  return squares > 0 ? static_cast<float>(products / squares) : 0.0F;
}

/// A scale found by search: the value of largest magnitude is put on, and a little beyond, the ends of the range.
/// `stored` rounds a scale to what the block can hold.
template <std::size_t kCount, typename Stored>
void search_symmetric(const float* values, float low, float high, const Stored& stored, Symmetric<kCount>& best) {
  const float largest = largest_of({values, kCount});
  if (largest == 0) {
    consider(values, 0.0F, low, high, best);
    return;
  }
  const float steps = high < 20 ? 0.25F : 0.5F;
  for (const float step : {0.0F, -1.0F, 1.0F, -2.0F, 2.0F, -3.0F, 3.0F, -4.0F, 4.0F}) {
    const float shift = steps * step;
    consider(values, stored(largest / (low - shift)), low, high, best);
    consider(values, stored(largest / (high + shift)), low, high, best);
  }
  for (int i = 0; i < 3; ++i) {
    const double before = best.error;
    consider(values, stored(least_squares_scale(values, 0, best.quants)), low, high, best);
    if (!(best.error < before)) {
      break;
    }
  }
}

/// `value ≈ scale · q + min`, q from 0 to `most`.
template <std::size_t kCount>
struct Affine {
  float most = 15;
  float scale = 0;
  float min = 0;
  double error = std::numeric_limits<double>::infinity();
  std::array<float, kCount> quants{};
};

template <std::size_t kCount>
[[nodiscard]] double error_of(const float* values, const Affine<kCount>& tried) noexcept {
  SquareSum error;
  for (std::size_t i = 0; i < kCount; ++i) {
    error.add(i, values[i], tried.scale * tried.quants[i] + tried.min);
  }
  return error.total();
}

template <std::size_t kCount>
void consider(const float* values, float scale, float min, Affine<kCount>& best) noexcept {
  if (!std::isfinite(scale) || !std::isfinite(min)) {
    return;
  }
  Affine<kCount> tried{best.most, scale, min, 0, {}};
  for (std::size_t i = 0; i < kCount; ++i) {
    tried.quants[i] = scale == 0 ? 0.0F : clamped_round((values[i] - min) / scale, 0, best.most);
  }
  tried.error = error_of(values, tried);
  if (tried.error < best.error) {
    best = tried;
  }
}

/// The minimum of the line through the integers found that has the least squared error; the mean if all are one.
template <std::size_t kCount>
[[nodiscard]] float least_squares_min(const float* values, const std::array<float, kCount>& quants) noexcept {
  double q = 0;
  double qq = 0;
  double x = 0;
  double qx = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    q += static_cast<double>(quants[i]);
    qq += static_cast<double>(quants[i]) * static_cast<double>(quants[i]);
    x += static_cast<double>(values[i]);
    qx += static_cast<double>(quants[i]) * static_cast<double>(values[i]);
  }
  constexpr auto kOfAll = static_cast<double>(kCount);
  const double spread = kOfAll * qq - q * q;
  const double scale = spread > 0 ? (kOfAll * qx - q * x) / spread : 0;
  return static_cast<float>((x - scale * q) / kOfAll);
}

/// `scale` and `min` round numbers to what the block can hold; a scale is chosen for the minimum that it can.
template <std::size_t kCount, typename Scale, typename Min>
void search_affine(const float* values, const Scale& scale, const Min& min, Affine<kCount>& best) {
  const auto [least, most] = std::minmax_element(values, values + kCount);
  const float range = *most - *least;
  const auto consider_range = [&](float low, float high) {
    const float held = min(low);
    consider(values, scale((high - held) / best.most), held, best);
  };
  for (int shrink = -1; shrink <= 5; ++shrink) {
    const float cut = range * 0.02F * static_cast<float>(shrink);
    consider_range(*least + cut, *most - cut);
    consider_range(*least, *most - cut);
    consider_range(*least + cut, *most);
  }
  for (int i = 0; i < 4; ++i) {
    const double before = best.error;
    const float held = min(least_squares_min(values, best.quants));
    consider(values, scale(least_squares_scale(values, held, best.quants)), held, best);
    if (!(best.error < before)) {
      break;
    }
  }
}

constexpr std::string_view kScaleTooLarge = "needs a scale beyond float16";

using Fault = std::optional<std::string_view>;

Fault fill(const float* values, Block<ElementType::q8_0>& block) {
  const float largest = std::fabs(largest_of({values, kShort}));
  if (largest / 127 > kMaxHalf) {
    return kScaleTooLarge;
  }
  Symmetric<kShort> best;
  // As ggml's reference: integers by the scale before it is rounded.
  const float exact = largest / 127;
  best.scale = as_stored(exact);
  const float inverse = exact == 0 ? 0.0F : 1 / exact;
  if (std::isfinite(inverse)) {
    for (std::size_t i = 0; i < kShort; ++i) {
      best.quants[i] = std::round(values[i] * inverse);  // half away from zero
    }
  }
  best.error = error_of(values, best.scale, best.quants);
  search_symmetric(values, -127, 127, as_stored, best);
  block.scale = Half::of(best.scale);
  for (std::size_t i = 0; i < kShort; ++i) {
    block.quants[i] = static_cast<std::int8_t>(best.quants[i]);
  }
  return std::nullopt;
}

void pack_halves(const std::array<float, kShort>& quants, float shift, std::array<std::uint8_t, kShort / 2>& to) {
  for (std::size_t i = 0; i < kShort / 2; ++i) {
    const auto low = static_cast<unsigned>(quants[i] + shift);
    const auto high = static_cast<unsigned>(quants[kShort / 2 + i] + shift);
    to[i] = static_cast<std::uint8_t>(low | high << 4U);
  }
}

// Integers from -half to half - 1: as ggml's reference gives them, or better ones. Nothing where no scale holds them.
std::optional<Symmetric<kShort>> best_symmetric(const float* values, float half) {
  const float largest = largest_of({values, kShort});
  if (std::fabs(largest) / half > kMaxHalf) {
    return std::nullopt;
  }
  Symmetric<kShort> best;
  const float exact = largest / -half;
  best.scale = as_stored(exact);
  const float inverse = exact == 0 ? 0.0F : 1 / exact;
  if (std::isfinite(inverse)) {
    for (std::size_t i = 0; i < kShort; ++i) {
      best.quants[i] = std::clamp(std::trunc(values[i] * inverse + (half + 0.5F)), 0.0F, 2 * half - 1) - half;
    }
  }
  best.error = error_of(values, best.scale, best.quants);
  search_symmetric(values, -half, half - 1, as_stored, best);
  return best;
}

Fault fill(const float* values, Block<ElementType::q4_0>& block) {
  const auto best = best_symmetric(values, 8);
  if (!best) {
    return kScaleTooLarge;
  }
  block.scale = Half::of(best->scale);
  pack_halves(best->quants, 8, block.quants);
  return std::nullopt;
}

// Packs values of five bits: the lower four as pack_halves does.
template <typename FiveBits>
void pack_fives(const std::array<float, kShort>& quants, float shift, FiveBits& block) {
  block.high = {};
  block.quants = {};
  for (std::size_t i = 0; i < kShort; ++i) {
    const auto quant = static_cast<unsigned>(quants[i] + shift);
    std::uint8_t& low = block.quants[i % 16];
    std::uint8_t& high = block.high[i / 8];
    low = static_cast<std::uint8_t>(low | (quant & 0x0FU) << (i / 16 * 4));
    high = static_cast<std::uint8_t>(high | quant >> 4U << (i % 8));
  }
}

Fault fill(const float* values, Block<ElementType::q5_0>& block) {
  const auto best = best_symmetric(values, 16);
  if (!best) {
    return kScaleTooLarge;
  }
  block.scale = Half::of(best->scale);
  pack_fives(best->quants, 16, block);
  return std::nullopt;
}

/// `value ≈ scale · table[index]`.
struct Indexed {
  float scale = 0;
  double error = std::numeric_limits<double>::infinity();
  std::array<float, kShort> quants{};  // the table's integers
  std::array<int, kShort> indices{};
};

/// A table's integers in rising order, the midpoints between neighbours, and their indices in the table.
struct Levels {
  std::array<float, 16> integers{};
  std::array<float, 15> middles{};
  std::array<int, 16> indices{};
};
[[nodiscard]] constexpr Levels levels_of(const std::array<std::int8_t, 16>& table) noexcept {
  Levels levels;
  std::iota(levels.indices.begin(), levels.indices.end(), 0);
  const auto integer = [&](int index) { return table[static_cast<std::size_t>(index)]; };
  // nearest_of takes the last of equal integers, so the lower index comes last.
  std::sort(levels.indices.begin(), levels.indices.end(),
            [&](int a, int b) { return integer(a) != integer(b) ? integer(a) < integer(b) : a > b; });
  std::transform(levels.indices.begin(), levels.indices.end(), levels.integers.begin(), integer);
  for (std::size_t i = 0; i < levels.middles.size(); ++i) {
    levels.middles[i] = (levels.integers[i] + levels.integers[i + 1]) / 2;
    if (i > 0 && levels.integers[i] == levels.integers[i + 1]) {
      levels.middles[i] = levels.middles[i - 1];
    }
  }
  return levels;
}
constexpr Levels kNormalLevels = levels_of(kNormalTable);
constexpr Levels kFloatLevels = levels_of(kFloatTable);

/// The nearest integers of the table; `scale` must be finite.
[[nodiscard]] Indexed nearest_of(const float* values, float scale, const Levels& levels) noexcept {
  Indexed nearest;
  nearest.scale = scale;
  std::array<float, kShort> wanted{};
  for (std::size_t i = 0; i < kShort; ++i) {
    wanted[i] = scale == 0 ? 0.0F : values[i] / scale;
  }
  for (const float middle : levels.middles) {
    for (std::size_t i = 0; i < kShort; ++i) {
      nearest.indices[i] += wanted[i] > middle ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < kShort; ++i) {
    const auto level = static_cast<std::size_t>(nearest.indices[i]);
    nearest.quants[i] = levels.integers[level];
    nearest.indices[i] = levels.indices[level];
  }
  nearest.error = error_of(values, scale, nearest.quants);
  return nearest;
}

/// Takes the scale, as it is, if it is better than `best`.
void consider(const float* values, float scale, const Levels& levels, Indexed& best) noexcept {
  if (std::isfinite(scale)) {
    const Indexed tried = nearest_of(values, scale, levels);
    if (tried.error < best.error) {
      best = tried;
    }
  }
}

/// Tries scales that map the largest value to near either end of the table, and improves each by least squares.
template <typename Stored>
void search_indexed(const float* values, const Levels& levels, const Stored& stored, Indexed& best) {
  const float largest = largest_of({values, kShort});
  if (largest == 0) {
    consider(values, 0.0F, levels, best);
    return;
  }
  for (int step = -8; step <= 12; ++step) {
    const float shift = 2.0F * static_cast<float>(step);
    for (const float end : {levels.integers.front() - shift, levels.integers.back() + shift}) {
      float scale = stored(largest / end);
      for (int i = 0; i < 3 && std::isfinite(scale); ++i) {
        const Indexed tried = nearest_of(values, scale, levels);
        if (tried.error < best.error) {
          best = tried;
        }
        const float better = stored(least_squares_scale(values, 0, tried.quants));
        if (better == scale) {
          break;
        }
        scale = better;
      }
    }
  }
}

void pack_indices(const std::array<int, kShort>& indices, std::uint8_t* to) {
  for (std::size_t i = 0; i < kShort / 2; ++i) {
    to[i] = static_cast<std::uint8_t>(indices[i] | indices[kShort / 2 + i] << 4);
  }
}

Fault fill(const float* values, Block<ElementType::iq4_nl>& block) {
  if (std::fabs(largest_of({values, kShort})) / 113 > kMaxHalf) {
    return kScaleTooLarge;
  }
  Indexed best;
  search_indexed(values, kNormalLevels, as_stored, best);
  block.scale = Half::of(best.scale);
  pack_indices(best.indices, block.quants.data());
  return std::nullopt;
}

Fault fill(const float* values, Block<ElementType::mxfp4>& block) {
  const float largest = std::fabs(largest_of({values, kShort}));
  // The middle one of the three exponents tried is ggml's: the largest value is 8 to 16 times its scale.
  const int middle = largest == 0 ? 0 : std::max(std::ilogb(largest) - 3 + 128, 0);
  if (middle > kMaxExponent) {
    return "needs a scale beyond 2^64";
  }
  Indexed best;
  for (int exponent = std::max(middle - 1, 0); exponent <= std::min(middle + 1, int{kMaxExponent}); ++exponent) {
    const double before = best.error;
    consider(values, scale_of_exponent(static_cast<std::uint8_t>(exponent)), kFloatLevels, best);
    if (best.error < before) {
      block.exponent = static_cast<std::uint8_t>(exponent);
    }
  }
  pack_indices(best.indices, block.quants.data());
  return std::nullopt;
}

// Integers from 0 to `most`: as ggml's reference gives them, or better ones. Nothing where no scale holds them.
std::optional<Affine<kShort>> best_affine(const float* values, float most) {
  const auto [low, high] = std::minmax_element(values, values + kShort);
  const float exact = (*high - *low) / most;
  if (!(exact <= kMaxHalf) || std::fabs(*low) > kMaxHalf || std::fabs(*high) > kMaxHalf) {
    return std::nullopt;
  }
  Affine<kShort> best{most, as_stored(exact), as_stored(*low), 0, {}};
  const float inverse = exact == 0 ? 0.0F : 1 / exact;
  if (std::isfinite(inverse)) {
    for (std::size_t i = 0; i < kShort; ++i) {
      best.quants[i] = std::clamp(std::trunc((values[i] - *low) * inverse + 0.5F), 0.0F, most);
    }
  }
  best.error = error_of(values, best);
  search_affine(values, as_stored, as_stored, best);
  return best;
}

Fault fill(const float* values, Block<ElementType::q4_1>& block) {
  const auto best = best_affine(values, 15);
  if (!best) {
    return kScaleTooLarge;
  }
  block.scale = Half::of(best->scale);
  block.min = Half::of(best->min);
  pack_halves(best->quants, 0, block.quants);
  return std::nullopt;
}

Fault fill(const float* values, Block<ElementType::q5_1>& block) {
  const auto best = best_affine(values, 31);
  if (!best) {
    return kScaleTooLarge;
  }
  block.scale = Half::of(best->scale);
  block.min = Half::of(best->min);
  pack_fives(best->quants, 0, block);
  return std::nullopt;
}

// Rounds to a half, but a number that is not 0 never to 0.
[[nodiscard]] Half nonzero_half(float value) noexcept {
  constexpr float kMinHalf = 0x1p-24F;
  return Half::of(value != 0 && std::fabs(value) < kMinHalf ? std::copysign(kMinHalf, value) : value);
}

// Tries the steps, from 0 to `steps`, next to the scale and minimum wanted, and keeps those with the least error.
template <std::size_t kCount>
void choose_part(const float* values, float steps, float scale, float min_scale, const Affine<kCount>& wanted,
                 Affine<kCount>& best) {
  const auto whole = [steps](float value, float unit) {
    return unit > 0 ? clamped_round(value / unit, 0, steps) : 0.0F;
  };
  const float middle = whole(wanted.scale, scale);
  const float middle_min = whole(-wanted.min, min_scale);
  consider(values, 0, 0, best);
  for (float s = std::max(0.0F, middle - 1); s <= std::min(steps, middle + 1); s += 1) {
    consider(values, scale * s, 0, best);
    for (float m = std::max(0.0F, middle_min - 1); m <= std::min(steps, middle_min + 1); m += 1) {
      consider(values, scale * s, -(min_scale * m), best);
    }
  }
}

// A block whose parts of kCount values have scales and minima that are whole multiples of its two units.
template <std::size_t kCount>
struct InParts {
  Half scale;
  Half min_scale;
  double error = std::numeric_limits<double>::infinity();
  std::array<Affine<kCount>, kLong / kCount> parts{};

  [[nodiscard]] std::uint8_t scale_of(std::size_t part) const { return steps_of(parts[part].scale, scale); }
  [[nodiscard]] std::uint8_t min_of(std::size_t part) const { return steps_of(-parts[part].min, min_scale); }

 private:
  [[nodiscard]] static std::uint8_t steps_of(float value, Half unit) {
    return static_cast<std::uint8_t>(value == 0 ? 0.0F : std::round(value / unit.value()));
  }
};

// Computes the units from the integers by least squares.
template <std::size_t kCount>
void improve_units(const float* values, const InParts<kCount>& found, Half& scale, Half& min_scale) {
  double qq = 0;
  double mm = 0;
  double qm = 0;
  double qx = 0;
  double mx = 0;
  for (std::size_t part = 0; part < found.parts.size(); ++part) {
    const double s = found.scale_of(part);
    const double m = found.min_of(part);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double q = s * static_cast<double>(found.parts[part].quants[i]);
      const double x = static_cast<double>(values[part * kCount + i]);
      qq += q * q;
      mm += m * m;
      qm += q * m;
      qx += q * x;
      mx += m * x;
    }
  }
  const double determinant = qq * mm - qm * qm;
  if (determinant > 0) {
    scale = Half::of(static_cast<float>((qx * mm - mx * qm) / determinant));
    min_scale = Half::of(static_cast<float>((qx * qm - mx * qq) / determinant));
  } else if (qq > 0) {
    scale = Half::of(static_cast<float>(qx / qq));
  }
}

// Finds integers from 0 to `most`, scales and minima from 0 to `steps`, and their units. Nothing if a unit exceeds
// float16.
template <std::size_t kCount>
std::optional<InParts<kCount>> best_in_parts(const float* values, float most, float steps) {
  if (std::fabs(largest_of({values, kLong})) > kMaxHalf * steps * most) {
    return std::nullopt;
  }
  std::array<Affine<kCount>, kLong / kCount> wanted{};
  float most_scale = 0;
  float most_min = 0;
  for (std::size_t part = 0; part < wanted.size(); ++part) {
    wanted[part].most = most;
    // A part's minimum is subtracted and not negative: values that are all positive have the minimum 0.
    search_affine(
        values + part * kCount, [](float scale) { return std::max(scale, 0.0F); },
        [](float min) { return std::min(min, 0.0F); }, wanted[part]);
    most_scale = std::max(most_scale, wanted[part].scale);
    most_min = std::max(most_min, -wanted[part].min);
  }
  if (!(most_scale / steps <= kMaxHalf) || !(most_min / steps <= kMaxHalf)) {
    return std::nullopt;
  }
  InParts<kCount> best;
  Half scale = nonzero_half(most_scale / steps);
  Half min_scale = nonzero_half(most_min / steps);
  for (int i = 0; i < 4; ++i) {
    InParts<kCount> tried{scale, min_scale, 0, {}};
    for (std::size_t part = 0; part < wanted.size(); ++part) {
      Affine<kCount>& of_part = tried.parts[part];
      of_part.most = most;
      choose_part(values + part * kCount, steps, scale.value(), min_scale.value(), wanted[part], of_part);
      tried.error += of_part.error;
    }
    if (!(tried.error < best.error)) {
      break;
    }
    best = tried;
    improve_units(values, best, scale, min_scale);
    if (!(scale.value() > 0) || !(min_scale.value() >= 0) || !std::isfinite(scale.value()) ||
        !std::isfinite(min_scale.value())) {
      break;
    }
  }
  return best;
}

// The lower four bits of value `i` of a part.
void put_low(std::array<std::uint8_t, kLong / 2>& quants, std::size_t part, std::size_t i, unsigned quant) {
  std::uint8_t& byte = quants[part / 2 * 32 + i];
  byte = static_cast<std::uint8_t>(byte | (quant & 0x0FU) << (part % 2 == 0 ? 0U : 4U));
}

// Fills a block of eight parts; `put` takes the integer of value `i` of a part.
template <typename Block, typename Put>
Fault fill_parts(const float* values, float most, Block& block, const Put& put) {
  const auto best = best_in_parts<kShort>(values, most, 63);
  if (!best) {
    return kScaleTooLarge;
  }
  block = {};
  block.scale = best->scale;
  block.min_scale = best->min_scale;
  Parts parts{};
  for (std::size_t part = 0; part < kParts; ++part) {
    parts.scales[part] = best->scale_of(part);
    parts.mins[part] = best->min_of(part);
    for (std::size_t i = 0; i < kShort; ++i) {
      put(part, i, static_cast<unsigned>(best->parts[part].quants[i]));
    }
  }
  block.parts = pack_parts(parts);
  return std::nullopt;
}

Fault fill(const float* values, Block<ElementType::q4_k>& block) {
  return fill_parts(values, 15, block,
                    [&](std::size_t part, std::size_t i, unsigned quant) { put_low(block.quants, part, i, quant); });
}

Fault fill(const float* values, Block<ElementType::q5_k>& block) {
  return fill_parts(values, 31, block, [&](std::size_t part, std::size_t i, unsigned quant) {
    put_low(block.quants, part, i, quant);
    block.high[i] = static_cast<std::uint8_t>(block.high[i] | quant >> 4U << part);
  });
}

Fault fill(const float* values, Block<ElementType::q2_k>& block) {
  constexpr std::size_t kGroup = kLong / kGroups;
  const auto best = best_in_parts<kGroup>(values, 3, 15);
  if (!best) {
    return kScaleTooLarge;
  }
  block = {};
  block.scale = best->scale;
  block.min_scale = best->min_scale;
  for (std::size_t i = 0; i < kLong; ++i) {
    const SixBits bits = six_bits_of(i);
    const auto quant = static_cast<unsigned>(best->parts[i / kGroup].quants[i % kGroup]);
    std::uint8_t& byte = block.quants[bits.high_byte];
    byte = static_cast<std::uint8_t>(byte | quant << bits.high_shift);
  }
  for (std::size_t group = 0; group < kGroups; ++group) {
    block.scales[group] = static_cast<std::uint8_t>(best->scale_of(group) | best->min_of(group) << 4U);
  }
  return std::nullopt;
}

// How the scale of a group is searched for and judged: for integers in a range, or in a table.
struct SymmetricGroups {
  static constexpr std::size_t kCount = kLong / kGroups;
  using Best = Symmetric<kCount>;
  float half;  // integers are from -half to half - 1

  [[nodiscard]] float reach() const { return half; }
  void search(const float* values, Best& best) const {
    search_symmetric(
        values, -half, half - 1, [](float scale) { return scale; }, best);
  }
  void judge(const float* values, float scale, Best& best) const { consider(values, scale, -half, half - 1, best); }
};

struct NormalGroups {
  static constexpr std::size_t kCount = kShort;
  using Best = Indexed;

  [[nodiscard]] static float reach() { return kNormalLevels.integers.back(); }
  static void search(const float* values, Best& best) {
    search_indexed(
        values, kNormalLevels, [](float scale) { return scale; }, best);
  }
  static void judge(const float* values, float scale, Best& best) { consider(values, scale, kNormalLevels, best); }
};

// A block of groups, whose scales are whole multiples of its unit.
template <typename Groups>
struct InGroups {
  Half scale;
  double error = std::numeric_limits<double>::infinity();
  std::array<typename Groups::Best, kLong / Groups::kCount> groups{};
  std::array<int, kLong / Groups::kCount> steps{};

  /// Computes the unit from the integers by least squares; 0 if they are all zero.
  [[nodiscard]] float better_scale(const float* values) const {
    double products = 0;
    double squares = 0;
    for (std::size_t i = 0; i < kLong; ++i) {
      const std::size_t group = i / Groups::kCount;
      const double q = steps[group] * static_cast<double>(groups[group].quants[i % Groups::kCount]);
      products += static_cast<double>(values[i]) * q;
      squares += q * q;
    }
    return squares > 0 ? static_cast<float>(products / squares) : 0.0F;
  }
};

// Finds integers, scales from -steps to steps - 1 and their unit. Nothing if a unit exceeds float16.
template <typename Groups>
std::optional<InGroups<Groups>> best_in_groups(const float* values, const Groups& groups, float steps) {
  if (std::fabs(largest_of({values, kLong})) > kMaxHalf * steps * groups.reach()) {
    return std::nullopt;
  }
  std::array<float, kLong / Groups::kCount> wanted{};
  for (std::size_t group = 0; group < wanted.size(); ++group) {
    typename Groups::Best best;
    groups.search(values + group * Groups::kCount, best);
    wanted[group] = best.scale;
  }
  const float exact = largest_of(wanted) / -steps;
  if (!(std::fabs(exact) <= kMaxHalf)) {
    return std::nullopt;
  }
  InGroups<Groups> best;
  Half unit = nonzero_half(exact);
  for (int i = 0; i < 4; ++i) {
    InGroups<Groups> tried{unit, 0, {}, {}};
    const float scale = unit.value();
    for (std::size_t group = 0; group < wanted.size(); ++group) {
      const float* of_group = values + group * Groups::kCount;
      const float middle = scale == 0 ? 0.0F : clamped_round(wanted[group] / scale, -steps, steps - 1);
      groups.judge(of_group, 0, tried.groups[group]);
      for (float s = std::max(-steps, middle - 1); s <= std::min(steps - 1, middle + 1); s += 1) {
        const double before = tried.groups[group].error;
        groups.judge(of_group, scale * s, tried.groups[group]);
        if (tried.groups[group].error < before) {
          tried.steps[group] = static_cast<int>(s);
        }
      }
      tried.error += tried.groups[group].error;
    }
    if (!(tried.error < best.error)) {
      break;
    }
    best = tried;
    unit = Half::of(best.better_scale(values));
    if (!std::isfinite(unit.value()) || unit.value() == 0) {
      break;
    }
  }
  return best;
}

Fault fill(const float* values, Block<ElementType::q6_k>& block) {
  const auto best = best_in_groups(values, SymmetricGroups{32}, 128);
  if (!best) {
    return kScaleTooLarge;
  }
  block = {};
  block.scale = best->scale;
  for (std::size_t i = 0; i < kLong; ++i) {
    const SixBits bits = six_bits_of(i);
    const auto quant = static_cast<unsigned>(best->groups[i / 16].quants[i % 16] + 32);
    std::uint8_t& low = block.low[bits.low_byte];
    std::uint8_t& high = block.high[bits.high_byte];
    low = static_cast<std::uint8_t>(low | (quant & 0x0FU) << bits.low_shift);
    high = static_cast<std::uint8_t>(high | quant >> 4U << bits.high_shift);
  }
  std::copy(best->steps.begin(), best->steps.end(), block.scales.begin());
  return std::nullopt;
}

Fault fill(const float* values, Block<ElementType::q3_k>& block) {
  const auto best = best_in_groups(values, SymmetricGroups{4}, 32);
  if (!best) {
    return kScaleTooLarge;
  }
  block = {};
  block.scale = best->scale;
  for (std::size_t i = 0; i < kLong; ++i) {
    const SixBits bits = six_bits_of(i);
    const auto quant = static_cast<unsigned>(best->groups[i / 16].quants[i % 16] + 4);
    std::uint8_t& low = block.low[bits.high_byte];
    std::uint8_t& high = block.high[i % 32];
    low = static_cast<std::uint8_t>(low | (quant & 3U) << bits.high_shift);
    high = static_cast<std::uint8_t>(high | quant >> 2U << (i / 32));
  }
  block.scales = pack_scales(best->steps);
  return std::nullopt;
}

Fault fill(const float* values, Block<ElementType::iq4_xs>& block) {
  const auto best = best_in_groups(values, NormalGroups{}, 32);
  if (!best) {
    return kScaleTooLarge;
  }
  block = {};
  block.scale = best->scale;
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto step = static_cast<unsigned>(best->steps[part] + 32);
    std::uint8_t& low = block.low[part / 2];
    std::uint8_t& high = block.high[part / 4];
    low = static_cast<std::uint8_t>(low | (step & 0x0FU) << (part % 2 * 4));
    high = static_cast<std::uint8_t>(high | step >> 4U << (part % 4 * 2));
    pack_indices(best->groups[part].indices, block.quants.data() + part * kShort / 2);
  }
  return std::nullopt;
}

Fault fill(const float* values, Block<ElementType::int4_g128>& block) {
  std::uint16_t scale = 0;
  block.unused = 0;
  const auto unfit =
      quantize_int4({values, kInt4Group}, {block.quants, std::span(&scale, 1), std::span(&block.zero, 1)});
  std::memcpy(block.scale.bytes.data(), &scale, sizeof scale);
  return unfit ? Fault(unfit->reason) : std::nullopt;
}

template <ElementType format>
std::optional<UnfitBlock> fill_all(std::span<const float> values, std::span<std::byte> blocks) {
  constexpr std::size_t kValues = kElementTypes[static_cast<std::size_t>(format)].block.values;
  for (std::size_t at = 0; at * kValues < values.size(); ++at) {
    const float* first = values.data() + at * kValues;
    for (std::size_t i = 0; i < kValues; ++i) {
      if (!std::isfinite(first[i])) {
        return UnfitBlock{at * kValues + i, "is not finite"};
      }
    }
    Block<format> block;
    if (const Fault fault = fill(first, block)) {
      return UnfitBlock{at * kValues, *fault};
    }
    std::memcpy(blocks.data() + at * sizeof block, &block, sizeof block);
  }
  return std::nullopt;
}

}  // namespace

std::optional<UnfitBlock> quantize(ElementType format, std::span<const float> values, std::span<std::byte> blocks) {
  require_whole_blocks(format, blocks.size(), values.size());
  std::optional<UnfitBlock> unfit;
  with_blocks(format, [&]<ElementType known> { unfit = fill_all<known>(values, blocks); });
  return unfit;
}

}  // namespace pascaline
