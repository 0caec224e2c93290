#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "db/merge.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {

/// Two databases, each with what a test puts there.
class MergeTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path mine_ = folder_ / "mine.db";
  std::filesystem::path other_ = folder_ / "other.db";

  /// A finished session of `trials` trials (tiles from `first` on), the last sharing the result of the first, with a
  /// reading of the sensors.
  static std::int64_t add_session(Store& store, int trials, std::int64_t first = 1) {
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    std::int64_t original = 0;
    for (int i = 0; i < trials; ++i) {
      Trial trial = example_trial(first + i);
      trial.shared_trial = i > 0 && i == trials - 1 ? original : 0;
      const std::int64_t id = store.add_trial(session, context, trial);
      original = i == 0 ? id : original;
    }
    store.add_telemetry(session, {1'700'000'000'500, 61.0, 1911.0, {}, 180.5, 4, "measuring", 20.5});
    store.end_session(session, "finished");
    return session;
  }
  static void make(const std::filesystem::path& file, int trials, std::int64_t first = 1) {
    Store store(file, OpenMode::create, Durability::normal);
    add_session(store, trials, first);
  }
  /// A session of one trial of that tile, in the finals (or `stage`) with an interval of that half width: the winner.
  static void decide_in(const std::filesystem::path& file, std::int64_t tile, double confidence,
                        double half_width_us = 1, int samples = 30, TrialStage stage = TrialStage::finals,
                        Objective objective = Objective::time) {
    Store store(file, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    Trial trial = example_trial(tile);
    trial.stage = stage;
    trial.time = TimeSummary{100, 100 - half_width_us, 100 + half_width_us, samples};
    store.set_winner(context, store.add_trial(session, context, trial), TimeSummary{200, 190, 210, 31}, confidence,
                     objective, objective == Objective::time ? std::nullopt : std::optional(40.5));
    store.end_session(session, "finished");
  }
  MergeCounts merge(const std::filesystem::path& from, const std::filesystem::path& into) const {
    Store store(into, OpenMode::create, Durability::normal);
    return merge_database(from, store);
  }
  MergeCounts merge() const { return merge(other_, mine_); }

  /// Every row of every table with what it refers to spelled out and without the database's own ids, so that databases
  /// of equal content give equal text; `imports` left out, as they tell when.
  static std::string content_of(const std::filesystem::path& file) {
    SQLite::Database database(file.string());
    std::string text;
    for (const char* sql :
         {"SELECT uuid || '|' || d.name || '|' || d.sm_count || '|' || k.version || '|' || state || '|' || "
          "coalesce(finished_unix_ms, '-') || '|' || spent_ms || '|' || run_uuid || '|' || device_uuid || '|' || "
          "command_line || '|' || seed || '|' || options || '|' || started_unix_ms || '|' || "
          "process_id || '|' || coalesce(progress, '-') FROM sessions s JOIN devices d ON d.id = device_id JOIN "
          "toolkits k ON k.id = toolkit_id ORDER BY 1",
          "SELECT s.uuid || '|' || t.device || '|' || t.sm_count || '|' || source_hash || '|' || space_hash || '|' || "
          "problem || '|' || config || '|' || status || '|' || stage || '|' || reason || '|' || registers || '|' || "
          "coalesce(t.median_us, '-') || '|' || coalesce(canary_us, '-') || '|' || t.started_unix_ms || '|' || "
          "coalesce((SELECT config_text FROM trials o WHERE o.id = t.shared_trial_id), '-') || '|' || (SELECT "
          "coalesce(group_concat(ordinal || ':' || time_us || ':' || coalesce(mark, '') || ':' || "
          "coalesce(temperature_c, '') || ':' || coalesce(sm_clock_mhz, '') || ':' || coalesce(power_w, ''), ','), '') "
          "FROM samples WHERE trial_id = t.id) FROM trial_details t JOIN sessions s ON s.id = t.session_id ORDER BY 1",
          "SELECT s.uuid || '|' || unix_ms || '|' || coalesce(power_w, '-') || '|' || governor_state || '|' || "
          "coalesce(throttle_reasons, '-') FROM telemetry JOIN sessions s ON s.id = session_id ORDER BY 1",
          "SELECT t.problem || '|' || t.device || '|' || t.sm_count || '|' || t.source_hash || '|' || t.config_text || "
          "'|' || s.uuid || '|' || w.confidence || '|' || w.decided_unix_ms || '|' || "
          "w.objective || '|' || coalesce(w.baseline_score, '-') || '|' || coalesce(w.baseline_median_us, '-') FROM "
          "winners w JOIN trial_details t ON t.id = w.trial_id JOIN sessions "
          "s ON s.id = t.session_id ORDER BY 1"}) {
      SQLite::Statement row(database, sql);
      while (row.executeStep()) {
        text += row.getColumn(0).getString() + "\n";
      }
      text += "\n";
    }
    return text;
  }
  static std::int64_t count(const std::filesystem::path& file, const std::string& table) {
    return SQLite::Database(file.string()).execAndGet("SELECT count(*) FROM " + table).getInt64();
  }
  static void expect_sound(const std::filesystem::path& file) {
    SQLite::Database database(file.string());
    EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), "ok");
    EXPECT_FALSE(SQLite::Statement(database, "PRAGMA foreign_key_check").executeStep());
  }
};

}  // namespace pascaline::testing
