#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/store.hpp"

namespace pascaline {

/// Which of the best trials are wanted; empty fields do not narrow.
struct BestFilter {
  std::string kernel{};
  std::string device{};                  ///< its whole name
  std::vector<std::int64_t> sessions{};  ///< only trials of these, and decisions for them
};

/// The best that is known of one problem on one device for one target. It is, whatever toolkit and kernel source it
/// was measured under, the winner that was decided last. Without one it is of the toolkit and source with the latest
/// `ok` trial: the fastest finalist, of each configuration the last finals counting (a session keeps its finals where
/// a later session's decision replaced its own), else the fastest trial of the search.
struct BestTrial {
  StoredTrial stored;                     ///< with samples: those of the trial whose result it shares, if it does
  std::optional<TimeSummary> baseline{};  ///< of the default configuration, from the same stage and session or decision
  bool decided = false;                   ///< in finals; false for a winner from the search's trials, too
};

}  // namespace pascaline
