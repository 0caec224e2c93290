#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/space/space.hpp"
#include "db/store.hpp"

namespace pascaline {

// What devices of the same kind measured is a prior of a search, too: less than the same device's own, and only while
// that has too few trials of the shape itself.

/// Other devices' problems that a search begins with, and their winners that it tries first, at most.
inline constexpr std::size_t kMaxOtherDevices = 2;

/// How far trials of another device of the same kind lie from one's own, in octaves of a shape's dimensions
/// (`shape_distance`): kOctavesOfSameCapability where the compute capability is the same, as then the code is, too, and
/// only how much of everything there is differs; else kOctavesOfOther. Found with recorded spaces of several GPUs
/// (docs/results.md).
[[nodiscard]] double device_octaves(const DeviceRow& a, const DeviceRow& b);
inline constexpr double kOctavesOfSameCapability = 1;
inline constexpr double kOctavesOfOther = 2;

/// Another device's key that may tell something about a problem.
struct NearElsewhere {
  double octaves = 0;         ///< of device and shape together
  double device_octaves = 0;  ///< of the device alone
  const Store::MeasuredElsewhere* key = nullptr;
};

/// Those of the keys, which must outlive the result, that have enough trials of a problem that the space tells
/// anything about, of each device and problem the one with the most trials: the nearest first; of equally near ones
/// that of the device whose number of multiprocessors is most like this one's, then in the keys' order.
[[nodiscard]] std::vector<NearElsewhere> nearest_elsewhere(const Space& space, const Problem& problem,
                                                           const DeviceRow& device,
                                                           const std::vector<Store::MeasuredElsewhere>& keys);

/// Winners of exactly that problem (as text) on other devices of the kind, of each device the one decided last: those
/// of the nearest devices first, in the same order. `winners` as Store::winners gives them, which must outlive the
/// result.
[[nodiscard]] std::vector<const Winner*> winners_elsewhere(const std::string& problem, const DeviceRow& device,
                                                           const std::vector<Winner>& winners);

/// So many of the trials as a prior can use: the fastest half, and of the others evenly many. In the order of times.
[[nodiscard]] std::vector<std::pair<Config, double>> thinned_times(std::vector<std::pair<Config, double>> times_us);

}  // namespace pascaline
