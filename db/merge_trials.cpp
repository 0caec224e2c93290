#include <fmt/format.h>

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/merge_rows.hpp"
#include "db/trial_columns.hpp"

namespace pascaline {
namespace {

// What tells the trials of a session apart, beside the rows they hang on; the same in every database.
constexpr std::string_view kTraits =
    "stage || ' ' || status || ' ' || started_unix_ms || ' ' || coalesce(printf('%!.17g', median_us), '-') || ' ' || "
    "config_text";
// Ids of the trials that are here already by session and traits; equal ones in their order.
using KnownTrials = std::unordered_map<std::string, std::deque<std::int64_t>>;

struct TrialContext {
  std::int64_t session = 0;
  std::int64_t device = 0;
  std::int64_t toolkit = 0;
  std::int64_t kernel = 0;
  std::int64_t problem = 0;
  [[nodiscard]] std::string key(const std::string& traits) const {
    return fmt::format("{} {} {} {} {} {}", session, device, toolkit, kernel, problem, traits);
  }
};

KnownTrials known_trials_of(Merge& merge) {
  KnownTrials known;
  for (const std::int64_t session : merge.known_sessions) {
    Query row = merge.to.query(
        fmt::format("SELECT id, device_id, toolkit_id, kernel_id, problem_id, {} FROM trials WHERE session_id = ? "
                    "ORDER BY id",
                    kTraits));
    row.bind(session);
    while (row.step()) {
      const std::int64_t id = row.integer();
      TrialContext context{session};
      context.device = row.integer();
      context.toolkit = row.integer();
      context.kernel = row.integer();
      context.problem = row.integer();
      known[context.key(row.text())].push_back(id);
    }
  }
  return known;
}

void merge_samples(Merge& merge, std::int64_t other_trial, std::int64_t trial) {
  Query row = merge_read(merge,
                         "SELECT ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w FROM samples WHERE "
                         "trial_id = ? ORDER BY ordinal");
  Query insert = merge.to.query(
      "INSERT INTO samples (trial_id, ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w) VALUES "
      "(?, ?, ?, ?, ?, ?, ?)");
  row.bind(other_trial);
  while (merge_next(merge, row)) {
    insert.bind_at(1, trial);
    row.copy_to(insert, 2, 6);
    insert.run();
    ++merge.counts.samples;
  }
}

// `row` stands at the columns of the trial's fields.
std::int64_t insert_merged(Merge& merge, Query& row, const TrialContext& context, std::int64_t space) {
  constexpr int kIds = 6;
  Query insert = merge.to.query(
      fmt::format("INSERT INTO trials (session_id, device_id, toolkit_id, kernel_id, problem_id, space_id, {}) VALUES "
                  "({})",
                  trial_columns(), parameter_list(kIds + trial_column_count())));
  insert.bind(context.session, context.device, context.toolkit, context.kernel, context.problem, space);
  row.copy_to(insert, kIds + 1, trial_column_count());
  insert.run();
  return last_inserted(merge);
}

// A trial may share the result of one that is taken over after it.
void merge_shared(Merge& merge, const std::vector<std::pair<std::int64_t, std::int64_t>>& shared) {
  for (const auto& [trial, other_original] : shared) {
    merge.to.query("UPDATE trials SET shared_trial_id = ? WHERE id = ?")
        .bind(merged_id(merge, merge.trials, other_original, "trials"), trial)
        .run();
  }
}

}  // namespace

void merge_trials(Merge& merge) {
  KnownTrials known = known_trials_of(merge);
  std::vector<std::pair<std::int64_t, std::int64_t>> shared;
  Query row =
      merge_read(merge, fmt::format("SELECT id, session_id, device_id, toolkit_id, kernel_id, problem_id, space_id, "
                                    "shared_trial_id, {}, {} FROM trials ORDER BY id",
                                    kTraits, trial_columns()));
  while (merge_next(merge, row)) {
    const std::int64_t other_id = row.integer();
    TrialContext context;
    context.session = merged_id(merge, merge.sessions, row.integer(), "sessions");
    context.device = merged_id(merge, merge.devices, row.integer(), "devices");
    context.toolkit = merged_id(merge, merge.toolkits, row.integer(), "toolkits");
    context.kernel = merged_id(merge, merge.kernels, row.integer(), "kernels");
    context.problem = merged_id(merge, merge.problems, row.integer(), "problems");
    const std::int64_t space = merged_id(merge, merge.spaces, row.integer(), "spaces");
    const std::optional<std::int64_t> original = row.optional_integer();
    const std::string key = context.key(row.text());
    if (const auto here = known.find(key); here != known.end() && !here->second.empty()) {
      merge.trials[other_id] = here->second.front();
      here->second.pop_front();
      ++merge.counts.trials_known;
      continue;
    }
    const std::int64_t id = insert_merged(merge, row, context, space);
    merge.trials[other_id] = id;
    merge.grown_sessions.insert(context.session);
    ++merge.counts.trials;
    merge_samples(merge, other_id, id);
    if (original) {
      shared.emplace_back(id, *original);
    }
  }
  merge_shared(merge, shared);
}

}  // namespace pascaline
