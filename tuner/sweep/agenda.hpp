#pragma once

#include <map>
#include <optional>
#include <span>

#include "core/device/device_rates.hpp"

namespace pascaline {

/// Microseconds that arithmetic and memory allow a call at least, with its launch, by a device's rates. Without rates
/// it is the emulated device, to which each of the launched threads is work of its own.
[[nodiscard]] double least_time_us(double flops, double bytes, const std::optional<DeviceRates>& rates,
                                   double threads = 0);

/// The state of a problem, from which follows what more trials of it are expected to be worth.
struct Outlook {
  double calls = 1;  ///< by the model
  double flops = 0;  ///< of a call
  double bytes = 0;  ///< that a call must move at least
  /// Microseconds of a call: the best so far, or the estimated time of the default before the first trial; 0: no trial
  /// was usable.
  double time_us = 0;
  bool measured = false;  ///< the time was measured, not estimated
  /// Share of the time that the last doubling of trials saved; empty before the first doubling.
  std::optional<double> last_doubling{};
  double usual_doubling = 0.2;  ///< the same, expected from all searches of the sweep after as many trials
  int trials = 0;
  double trial_s = 0;        ///< of the device for the next trial
  double build_s = 0;        ///< of all compile workers together for the next trial
  double preparation_s = 0;  ///< of the device before the first trial of a turn
  double least_s = 0;        ///< of the device, without which nothing comes of a turn
  int ready = 0;             ///< configurations that are compiled
  double wait_s = 0;         ///< until the compilers, which finish other work first, have compiled the next one
};

/// The highest rates that any problem's best reached on a device, and the time of the shortest of them, as
/// far as it can be that of a launch alone.
struct AttainedRates {
  double flops_per_us = 0;
  double bytes_per_us = 0;
  double launch_us = 0;
};
/// Returns the rates that problems with trials attained. The memory rate is at least the device's own, if known,
/// because arithmetic may have limited all problems.
[[nodiscard]] AttainedRates attained_rates(std::span<const Outlook> problems,
                                           const std::optional<DeviceRates>& of_device = std::nullopt);

/// The next trials of a problem, with their expected cost and saving.
struct SearchAction {
  int trials = 0;
  double seconds = 0;   ///< of the device, with the preparation and finals
  double saved_us = 0;  ///< of the model's time
  /// Microseconds of the model's time that a second is expected to save.
  [[nodiscard]] double rate() const noexcept { return saved_us / seconds; }
};

/// Trials of a look at a problem that has few.
inline constexpr int kTrialsOfAction = 8;

/// Records what doublings of trials saved in the searches of a sweep. First looks (the default and the portfolio) and
/// later trials are recorded separately. Searches of the same kernel count fully, others a tenth, and a guess as much
/// as a few doublings.
class DoublingRecord {
 public:
  /// Adds a search of a kernel (`kind`): its best times after the first trial, after kTrialsOfAction trials or all if
  /// there were fewer, and after all `trials`.
  void add(const void* kind, double first_us, double look_us, double last_us, int trials);
  /// Share of the time that a doubling is expected to save after so many trials.
  [[nodiscard]] double usual(const void* kind, int trials) const;

 private:
  struct Saved {
    double log_ratio = 0;  ///< of the times before and after, summed
    double doublings = 0;
  };
  struct Phases {
    Saved look{};
    Saved later{};
  };

  std::map<const void*, Phases> by_kind_{};
  Phases all_{};
};

/// Treats a search as a record process: each doubling of trials makes the best faster by about the same share, a
/// weighted mean of the last doubling's and the usual one. From the first trial on the saving is limited: no shape is
/// expected to run faster than at the best attained rates and launch time, improved by 10 %.
[[nodiscard]] SearchAction next_search(const Outlook& problem, const AttainedRates& rates);

}  // namespace pascaline
