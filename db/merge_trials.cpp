#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/util/hash.hpp"
#include "db/merge_rows.hpp"
#include "db/raw_statement.hpp"
#include "db/trial_columns.hpp"

namespace pascaline {
namespace {

// Ids, as read or here, of the rows that a trial hangs on.
constexpr std::string_view kReferences = "session_id, device_id, toolkit_id, kernel_id, problem_id, space_id";
constexpr int kReferenceCount = 6;
using TrialReferences = std::array<std::int64_t, kReferenceCount>;

// A trial is the same if all that is stored of it is. By a hash of that, ids of the trials that are here already, of
// the sessions that were known; of equal ones as many as there are.
using KnownTrials = std::unordered_multimap<std::string, std::int64_t>;

std::string identity(const TrialReferences& references, const RawStatement& row, int fields_at) {
  std::string bytes(reinterpret_cast<const char*>(references.data()), sizeof(references));
  row.append_to(bytes, fields_at, trial_column_count());
  return hash_hex(bytes);
}

KnownTrials known_trials_of(Merge& merge) {
  KnownTrials known;
  RawStatement row(merge.to, fmt::format("SELECT id, {}, {} FROM trials WHERE session_id = ? ORDER BY id", kReferences,
                                         trial_columns()));
  for (const std::int64_t session : merge.known_sessions) {
    row.bind(1, session);
    while (row.step()) {
      TrialReferences references{};
      for (int i = 0; i < kReferenceCount; ++i) {
        references[static_cast<std::size_t>(i)] = row.integer(1 + i);
      }
      known.emplace(identity(references, row, 1 + kReferenceCount), row.integer(0));
    }
    row.run();
  }
  return known;
}

TrialReferences merged_references(const Merge& merge, const RawStatement& row, int at) {
  return {merged_id(merge, merge.sessions, row.integer(at), "sessions"),
          merged_id(merge, merge.devices, row.integer(at + 1), "devices"),
          merged_id(merge, merge.toolkits, row.integer(at + 2), "toolkits"),
          merged_id(merge, merge.kernels, row.integer(at + 3), "kernels"),
          merged_id(merge, merge.problems, row.integer(at + 4), "problems"),
          merged_id(merge, merge.spaces, row.integer(at + 5), "spaces")};
}

std::int64_t next_trial_id(Merge& merge) {
  Query row = merge.to.query("SELECT coalesce(max(id), 0) + 1 FROM trials");
  std::ignore = row.step();
  return row.integer();
}

// Samples on their way, many to a statement: to begin and end one takes longer than to insert its row.
class SampleInserter {
 public:
  explicit SampleInserter(Connection& to) : insert_(to, sql()) {}
  void add(std::int64_t trial, const RawStatement& row) {
    insert_.bind(1 + waiting_ * kColumns, trial);
    insert_.bind_columns(2 + waiting_ * kColumns, row, 1, kColumns - 1);
    if (++waiting_ == kRows) {
      flush();
    }
  }
  void flush() {
    for (int i = waiting_; i < kRows; ++i) {
      insert_.bind_null(1 + i * kColumns);
    }
    insert_.run();
    waiting_ = 0;
  }

 private:
  static constexpr int kRows = 64;
  static constexpr int kColumns = 7;
  static std::string sql() {
    std::string rows;
    for (int i = 0; i < kRows; ++i) {
      rows += fmt::format("{}({})", i > 0 ? "," : "", parameter_list(kColumns));
    }
    return fmt::format(
        "INSERT INTO samples (trial_id, ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w) SELECT column1, "
        "column2, column3, column4, column5, column6, column7 FROM (VALUES {}) WHERE column1 IS NOT NULL",
        rows);
  }
  RawStatement insert_;
  int waiting_ = 0;
};

// Both are read in the order of the trials' ids, so each sample's trial is found by going along.
void merge_samples(Merge& merge) {
  RawStatement row = merge_reading(merge.from, [&] {
    return RawStatement(merge.from,
                        "SELECT trial_id, ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w FROM samples "
                        "ORDER BY trial_id, ordinal");
  });
  SampleInserter inserter(merge.to);
  const TrialIds::Row* trial = nullptr;
  while (merge_reading(merge.from, [&] { return row.step(); })) {
    const std::int64_t other_id = row.integer(0);
    if (trial == nullptr || trial->other != other_id) {
      trial = merge.trials.find(other_id);
    }
    if (trial == nullptr) {
      merge_dangling(merge.from, other_id, "trials");
    }
    if (trial->is_new) {
      inserter.add(trial->here, row);
      ++merge.counts.samples;
    }
  }
  inserter.flush();
}

// A trial may share the result of one that is taken over after it.
void merge_shared(Merge& merge, const std::vector<std::pair<std::int64_t, std::int64_t>>& shared) {
  for (const auto& [trial, other_original] : shared) {
    const TrialIds::Row* original = merge.trials.find(other_original);
    if (original == nullptr) {
      merge_dangling(merge.from, other_original, "trials");
    }
    merge.to.query("UPDATE trials SET shared_trial_id = ? WHERE id = ?").bind(original->here, trial).run();
  }
}

}  // namespace

const TrialIds::Row* TrialIds::find(std::int64_t other) const {
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), other,
                                      [](const Row& row, std::int64_t id) { return row.other < id; });
  return found != rows_.end() && found->other == other ? &*found : nullptr;
}

void merge_trials(Merge& merge) {
  KnownTrials known = known_trials_of(merge);
  std::vector<std::pair<std::int64_t, std::int64_t>> shared;
  RawStatement row = merge_reading(merge.from, [&] {
    return RawStatement(merge.from, fmt::format("SELECT id, shared_trial_id, {}, {} FROM trials ORDER BY id",
                                                kReferences, trial_columns()));
  });
  RawStatement insert(merge.to,
                      fmt::format("INSERT INTO trials (id, shared_trial_id, {}, {}) VALUES ({})", kReferences,
                                  trial_columns(), parameter_list(2 + kReferenceCount + trial_column_count())));
  constexpr int kReferencesAt = 2;
  constexpr int kFieldsAt = kReferencesAt + kReferenceCount;
  std::int64_t next = next_trial_id(merge);
  while (merge_reading(merge.from, [&] { return row.step(); })) {
    const std::int64_t other_id = row.integer(0);
    const TrialReferences references = merged_references(merge, row, kReferencesAt);
    if (merge.known_sessions.contains(references[0])) {
      if (const auto here = known.find(identity(references, row, kFieldsAt)); here != known.end()) {
        merge.trials.add(other_id, here->second, false);
        known.erase(here);
        ++merge.counts.trials_known;
        continue;
      }
    }
    insert.bind(1, next);
    insert.bind_null(2);
    if (!row.is_null(1)) {
      if (const TrialIds::Row* original = merge.trials.find(row.integer(1))) {
        insert.bind(2, original->here);
      } else {
        shared.emplace_back(next, row.integer(1));
      }
    }
    for (int i = 0; i < kReferenceCount; ++i) {
      insert.bind(1 + kReferencesAt + i, references[static_cast<std::size_t>(i)]);
    }
    insert.bind_columns(1 + kFieldsAt, row, kFieldsAt, trial_column_count());
    insert.run();
    merge.trials.add(other_id, next++, true);
    merge.grown_sessions.insert(references[0]);
    ++merge.counts.trials;
  }
  merge_shared(merge, shared);
  if (merge.counts.trials > 0) {
    merge_samples(merge);
  }
}

}  // namespace pascaline
