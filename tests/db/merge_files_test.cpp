#include <unistd.h>

#include <chrono>

#include "tests/db/merge_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

using MergeFilesTest = MergeTest;

TEST_F(MergeFilesTest, ReadsOlderVersionsAndLeavesThemSo) {
  for (const int version : {1, 2}) {
    const fs::path old = folder_ / fmt::format("version_{}.db", version);
    SQLite::Database(old.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec("BEGIN;" + bytes_of(fmt::format("{}/tests/db/version_{}.sql", PASCALINE_SOURCE_DIR, version)) + "COMMIT");
    const std::string before = bytes_of(old);
    const fs::path into = folder_ / fmt::format("from_{}.db", version);
    const MergeCounts counts = merge(old, into);
    EXPECT_EQ(counts.sessions, 2);
    EXPECT_EQ(counts.sessions_running, 1) << "that of another boot may run";
    EXPECT_EQ(counts.trials, 2);
    EXPECT_EQ(counts.winners_added, 1);
    EXPECT_EQ(bytes_of(old), before);
    EXPECT_EQ(Store(into, OpenMode::read_only).sessions().at(0).state, "interrupted");
    EXPECT_FALSE(merge(old, into).changed());
    expect_sound(into);
  }
}

TEST_F(MergeFilesTest, ReadsFromAFolderThatCannotBeWritten) {
  fs::permissions(folder_.path(), fs::perms{0777});
  fs::create_directory(folder_ / "closed");
  other_ = folder_ / "closed" / "other.db";
  make(other_, 2);
  fs::permissions(other_, fs::perms{0444});
  fs::permissions(folder_ / "closed", fs::perms{0555});
  const int child = fork_child([&] {
    require(::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0), "cannot give up root");
    require(merge().trials == 2, "two trials");
  });
  EXPECT_EQ(wait_child(child), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "closed"), fs::directory_iterator()), 1);
  fs::permissions(folder_ / "closed", fs::perms{0755});
}

// 3,000 trials with 30 samples each take a second, a few with sanitizers.
TEST_F(MergeFilesTest, ManyTrialsAreTakenInSeconds) {
  make(other_, 1);
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE)
      .exec(
          "BEGIN;"
          "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO trials SELECT "
          "i, session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, 'TILE=' || i, "
          "json_object('TILE', i), status, stage, 0, reason, registers, static_shared_bytes, constant_bytes, "
          "local_bytes, local_loads, local_stores, instructions, ffma, occupancy, binary_hash, max_error, median_us, "
          "low_us, high_us, sample_count, compile_ms, verify_ms, measure_ms, started_unix_ms + i, canary_us, "
          "clock_scale, energy_mj, NULL FROM trials, n WHERE id = 1;"
          "INSERT INTO samples SELECT t.id, ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w FROM trials "
          "t, samples WHERE t.id > 1 AND trial_id = 1;"
          "COMMIT");
  const auto start = std::chrono::steady_clock::now();
  const MergeCounts counts = merge();
  const std::chrono::duration<double> first = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(counts.trials, 3000);
  EXPECT_EQ(counts.samples, 90'000);
  EXPECT_FALSE(merge().changed());
  const std::chrono::duration<double> both = std::chrono::steady_clock::now() - start;
  RecordProperty("first_s", fmt::format("{:.2f}", first.count()));
  RecordProperty("again_s", fmt::format("{:.2f}", both.count() - first.count()));
  EXPECT_LT(both.count(), 30) << "seconds";
}

}  // namespace
}  // namespace pascaline::testing
