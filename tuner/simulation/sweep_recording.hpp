#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "db/store.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// A configuration as a sweep tried it.
struct RecordedCandidate {
  double build_s = 0;    ///< of one compile worker
  double verify_s = 0;   ///< of the device, until it is verified
  double measure_s = 0;  ///< of the device, after that
  double time_us = 0;    ///< of a launch; 0: not usable
  /// Of the device. 0: it did not come there, as it was rejected, not compiled or the same code as another.
  [[nodiscard]] double trial_s() const noexcept { return verify_s + measure_s; }
  [[nodiscard]] bool usable() const noexcept { return time_us > 0 && trial_s() > 0; }
};

/// A problem's search.
struct RecordedSearch {
  std::string problem;                        ///< Problem::text()
  std::string kernel;                         ///< its name
  double calls = 0;                           ///< by the model
  double flops = 0;                           ///< of a call
  double bytes = 0;                           ///< that a call must move at least
  double preparation_s = 0;                   ///< of the device, at the beginning of each turn
  double finalist_s = 0;                      ///< of the device, for each finalist of finals, besides its launches
  std::vector<RecordedCandidate> candidates;  ///< in the order of their proposals; the first, the default, is usable
};

/// A sweep of a model's kernels on one device, to be played again in another order. Sites of the model are not part of
/// it.
struct SweepRecording {
  std::string origin;       ///< for display; begins with "simulated" where no device measured it
  DeviceRow device;         ///< without its limits
  std::size_t workers = 1;  ///< compile workers
  std::vector<RecordedSearch> searches;
};

/// The last sweep of a database, with the spaces of its kernels from the folder `spaces`. A turn's preparation is the
/// shortest time between another problem's last trial and the first of a turn. Problems whose default is not usable are
/// left out. Throws Error and its kinds if there is nothing to record.
[[nodiscard]] SweepRecording recording_of(const Store& store, const std::filesystem::path& spaces);

/// Writes a recording as JSON, its members under their names, numbers with three digits.
[[nodiscard]] std::string json_of(const SweepRecording& recording);
/// Reads what `json_of` wrote, plain or packed with gzip; throws Error naming the file and what is wrong.
[[nodiscard]] SweepRecording read_recording(const std::filesystem::path& file);

/// The device as a simulated sweep finds it.
[[nodiscard]] DeviceInfo device_info(const DeviceRow& device);

/// Microseconds of each default as the agenda takes them to be before the first trial.
[[nodiscard]] std::vector<double> estimated_defaults_us(const SweepRecording& recording);
/// Spearman's rank correlation of those with the defaults' recorded times.
[[nodiscard]] double estimates_correlation(const SweepRecording& recording);
/// Multiplies all times of each search by a random factor, fixed by the problem: the least spread for which
/// `estimates_correlation` is at most `correlation`. Durations of trials stay as they are.
void perturb(SweepRecording& recording, double correlation);

}  // namespace pascaline
