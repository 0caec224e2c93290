#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

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
  std::int64_t decisions = 0;  ///< new ones, and known ones that do not count any more
  std::int64_t corrected = 0;  ///< devices and problems whose limits or work are newer there

  /// Whether anything was new.
  [[nodiscard]] bool changed() const noexcept {
    return sessions + sessions_grown + trials + readings + winners_added + winners_replaced + probes + decisions +
               corrected >
           0;
  }
};

/// Takes over what the files hold and `mine` does not, whatever version of the schema each has; they stay as they are,
/// and one that a sweep writes to is read as it was at one moment. Sessions come whole: uuid, run, card, command,
/// times, sensors, trials with their samples. So do probes of devices. What the processes of a file have on a device
/// just now does not. Rows keep their keys, so that nothing measured under one key counts under another. The winner of
/// a key is chosen from the decisions of all by what is stored of them alone (docs/design.md, "Merging"): whatever is
/// merged with whatever, in whatever order and however often, the content is the same in the end. One transaction:
/// with any failure `mine` is as it was, as it is when there is nothing new. Counts of each file. `on_file` is called
/// as each begins. Throws StoreError naming the file at fault, also if one is `mine`.
std::vector<MergeCounts> merge_databases(std::span<const std::filesystem::path> files, Store& mine,
                                         const std::function<void(const std::filesystem::path&)>& on_file = {});
/// The same of one file.
MergeCounts merge_database(const std::filesystem::path& other, Store& mine);

/// Throws StoreError if they are one file.
void require_another_file(const std::filesystem::path& other, const std::filesystem::path& mine);
/// Throws StoreError if `other` cannot be merged into `mine`, which need not exist yet, as far as can be told without
/// reading all of it.
void check_mergeable(const std::filesystem::path& other, const std::filesystem::path& mine);

/// Removes a database that this process made and closed again, unless it holds a session or a probe, cannot be read or
/// is open elsewhere: somebody else may have begun to use it. Never fails, as it tidies up after what did.
void remove_if_unused(const std::filesystem::path& file) noexcept;

}  // namespace pascaline
