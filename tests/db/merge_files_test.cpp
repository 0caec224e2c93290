#include <unistd.h>

#include <chrono>
#include <csignal>
#include <tuple>

#include "tests/db/merge_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

using MergeFilesTest = MergeTest;

TEST_F(MergeFilesTest, FileThatWasMadeForNothingIsRemovedUnlessSomebodyElseMayHaveBegunWithIt) {
  const fs::path file = folder_ / "made.db";
  remove_if_unused(file);
  write_bytes(file, "");
  remove_if_unused(file);
  EXPECT_FALSE(fs::exists(file)) << "an empty file";
  { const Store store(file, OpenMode::create); }
  remove_if_unused(file);
  EXPECT_FALSE(fs::exists(file)) << "nothing but tables";

  { const Store store(file, OpenMode::create); }
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  remove_if_unused(file);
  EXPECT_TRUE(fs::exists(file)) << "of another version";
  write_bytes(file, "dear diary\n");
  remove_if_unused(file);
  EXPECT_EQ(bytes_of(file), "dear diary\n") << "of another program";

  fs::remove(file);
  {
    Store store(file, OpenMode::create);
    const ContextIds context = example_context(store);
    std::ignore = begin_example_session(store, context);
  }
  remove_if_unused(file);
  EXPECT_EQ(Store(file, OpenMode::read_only).sessions().size(), 1U) << "of a sweep";
}

// A sweep that has just begun: it has made its tables and no session yet.
TEST_F(MergeFilesTest, FileThatAnotherProcessHasOpenIsNotRemoved) {
  const fs::path file = folder_ / "made.db";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const int child = fork_child([&] {
    const Store store(file, OpenMode::create);
    std::ignore = ::write(ready[1], "x", 1);
    ::pause();
  });
  char told = 0;
  ASSERT_EQ(::read(ready[0], &told, 1), 1);
  remove_if_unused(file);
  EXPECT_TRUE(fs::exists(file));
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_child(child), 128 + SIGKILL);
  ::close(ready[0]);
  ::close(ready[1]);
  remove_if_unused(file);
  EXPECT_FALSE(fs::exists(file));
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
          "CREATE TEMP TABLE more AS WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
          "SELECT trials.*, i FROM trials, n WHERE trials.id = 1;"
          "UPDATE more SET id = i, config_text = 'TILE=' || i, config = json_object('TILE', i), is_default = 0, "
          "started_unix_ms = started_unix_ms + i, shared_trial_id = NULL;"
          "ALTER TABLE more DROP COLUMN i;"
          "INSERT INTO trials SELECT * FROM more;"
          "DROP TABLE more;"
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
