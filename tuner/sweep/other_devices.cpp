#include "tuner/sweep/other_devices.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/space/shape_distance.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/search/transfer.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxKeptTrials = 1000;

// In octaves; devices of unknown size are like any other.
double size_octaves(const DeviceRow& a, const DeviceRow& b) {
  return a.sm_count > 0 && b.sm_count > 0
             ? std::abs(std::log2(static_cast<double>(a.sm_count) / static_cast<double>(b.sm_count)))
             : 0;
}

}  // namespace

double device_octaves(const DeviceRow& a, const DeviceRow& b) {
  return a.compute_capability == b.compute_capability ? kOctavesOfSameCapability : kOctavesOfOther;
}

std::vector<NearElsewhere> nearest_elsewhere(const Space& space, const Problem& problem, const DeviceRow& device,
                                             const std::vector<Store::MeasuredElsewhere>& keys) {
  std::vector<NearElsewhere> near;
  for (const Store::MeasuredElsewhere& key : keys) {
    const auto octaves = shape_distance(space, problem, key.problem);
    if (!octaves || key.trials < static_cast<std::int64_t>(kMinRelated)) {
      continue;
    }
    const double of_device = device_octaves(device, key.device);
    const NearElsewhere found{*octaves + of_device, of_device, &key};
    const auto same = std::find_if(near.begin(), near.end(), [&](const NearElsewhere& other) {
      return other.key->device_id == key.device_id && other.key->problem_id == key.problem_id;
    });
    if (same == near.end()) {
      near.push_back(found);
    } else if (same->key->trials < key.trials) {
      *same = found;
    }
  }
  std::stable_sort(near.begin(), near.end(), [&](const NearElsewhere& a, const NearElsewhere& b) {
    return std::pair(a.octaves, size_octaves(device, a.key->device)) <
           std::pair(b.octaves, size_octaves(device, b.key->device));
  });
  return near;
}

std::vector<const Winner*> winners_elsewhere(const std::string& problem, const DeviceRow& device,
                                             const std::vector<Winner>& winners) {
  std::vector<const Winner*> found;
  for (const Winner& winner : winners) {
    const bool first_of_device = std::none_of(
        found.begin(), found.end(), [&](const Winner* other) { return same_identity(other->device, winner.device); });
    if (winner.device.kind == device.kind && !same_identity(winner.device, device) && first_of_device &&
        winner.trial.problem.text() == problem) {
      found.push_back(&winner);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](const Winner* a, const Winner* b) {
    return std::pair(device_octaves(device, a->device), size_octaves(device, a->device)) <
           std::pair(device_octaves(device, b->device), size_octaves(device, b->device));
  });
  return found;
}

std::vector<std::pair<Config, double>> thinned_times(std::vector<std::pair<Config, double>> times_us) {
  std::stable_sort(times_us.begin(), times_us.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (times_us.size() <= kMaxKeptTrials) {
    return times_us;
  }
  constexpr std::size_t kHalf = kMaxKeptTrials / 2;
  const std::size_t others = times_us.size() - kHalf;
  for (std::size_t i = 0; i < kHalf; ++i) {
    const std::size_t from = kHalf + i * others / kHalf;
    if (from != kHalf + i) {
      times_us[kHalf + i] = std::move(times_us[from]);
    }
  }
  times_us.resize(kMaxKeptTrials);
  return times_us;
}

}  // namespace pascaline
