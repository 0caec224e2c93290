#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "db/connection.hpp"
#include "db/merge.hpp"

namespace pascaline {

/// Ids of a table's rows in the database that is read to those in the one that is written.
using MergeIds = std::unordered_map<std::int64_t, std::int64_t>;

/// A merge under way, in a transaction of each database.
struct Merge {
  Connection& from;
  Connection& to;
  MergeIds devices{};
  MergeIds toolkits{};
  MergeIds kernels{};
  MergeIds spaces{};
  MergeIds problems{};
  MergeIds imports{};
  MergeIds sessions{};
  MergeIds trials{};
  std::set<std::int64_t> known_sessions{};  ///< ids in `to`
  std::set<std::int64_t> grown_sessions{};  ///< those of them that something is new of
  std::int64_t import_id = 0;               ///< row of this merge
  MergeCounts counts{};
};

/// A statement on the database that is read; what fails is said of that file.
[[nodiscard]] Query merge_read(Merge& merge, const std::string& sql);
[[nodiscard]] bool merge_next(Merge& merge, Query& row);
/// Throws StoreError: the other file holds something that no program of this project writes.
[[noreturn]] void merge_damaged(const Merge& merge, std::string_view what);
/// The id that a row's reference has in the database that is written.
[[nodiscard]] std::int64_t merged_id(const Merge& merge, const MergeIds& ids, std::int64_t id, std::string_view table);
[[nodiscard]] std::int64_t last_inserted(Merge& merge);

/// Reads every problem and configuration; throws Error, mostly BadColumnError, at one that cannot be read.
void check_documents(Connection& from);
/// Reads every probe; throws as `check_documents` does.
void check_probes(Connection& from);

void merge_trials(Merge& merge);
void merge_winners(Merge& merge);
void merge_probes(Merge& merge);

}  // namespace pascaline
