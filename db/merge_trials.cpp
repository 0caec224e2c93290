#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/util/hash.hpp"
#include "db/coming_rows.hpp"
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

// While it is there, values of `to` are not checked against the rules of the schema: those of a file that was checked
// keep them, and to look again takes as long as to insert the row.
class Unchecked {
 public:
  explicit Unchecked(const Merge& merge) : database_(merge.to.database().getHandle()), is_on_(merge.checked) {
    set("ON");
  }
  Unchecked(const Unchecked&) = delete;
  Unchecked& operator=(const Unchecked&) = delete;
  ~Unchecked() { set("OFF"); }

 private:
  void set(const char* value) const noexcept {
    if (is_on_) {
      const std::string sql = std::string("PRAGMA ignore_check_constraints = ") + value;
      sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
    }
  }
  sqlite3* database_;
  bool is_on_;
};

// Both are read in the order of the trials' ids, so each sample's trial is found by going along.
void merge_samples(Merge& merge) {
  constexpr int kSampleColumns = 6;
  RawStatement row = merge_reading(merge.from, [&] {
    return RawStatement(merge.from,
                        "SELECT trial_id, ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w FROM samples "
                        "ORDER BY trial_id, ordinal");
  });
  const TrialIds::Row* trial = nullptr;
  ComingRows coming(merge.to, "coming_samples", 1, row, 1, kSampleColumns, [&](ComingRows::Own& own) {
    while (merge_reading(merge.from, [&] { return row.step(); })) {
      const std::int64_t other_id = row.integer(0);
      if (trial == nullptr || trial->other != other_id) {
        trial = merge.trials.find(other_id);
      }
      if (trial == nullptr) {
        merge_dangling(merge.from, other_id, "trials");
      }
      if (trial->is_new) {
        own[0] = trial->here;
        ++merge.counts.samples;
        return true;
      }
    }
    return false;
  });
  coming.insert_into("samples (trial_id, ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w)");
}

constexpr int kReferencesAt = 2;  // after id and shared_trial_id
constexpr int kFieldsAt = kReferencesAt + kReferenceCount;

// Trials as they are read, each with its id and its references here; those that are known are passed over.
class NewTrials {
 public:
  NewTrials(Merge& merge, RawStatement& row)
      : merge_(merge), row_(row), known_(known_trials_of(merge)), next_(next_trial_id(merge)) {}

  // Whether there is one more; its columns before the fields.
  bool next(ComingRows::Own& columns) {
    while (merge_reading(merge_.from, [&] { return row_.step(); })) {
      const std::int64_t other_id = row_.integer(0);
      const TrialReferences references = merged_references(merge_, row_, kReferencesAt);
      if (is_known(other_id, references)) {
        continue;
      }
      columns[0] = next_;
      columns[1] = original();
      std::copy(references.begin(), references.end(), columns.begin() + kReferencesAt);
      merge_.trials.add(other_id, next_++, true);
      merge_.grown_sessions.insert(references[0]);
      ++merge_.counts.trials;
      return true;
    }
    return false;
  }
  // A trial may share the result of one that is taken over after it.
  void merge_shared() {
    for (const auto& [trial, other_original] : shared_) {
      const TrialIds::Row* original = merge_.trials.find(other_original);
      if (original == nullptr) {
        merge_dangling(merge_.from, other_original, "trials");
      }
      merge_.to.query("UPDATE trials SET shared_trial_id = ? WHERE id = ?").bind(original->here, trial).run();
    }
  }

 private:
  bool is_known(std::int64_t other_id, const TrialReferences& references) {
    if (!merge_.known_sessions.contains(references[0])) {
      return false;
    }
    const auto here = known_.find(identity(references, row_, kFieldsAt));
    if (here == known_.end()) {
      return false;
    }
    merge_.trials.add(other_id, here->second, false);
    known_.erase(here);
    ++merge_.counts.trials_known;
    return true;
  }
  // Of a trial that shares another's result.
  std::optional<std::int64_t> original() {
    if (row_.is_null(1)) {
      return std::nullopt;
    }
    if (const TrialIds::Row* const known = merge_.trials.find(row_.integer(1))) {
      return known->here;
    }
    shared_.emplace_back(next_, row_.integer(1));
    return std::nullopt;
  }

  Merge& merge_;
  RawStatement& row_;
  KnownTrials known_;
  std::int64_t next_;
  std::vector<std::pair<std::int64_t, std::int64_t>> shared_;
};

}  // namespace

const TrialIds::Row* TrialIds::find(std::int64_t other) const {
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), other,
                                      [](const Row& row, std::int64_t id) { return row.other < id; });
  return found != rows_.end() && found->other == other ? &*found : nullptr;
}

void merge_trials(Merge& merge) {
  RawStatement row = merge_reading(merge.from, [&] {
    return RawStatement(merge.from, fmt::format("SELECT id, shared_trial_id, {}, {} FROM trials ORDER BY id",
                                                kReferences, trial_columns()));
  });
  const Unchecked unchecked(merge);
  NewTrials trials(merge, row);
  ComingRows coming(merge.to, "coming_trials", kFieldsAt, row, kFieldsAt, trial_column_count(),
                    [&](ComingRows::Own& own) { return trials.next(own); });
  coming.insert_into(fmt::format("trials (id, shared_trial_id, {}, {})", kReferences, trial_columns()));
  trials.merge_shared();
  if (merge.counts.trials > 0) {
    merge_samples(merge);
  }
}

}  // namespace pascaline
