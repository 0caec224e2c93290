#include "app/sweep/small_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/util/duration.hpp"
#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kSmallSize = 64;
constexpr double kPatienceSeconds = 5;
// Of a trial as a whole, which launches its kernel several times and verifies what it computes.
constexpr double kEmulatedFlopsPerSecond = 1.7e8;
constexpr double kEmulatedBytesPerSecond = 2e8;

using Sizes = std::vector<std::pair<std::string, std::string>>;

bool has_valid_default(const Space& space, const Sizes& sizes, const DeviceLimits& limits) {
  try {
    const BoundSpace bound(space, space.problem(sizes), limits);
    return !bound.why_invalid(bound.default_config());
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string small_shape(const Space& space, const DeviceLimits& limits) {
  Sizes sizes;
  std::vector<const Dimension*> named;
  for (const Dimension& dimension : space.dimensions) {
    if (!dimension.default_value) {
      sizes.emplace_back(dimension.name, std::to_string(dimension.example));
      named.push_back(&dimension);
    }
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Dimension& dimension = *named[i];
    for (std::int64_t size = std::max(kSmallSize, dimension.minimum); size < dimension.example; size *= 2) {
      const std::string before = std::exchange(sizes[i].second, std::to_string(size));
      if (has_valid_default(space, sizes, limits)) {
        break;
      }
      sizes[i].second = before;
    }
  }
  std::string text;
  for (const auto& [name, size] : sizes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  }
  return text;
}

std::optional<std::string> emulated_shape_warning(const Space& space) {
  const DeviceLimits limits = emulated_device_info().limits;
  const BoundSpace bound(space, space.example_problem(), limits);
  const double trial_s = std::max(bound.flops() / kEmulatedFlopsPerSecond, bound.bytes() / kEmulatedBytesPerSecond);
  if (trial_s < kPatienceSeconds) {
    return std::nullopt;
  }
  return fmt::format(
      "warning: no size was given, so {} is tuned on the emulated device, where a trial of it takes about {}; to try "
      "things out give a small one: --problem {}",
      bound.problem().text(), duration_text(trial_s), small_shape(space, limits));
}

}  // namespace pascaline
