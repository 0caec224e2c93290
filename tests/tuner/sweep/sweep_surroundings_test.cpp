#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <span>

#include "core/util/paths.hpp"
#include "core/util/sanitizer.hpp"
#include "tests/tuner/sweep/sweep_faults.hpp"

namespace pascaline::testing {
namespace {

using Clock = std::chrono::steady_clock;

// What goes wrong around a sweep: disk, database, clock, and another sweep.

class SurroundingsTest : public SweepFaultsTest {
 protected:
  // Many samples fill a disk soon.
  [[nodiscard]] std::vector<std::string> big_command() const {
    return command({"--sample-budget-ms", "600000", "--min-samples", "4000", "--max-samples", "4000"});
  }
  [[nodiscard]] static std::string shell_words(const std::vector<std::string>& words) {
    std::string text = PASCALINE_TEST_PROGRAM;
    for (const std::string& word : words) {
      text += " '" + word + "'";
    }
    return text;
  }
};

TEST_F(SurroundingsTest, FullDiskEndsItAndRoomLetsItGoOn) {
  const std::string disk = (folder_ / "disk").string();
  std::filesystem::create_directory(disk);
  const std::string mount = "mount -t tmpfs -o size=600k none '" + disk + "'";
  if (std::system(("unshare -rm sh -c \"" + mount + "\" 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no file system can be mounted here; FilesThatCannotGrow tests nearly the same";
  }
  database_ = folder_ / "disk/tuned.db";
  const std::string folder = folder_.path().string();
  write_file_atomically(folder_ / "script", "export PASCALINE_CACHE_DIR='" PASCALINE_TEST_CACHE "'\ncd '" + folder +
                                                "'\n" + mount + "\n" + shell_words(big_command()) +
                                                " > stdout 2> stderr; echo $? > code\ncp -r disk before\n"
                                                "mount -o remount,size=100m disk\n" +
                                                shell_words(resume()) +
                                                " > stdout2 2> stderr2; echo $? > code2\n"
                                                "cp -r disk after\n");
  ASSERT_EQ(std::system(("unshare -rm sh '" + folder + "/script'").c_str()), 0);
  const std::string error = bytes_of(folder_ / "stderr");
  EXPECT_EQ(bytes_of(folder_ / "code"), "1\n") << output();
  EXPECT_NE(error.find(database_.string()), std::string::npos) << error;
  EXPECT_NE(error.find("the disk is full"), std::string::npos) << error;
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
  database_ = folder_ / "before/tuned.db";
  const std::set<std::string> before = tried();
  EXPECT_FALSE(before.empty());
  EXPECT_LT(before.size(), 5U);
  EXPECT_EQ(number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
  EXPECT_EQ(bytes_of(folder_ / "code2"), "0\n") << bytes_of(folder_ / "stderr2");
  database_ = folder_ / "after/tuned.db";
  expect_complete(5);
  EXPECT_EQ(number("SELECT count(*) FROM trials WHERE stage = 'search' AND sample_count <> 4000"), 0);
}

TEST_F(SurroundingsTest, FilesThatCannotGrowEndItAndRoomLetsItGoOn) {
  ASSERT_EQ(run(command({"--trials", "1"})).exit_code, 0) << output();  // compilers need room, too
  ASSERT_EQ(run(command({"--problem", "N=6000"})).exit_code, 0) << output();
  const std::vector<StoredTrial> known = trials();
  setting_.file_size_limit = std::filesystem::file_size(database_) + 100'000;
  std::vector<std::string> words = big_command();
  words.insert(words.end(), {"--problem", "N=7000"});
  const ProgramResult full = run(words);
  EXPECT_EQ(full.exit_code, 1) << full.out;
  EXPECT_NE(full.error.find(database_.string()), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("disk"), std::string::npos) << full.error;
  EXPECT_EQ(number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
  const std::vector<StoredTrial> kept = trials();
  ASSERT_GE(kept.size(), known.size());
  EXPECT_TRUE(std::ranges::equal(known, std::span(kept).first(known.size()), {}, &StoredTrial::id, &StoredTrial::id));
  setting_.file_size_limit.reset();
  const ProgramResult resumed = run(resume());
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  expect_sound();
  EXPECT_EQ(last_state(), "finished");
}

TEST_F(SurroundingsTest, ClockThatStepsBackChangesNothing) {
  if (kAddressSanitizer) {
    GTEST_SKIP() << "AddressSanitizer's library must come first, so nothing can be preloaded";
  }
  setting_.environment.emplace_back("LD_PRELOAD", PASCALINE_TEST_CLOCK_SHIFT);
  setting_.environment.emplace_back("PASCALINE_TEST_CLOCK_FILE", (folder_ / "late").string());
  sample_ms_ = 450;
  write_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384});
  const auto began = Clock::now();
  const int sweep = start(command({"--budget", "5s"}));
  EXPECT_TRUE(wait_until([&] { return trial_count() >= 2; })) << output();
  const std::size_t before = trial_count();
  write_file_atomically(folder_ / "late", "");
  EXPECT_EQ(wait_child(sweep), 0) << output();
  EXPECT_GT(seconds_since(began), 4.0);
  EXPECT_LT(seconds_since(began), 60.0) << "the budget is of the steady clock: the other one lost an hour";
  expect_sound();
  EXPECT_EQ(last_state(), "finished");
  EXPECT_GT(trial_count(), before) << "it goes on";
  EXPECT_EQ(number("SELECT count(*) FROM sessions WHERE finished_unix_ms < started_unix_ms"), 0);
  const Store store(database_, OpenMode::read_only);
  const std::vector<TelemetryRow> rows = store.telemetry(store.sessions().at(0).id);
  int steps_back = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    steps_back += rows[i].unix_ms < rows[i - 1].unix_ms ? 1 : 0;
  }
  EXPECT_EQ(steps_back, 1) << "readings keep their order";
  EXPECT_LT(rows.back().unix_ms, rows.front().unix_ms - 3'500'000) << "the clock was indeed set back";
}

TEST_F(SurroundingsTest, TwoSweepsShareADatabase) {
  const std::filesystem::path other = folder_ / "other";
  std::filesystem::create_directory(other);
  const int first = start(command());
  const int second = start_program(other, command({"--problem", "N=6000"}), setting_);
  std::vector<std::string> third_words = command();
  *std::find(third_words.begin(), third_words.end(), "N=5000") = "N=7000";
  std::filesystem::create_directory(folder_ / "third");
  const int third = start_program(folder_ / "third", third_words, setting_);
  EXPECT_EQ(wait_child(first), 0) << output();
  EXPECT_EQ(wait_child(second), 0) << bytes_of(other / "stderr");
  EXPECT_EQ(wait_child(third), 0) << bytes_of(folder_ / "third/stderr");
  expect_sound();
  EXPECT_EQ(number("SELECT count(*) FROM winners"), 3);
  EXPECT_EQ(number("SELECT count(*) FROM sessions WHERE state = 'finished'"), 3);
  for (const char* n : {"6000", "7000"}) {
    EXPECT_EQ(
        number("SELECT count(DISTINCT config_text) FROM trial_details WHERE stage = 'search' AND problem = 'toy N=" +
               std::string(n) + "'"),
        5);
  }
}

}  // namespace
}  // namespace pascaline::testing
