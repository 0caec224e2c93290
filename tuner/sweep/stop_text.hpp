#pragma once

#include <string>

namespace pascaline {

/// Work that a sweep waits for when it is to stop.
struct StopWait {
  int trials = 0;        ///< devices with a trial
  int finals = 0;        ///< devices with finals
  double at_most_s = 0;  ///< until all of them are over, as far as it is known
};
/// "stopping after this trial, at most 1 min 10 s; press Ctrl-C again to abort"; a short time is left out.
[[nodiscard]] std::string stop_text(const StopWait& wait);

}  // namespace pascaline
