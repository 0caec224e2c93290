#pragma once

#include <cstdint>
#include <filesystem>

#include "db/store.hpp"

namespace pascaline {

/// What merging one database brought. "Known" is what was there already, under the same uuid or key.
struct MergeCounts {
  std::int64_t sessions = 0;          ///< new ones
  std::int64_t sessions_grown = 0;    ///< known ones of which something was new
  std::int64_t sessions_known = 0;    ///< known ones of which nothing was
  std::int64_t sessions_running = 0;  ///< of all three, those that seemed to go on there: merging again brings the rest
  std::int64_t trials = 0;            ///< new ones
  std::int64_t trials_known = 0;
  std::int64_t samples = 0;   ///< of the new trials
  std::int64_t readings = 0;  ///< of sensors, new ones
  std::int64_t winners_added = 0;
  std::int64_t winners_replaced = 0;  ///< the other's took the place of one that was less well founded
  std::int64_t winners_kept = 0;      ///< another one was here and stayed
  std::int64_t winners_known = 0;     ///< the same decision on both sides
  std::int64_t probes = 0;            ///< new ones
  std::int64_t probes_known = 0;

  /// Whether anything was new.
  [[nodiscard]] bool changed() const noexcept {
    return sessions + sessions_grown + trials + readings + winners_added + winners_replaced + probes > 0;
  }
};

/// Takes over what `other` holds and `mine` does not, whatever version of the schema `other` has; that file stays as it
/// is, and one that a sweep writes to is read as it was at one moment. Sessions come whole: uuid, run, card, command,
/// times, sensors, trials with their samples. So do probes of devices. What the processes of `other` have on a device
/// just now does not. Rows keep their keys, so that nothing measured under one key counts under another. Where both
/// know the winner of a key, one that finals decided stays before one from the search, of two of a kind the one of
/// higher confidence; of equals the one whose median has the narrower interval, then the newer. So databases may be
/// merged in any order and as often as wanted. One transaction: with any failure `mine` is as it was, as it is when
/// there is nothing new. Throws StoreError naming the file at fault, also if `other` is `mine`.
MergeCounts merge_database(const std::filesystem::path& other, Store& mine);

/// Opens a database to be merged into `mine`, which need not exist yet; throws StoreError as `merge_database` as far as
/// can be told without reading all of it.
[[nodiscard]] Store open_to_merge(const std::filesystem::path& other, const std::filesystem::path& mine);

/// Removes a database that this process made and closed again, unless it holds a session or a probe, cannot be read or
/// is open elsewhere: somebody else may have begun to use it. Never fails, as it tidies up after what did.
void remove_if_unused(const std::filesystem::path& file) noexcept;

}  // namespace pascaline
