#include "runtime/formats/int4_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/elements.hpp"
#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kGroupBytes = kInt4Group / 2;
constexpr float kLargestScale = 65504;  // of float16

void check_lengths(const Int4Groups& groups, std::size_t values) {
  const std::size_t count = groups.scales.size();
  if (groups.zeros.size() != count || groups.quants.size() != count * kGroupBytes || values != count * kInt4Group) {
    throw Error(fmt::format("{} values, {} bytes, {} scales and {} zeros are not groups of {}", values,
                            groups.quants.size(), count, groups.zeros.size(), kInt4Group));
  }
}

struct Group {
  float scale = 0;
  float zero = 0;
  double error = std::numeric_limits<double>::infinity();
  std::array<float, kInt4Group> quants{};
};

void consider(const float* values, float wanted_scale, float zero, Group& best) {
  Group tried;
  tried.scale = float_from_half(half_from_float(wanted_scale));
  tried.zero = zero;
  if (!std::isfinite(tried.scale)) {
    return;
  }
  tried.error = 0;
  for (std::size_t i = 0; i < kInt4Group; ++i) {
    const float quotient = tried.scale == 0 ? 0.0F : std::clamp(values[i] / tried.scale, -32.0F, 32.0F);
    tried.quants[i] = std::clamp(std::nearbyint(quotient) + zero, 0.0F, 15.0F);
    const double difference =
        static_cast<double>(values[i]) - static_cast<double>((tried.quants[i] - zero) * tried.scale);
    tried.error += difference * difference;
  }
  if (tried.error < best.error) {
    best = tried;
  }
}

float least_squares_scale(const float* values, const Group& group) {
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < kInt4Group; ++i) {
    const auto level = static_cast<double>(group.quants[i] - group.zero);
    products += level * static_cast<double>(values[i]);
    squares += level * level;
  }
  return squares > 0 ? static_cast<float>(products / squares) : 0.0F;
}

// Zero is a value of every group, as its zero point is one of the sixteen integers.
Group best_group(const float* values) {
  const auto [least, most] = std::minmax_element(values, values + kInt4Group);
  const float low = std::min(*least, 0.0F);
  const float high = std::max(*most, 0.0F);
  Group best;
  for (int shrink = 0; shrink <= 6; ++shrink) {
    const float scale = (high - low) * (1 - 0.05F * static_cast<float>(shrink)) / 15;
    const float zero = scale > 0 ? std::clamp(std::nearbyint(-low / scale), 0.0F, 15.0F) : 0.0F;
    for (const float near : {zero - 1, zero, zero + 1}) {
      if (near >= 0 && near <= 15) {
        consider(values, scale, near, best);
      }
    }
  }
  for (int i = 0; i < 3; ++i) {
    const double before = best.error;
    consider(values, least_squares_scale(values, best), best.zero, best);
    if (!(best.error < before)) {
      break;
    }
  }
  return best;
}

}  // namespace

void dequantize_int4(const Int4Groups& groups, std::span<float> values) {
  check_lengths(groups, values.size());
  for (std::size_t group = 0; group < groups.scales.size(); ++group) {
    const float scale = float_from_half(groups.scales[group]);
    const int zero = groups.zeros[group];
    const std::uint8_t* quants = groups.quants.data() + group * kGroupBytes;
    float* to = values.data() + group * kInt4Group;
    for (std::size_t i = 0; i < kGroupBytes; ++i) {
      to[i] = static_cast<float>(static_cast<int>(quants[i] & 0x0FU) - zero) * scale;
      to[kGroupBytes + i] = static_cast<float>(static_cast<int>(quants[i] >> 4U) - zero) * scale;
    }
  }
}

std::optional<UnfitBlock> quantize_int4(std::span<const float> values, const Int4Groups& groups) {
  check_lengths(groups, values.size());
  for (std::size_t group = 0; group < groups.scales.size(); ++group) {
    const float* from = values.data() + group * kInt4Group;
    float largest = 0;
    for (std::size_t i = 0; i < kInt4Group; ++i) {
      if (!std::isfinite(from[i])) {
        return UnfitBlock{group * kInt4Group + i, "is not finite"};
      }
      largest = std::max(largest, std::fabs(from[i]));
    }
    if (largest / 15 > kLargestScale / 2) {
      return UnfitBlock{group * kInt4Group, "needs a scale beyond float16"};
    }
    const Group best = best_group(from);
    groups.scales[group] = half_from_float(best.scale);
    groups.zeros[group] = static_cast<std::uint8_t>(best.zero);
    for (std::size_t i = 0; i < kGroupBytes; ++i) {
      groups.quants[group * kGroupBytes + i] = static_cast<std::uint8_t>(
          static_cast<unsigned>(best.quants[i]) | static_cast<unsigned>(best.quants[kGroupBytes + i]) << 4U);
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
