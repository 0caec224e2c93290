#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/connection.hpp"
#include "db/merge.hpp"

namespace pascaline {

/// Ids of a table's rows in the database that is read to those in the one that is written.
using MergeIds = std::unordered_map<std::int64_t, std::int64_t>;

/// The same of trials, of which there are many.
class TrialIds {
 public:
  /// In the order of the ids read.
  void add(std::int64_t other, std::int64_t here, bool is_new) { rows_.push_back({other, here, is_new}); }
  struct Row {
    std::int64_t other = 0;
    std::int64_t here = 0;
    bool is_new = false;
  };
  /// Nothing if there is none.
  [[nodiscard]] const Row* find(std::int64_t other) const;

 private:
  std::vector<Row> rows_;
};

/// What winners are decided for: device, toolkit, kernel, problem.
using DecisionKey = std::array<std::int64_t, 4>;

/// A decision of the database that is read, with ids of the one that is written.
struct MergedDecision {
  DecisionKey key{};
  std::string objective;
  std::int64_t trial = 0;
  std::int64_t decided_unix_ms = 0;
  bool superseded = false;
  std::array<std::optional<double>, 3> baseline_us{};  ///< median, low, high
  std::optional<std::int64_t> baseline_count{};
  std::optional<double> baseline_score{};
  double confidence = 0;
};

/// The merge of one file under way, in a transaction of each database.
struct Merge {
  Connection& from;
  Connection& to;
  bool checked = false;  ///< by `check_merged_pages`, so that all values keep the rules of the schema, which are ours
  MergeIds devices{};
  MergeIds toolkits{};
  MergeIds kernels{};
  MergeIds spaces{};
  MergeIds problems{};
  MergeIds imports{};
  MergeIds sessions{};
  TrialIds trials{};
  std::set<std::int64_t> known_sessions{};  ///< ids in `to`
  std::set<std::int64_t> grown_sessions{};  ///< those of them that something is new of
  std::int64_t import_id = 0;               ///< row of this merge
  MergeCounts counts{};
};

/// A statement on the database that is read; what fails is said of that file.
[[nodiscard]] Query merge_read(Merge& merge, const std::string& sql);
[[nodiscard]] bool merge_next(Merge& merge, Query& row);
/// Runs `work`, which reads from the other database; what fails is said of that file.
template <typename Work>
auto merge_reading(Connection& from, Work&& work) -> decltype(work()) {
  return from.guard("read what is to be merged", std::forward<Work>(work));
}
/// Throws StoreError: the other file holds something that no program of this project writes.
[[noreturn]] void merge_damaged(Connection& from, std::string_view what);
/// Throws as `merge_damaged`: a row refers to one that is not there.
[[noreturn]] void merge_dangling(Connection& from, std::int64_t id, std::string_view table);
/// The id that a row's reference has in the database that is written.
[[nodiscard]] std::int64_t merged_id(const Merge& merge, const MergeIds& ids, std::int64_t id, std::string_view table);
[[nodiscard]] std::int64_t last_inserted(Merge& merge);

/// Looks for damage of the file, which is otherwise only done when one is opened for writing.
void check_merged_pages(Connection& from);
/// Looks for dangling references and documents that cannot be read, which would make the whole of one's own database
/// unreadable once they are in it. References of trials and samples are looked at as they are merged.
void check_merged_rows(Connection& from);
/// Reads every probe; throws Error, mostly BadColumnError, at one that cannot be read.
void check_probes(Connection& from);

void merge_references(Merge& merge);
void merge_sessions(Merge& merge);
void merge_trials(Merge& merge);
void merge_telemetry(Merge& merge);
void merge_probes(Merge& merge);
/// Those of the file; `choose_winners` is to follow once all of its trials are there.
[[nodiscard]] std::vector<MergedDecision> read_decisions(Merge& merge);
/// Adds the decisions and chooses the winners of their keys.
void merge_decisions(Connection& to, const std::vector<MergedDecision>& decisions, MergeCounts& counts);
/// Chooses once more wherever several decisions count, as trials can speak against a configuration.
void settle_winners(Connection& to, MergeCounts& counts);

}  // namespace pascaline
