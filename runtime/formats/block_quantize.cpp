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
  for (int step = -4; step <= 4; ++step) {
    const float shift = steps * static_cast<float>(step);
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

/// A table's integers in rising order, the middles between neighbours, and the indices that name them.
struct Levels {
  std::array<float, 16> integers{};
  std::array<float, 15> middles{};
  std::array<int, 16> indices{};
};
[[nodiscard]] Levels levels_of(const std::array<std::int8_t, 16>& table) noexcept {
  Levels levels;
  std::iota(levels.indices.begin(), levels.indices.end(), 0);
  const auto integer = [&](int index) { return table[static_cast<std::size_t>(index)]; };
  // Of two equal integers the one of the lower index is last, and so the one that is taken.
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
const Levels kNormalLevels = levels_of(kNormalTable);
const Levels kFloatLevels = levels_of(kFloatTable);

/// Takes the scale, as it is, if it is better than `best`.
void consider(const float* values, float scale, const Levels& levels, Indexed& best) noexcept {
  if (!std::isfinite(scale)) {
    return;
  }
  Indexed tried;
  tried.scale = scale;
  std::array<float, kShort> wanted{};
  for (std::size_t i = 0; i < kShort; ++i) {
    wanted[i] = scale == 0 ? 0.0F : values[i] / scale;
  }
  for (const float middle : levels.middles) {
    for (std::size_t i = 0; i < kShort; ++i) {
      tried.indices[i] += wanted[i] > middle ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < kShort; ++i) {
    const auto level = static_cast<std::size_t>(tried.indices[i]);
    tried.quants[i] = levels.integers[level];
    tried.indices[i] = levels.indices[level];
  }
  tried.error = error_of(values, scale, tried.quants);
  if (tried.error < best.error) {
    best = tried;
  }
}

/// As search_symmetric: the value of largest magnitude is put on, and a little beyond, the ends of the table.
template <typename Stored>
void search_indexed(const float* values, const Levels& levels, const Stored& stored, Indexed& best) {
  const float largest = largest_of({values, kShort});
  if (largest == 0) {
    consider(values, 0.0F, levels, best);
    return;
  }
  for (int step = -8; step <= 12; ++step) {
    const float shift = 2.0F * static_cast<float>(step);
    consider(values, stored(largest / (levels.integers.front() - shift)), levels, best);
    consider(values, stored(largest / (levels.integers.back() + shift)), levels, best);
  }
  for (int i = 0; i < 4; ++i) {
    const double before = best.error;
    consider(values, stored(least_squares_scale(values, 0, best.quants)), levels, best);
    if (!(best.error < before)) {
      break;
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
  // With the middle one of three the largest value is 8 to 16 times the scale, as ggml's reference has it.
  const int middle = largest == 0 ? 0 : std::max(std::ilogb(largest) - 3 + 128, 0);
  if (middle > kMostExponent) {
    return "needs a scale beyond 2^64";
  }
  Indexed best;
  for (int exponent = std::max(middle - 1, 0); exponent <= std::min(middle + 1, int{kMostExponent}); ++exponent) {
    const double before = best.error;
    consider(values, scale_of_exponent(static_cast<std::uint8_t>(exponent)), kFloatLevels, best);
    if (best.error < before) {
      block.exponent = static_cast<std::uint8_t>(exponent);
    }
  }
  pack_indices(best.indices, block.quants.data());
  return std::nullopt;
}

Fault fill(const float* values, Block<ElementType::iq4_xs>& block) {
  if (std::fabs(largest_of({values, kLong})) > kMaxHalf * 31 * 113) {
    return kScaleTooLarge;
  }
  std::array<float, kParts> scales{};
  for (std::size_t part = 0; part < kParts; ++part) {
    Indexed best;
    search_indexed(
        values + part * kShort, kNormalLevels, [](float scale) { return scale; }, best);
    scales[part] = best.scale;
  }
  const float exact = largest_of(scales) / -32;
  if (!(std::fabs(exact) <= kMaxHalf)) {
    return kScaleTooLarge;
  }
  block = {};
  block.scale = Half::of(exact);
  const float scale = block.scale.value();
  for (std::size_t part = 0; part < kParts; ++part) {
    const float middle = scale == 0 ? 0.0F : clamped_round(scales[part] / scale, -32, 31);
    Indexed best;
    unsigned chosen = 32;
    for (float s = std::max(-32.0F, middle - 1); s <= std::min(31.0F, middle + 1); s += 1) {
      const double before = best.error;
      consider(values + part * kShort, scale * s, kNormalLevels, best);
      if (best.error < before) {
        chosen = static_cast<unsigned>(s + 32);
      }
    }
    std::uint8_t& low = block.low[part / 2];
    std::uint8_t& high = block.high[part / 4];
    low = static_cast<std::uint8_t>(low | (chosen & 0x0FU) << (part % 2 * 4));
    high = static_cast<std::uint8_t>(high | chosen >> 4U << (part % 4 * 2));
    pack_indices(best.indices, block.quants.data() + part * kShort / 2);
  }
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

// Scales and minima in whole steps, from 0 to `steps`, around the nearest ones are tried, as each is judged by its own
// part's error.
template <std::size_t kCount>
void choose_part(const float* values, int steps, float scale, float min_scale, std::uint8_t& part_scale,
                 std::uint8_t& part_min, Affine<kCount>& best) {
  const int middle_scale = part_scale;
  const int middle_min = part_min;
  for (int s = std::max(0, middle_scale - 1); s <= std::min(steps, middle_scale + 1); ++s) {
    for (int m = std::max(0, middle_min - 1); m <= std::min(steps, middle_min + 1); ++m) {
      const double before = best.error;
      consider(values, scale * static_cast<float>(s), -(min_scale * static_cast<float>(m)), best);
      if (best.error < before) {
        part_scale = static_cast<std::uint8_t>(s);
        part_min = static_cast<std::uint8_t>(m);
      }
    }
  }
}

// Fills a block of parts of kCount values with scales and minima, which are whole steps from 0 to `steps`. `put` takes
// the integer of value `i` of a part, from 0 to `most`.
template <std::size_t kCount, typename InParts, typename Put>
Fault fill_parts(const float* values, float most, int steps, InParts& block,
                 std::array<std::uint8_t, kLong / kCount>& scales, std::array<std::uint8_t, kLong / kCount>& mins,
                 const Put& put) {
  const auto all_steps = static_cast<float>(steps);
  if (std::fabs(largest_of({values, kLong})) > kMaxHalf * all_steps * most) {
    return kScaleTooLarge;
  }
  std::array<Affine<kCount>, kLong / kCount> lines{};
  float most_scale = 0;
  float most_min = 0;
  for (std::size_t part = 0; part < lines.size(); ++part) {
    Affine<kCount> best{.most = most};
    // A part's minimum is subtracted and not negative: values that are all positive have the minimum 0.
    search_affine(
        values + part * kCount, [](float scale) { return std::max(scale, 0.0F); },
        [](float min) { return std::min(min, 0.0F); }, best);
    lines[part] = best;
    most_scale = std::max(most_scale, best.scale);
    most_min = std::max(most_min, -best.min);
  }
  if (!(most_scale / all_steps <= kMaxHalf) || !(most_min / all_steps <= kMaxHalf)) {
    return kScaleTooLarge;
  }
  block.scale = Half::of(most_scale / all_steps);
  block.min_scale = Half::of(most_min / all_steps);
  const float scale = block.scale.value();
  const float min_scale = block.min_scale.value();
  for (std::size_t part = 0; part < lines.size(); ++part) {
    const auto whole = [&](float value, float unit) {
      return static_cast<std::uint8_t>(unit > 0 ? clamped_round(value / unit, 0, all_steps) : 0.0F);
    };
    scales[part] = whole(lines[part].scale, scale);
    mins[part] = whole(-lines[part].min, min_scale);
    Affine<kCount> best{.most = most};
    choose_part(values + part * kCount, steps, scale, min_scale, scales[part], mins[part], best);
    for (std::size_t i = 0; i < kCount; ++i) {
      put(part, i, static_cast<unsigned>(best.quants[i]));
    }
  }
  return std::nullopt;
}

// The lower four bits of value `i` of a part.
void put_low(std::array<std::uint8_t, kLong / 2>& quants, std::size_t part, std::size_t i, unsigned quant) {
  std::uint8_t& byte = quants[part / 2 * 32 + i];
  byte = static_cast<std::uint8_t>(byte | (quant & 0x0FU) << (part % 2 == 0 ? 0U : 4U));
}

Fault fill(const float* values, Block<ElementType::q4_k>& block) {
  block = {};
  Parts parts{};
  const Fault fault = fill_parts<kShort>(
      values, 15, 63, block, parts.scales, parts.mins,
      [&](std::size_t part, std::size_t i, unsigned quant) { put_low(block.quants, part, i, quant); });
  block.parts = pack_parts(parts);
  return fault;
}

Fault fill(const float* values, Block<ElementType::q5_k>& block) {
  block = {};
  Parts parts{};
  const Fault fault = fill_parts<kShort>(
      values, 31, 63, block, parts.scales, parts.mins, [&](std::size_t part, std::size_t i, unsigned quant) {
        put_low(block.quants, part, i, quant);
        block.high[i] = static_cast<std::uint8_t>(block.high[i] | quant >> 4U << part);
      });
  block.parts = pack_parts(parts);
  return fault;
}

Fault fill(const float* values, Block<ElementType::q2_k>& block) {
  block = {};
  std::array<std::uint8_t, kGroups> mins{};
  const Fault fault = fill_parts<kLong / kGroups>(values, 3, 15, block, block.scales, mins,
                                                  [&](std::size_t group, std::size_t i, unsigned quant) {
                                                    const SixBits bits = six_bits_of(group * kLong / kGroups + i);
                                                    std::uint8_t& byte = block.quants[bits.high_byte];
                                                    byte = static_cast<std::uint8_t>(byte | quant << bits.high_shift);
                                                  });
  for (std::size_t group = 0; group < kGroups; ++group) {
    block.scales[group] = static_cast<std::uint8_t>(block.scales[group] | mins[group] << 4U);
  }
  return fault;
}

// Finds the scale of sixteen groups' scales, which are whole multiples of it from -steps to steps - 1: `step` takes
// that of a group, `put` the integer of value `i`, from 0 to 2 · half - 1. Nothing where no scale holds them.
template <typename Step, typename Put>
std::optional<Half> fill_groups(const float* values, float half, float steps, const Step& step, const Put& put) {
  constexpr std::size_t kGroup = kLong / kGroups;
  if (std::fabs(largest_of({values, kLong})) > kMaxHalf * steps * half) {
    return std::nullopt;
  }
  std::array<float, kGroups> scales{};
  for (std::size_t group = 0; group < kGroups; ++group) {
    Symmetric<kGroup> best;
    search_symmetric(
        values + group * kGroup, -half, half - 1, [](float scale) { return scale; }, best);
    scales[group] = best.scale;
  }
  const float exact = largest_of(scales) / -steps;
  if (!(std::fabs(exact) <= kMaxHalf)) {
    return std::nullopt;
  }
  const Half unit = Half::of(exact);
  const float scale = unit.value();
  for (std::size_t group = 0; group < kGroups; ++group) {
    const float middle = scale == 0 ? 0.0F : clamped_round(scales[group] / scale, -steps, steps - 1);
    Symmetric<kGroup> best;
    for (float s = std::max(-steps, middle - 1); s <= std::min(steps - 1, middle + 1); s += 1) {
      const double before = best.error;
      consider(values + group * kGroup, scale * s, -half, half - 1, best);
      if (best.error < before) {
        step(group, static_cast<std::int8_t>(s));
      }
    }
    for (std::size_t i = 0; i < kGroup; ++i) {
      put(group * kGroup + i, static_cast<unsigned>(best.quants[i] + half));
    }
  }
  return unit;
}

Fault fill(const float* values, Block<ElementType::q6_k>& block) {
  block = {};
  const auto scale = fill_groups(
      values, 32, 128, [&](std::size_t group, std::int8_t step) { block.scales[group] = step; },
      [&](std::size_t i, unsigned quant) {
        const SixBits bits = six_bits_of(i);
        std::uint8_t& low = block.low[bits.low_byte];
        std::uint8_t& high = block.high[bits.high_byte];
        low = static_cast<std::uint8_t>(low | (quant & 0x0FU) << bits.low_shift);
        high = static_cast<std::uint8_t>(high | quant >> 4U << bits.high_shift);
      });
  block.scale = scale.value_or(Half{});
  return scale ? Fault() : kScaleTooLarge;
}

Fault fill(const float* values, Block<ElementType::q3_k>& block) {
  block = {};
  std::array<std::int8_t, kGroups> steps{};
  const auto scale = fill_groups(
      values, 4, 32, [&](std::size_t group, std::int8_t step) { steps[group] = step; },
      [&](std::size_t i, unsigned quant) {
        const SixBits bits = six_bits_of(i);
        std::uint8_t& low = block.low[bits.high_byte];
        std::uint8_t& high = block.high[i % 32];
        low = static_cast<std::uint8_t>(low | (quant & 3U) << bits.high_shift);
        high = static_cast<std::uint8_t>(high | quant >> 2U << (i / 32));
      });
  block.scale = scale.value_or(Half{});
  block.scales = pack_scales(steps);
  return scale ? Fault() : kScaleTooLarge;
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
