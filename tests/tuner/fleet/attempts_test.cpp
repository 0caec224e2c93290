#include "tuner/fleet/attempts.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

fs::path attempt_path(const TemporaryFolder& folder, int shard, int number) {
  return folder.path() / ("shard-000" + std::to_string(shard) + ".attempt-" + std::to_string(number) + ".json");
}

// As if the attempt were another machine's, silent for so long.
void make_foreign(const fs::path& file, std::chrono::seconds silent) {
  nlohmann::json json = nlohmann::json::parse(read_file(file));
  json["host"] = "elsewhere";
  json["boot"] = "another";
  write_bytes(file, json.dump());
  fs::last_write_time(file, fs::file_time_type::clock::now() - silent);
}

TEST(AttemptsTest, NothingIsReadOrWrittenThroughLinks) {
  const TemporaryFolder folder;
  const fs::path mine = folder.path() / "mine";
  {
    const ShardClaim claim(folder.path(), 2);
    fs::rename(attempt_path(folder, 2, 1), mine);
  }
  fs::create_symlink(mine, attempt_path(folder, 2, 1));
  EXPECT_TRUE(read_attempts(folder.path()).empty());
  ShardClaim claim(folder.path(), 1);
  fs::remove(attempt_path(folder, 1, 1));
  fs::create_symlink(mine, attempt_path(folder, 1, 1));
  const std::string kept = read_file(mine);
  EXPECT_TRUE(claim.beat());
  EXPECT_EQ(read_file(mine), kept);
}

TEST(AttemptsTest, ARecordThatIsNoneIsNamedWithWhatToDo) {
  for (const std::string rubbish : {"", "{", "rubbish", "[1]", R"({"state": "asleep"})"}) {
    const TemporaryFolder folder;
    const fs::path file = attempt_path(folder, 1, 1);
    write_bytes(file, rubbish);
    try {
      const ShardClaim claim(folder.path(), 1);
      ADD_FAILURE() << "claimed beside '" << rubbish << "'";
    } catch (const ShardTakenError& taken) {
      ADD_FAILURE() << taken.what();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("remove it and start again"), std::string::npos) << error.what();
    }
    fs::remove(file);
    EXPECT_EQ(ShardClaim(folder.path(), 1).attempt().number, 1);
  }
}

TEST(AttemptsTest, AShardIsClaimedOnce) {
  const TemporaryFolder folder;
  ShardClaim claim(folder.path(), 1);
  EXPECT_THROW(ShardClaim(folder.path(), 1), ShardTakenError);
  EXPECT_TRUE(claim.beat());
  const ShardClaim other(folder.path(), 2);
  EXPECT_EQ(other.attempt().number, 1);
  claim.end(AttemptState::interrupted, "why");
  const auto last = newest_attempt(read_attempts(folder.path()), 1);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->state, AttemptState::interrupted);
  EXPECT_EQ(last->note, "why");
  EXPECT_EQ(ShardClaim(folder.path(), 1).attempt().number, 2);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << "drafts are removed: " << entry.path();
  }
}

TEST(AttemptsTest, WhatFailsIsTriedTwiceAndWhatIsRefusedOnceByAProcess) {
  const TemporaryFolder folder;
  const auto fail = [&](int shard, bool refused) {
    ShardClaim claim(folder.path(), shard);
    claim.end(AttemptState::failed, "why", refused);
  };
  EXPECT_TRUE(may_pass(read_attempts(folder.path()), 1)) << "that nobody has tried";
  fail(1, false);
  EXPECT_TRUE(may_pass(read_attempts(folder.path()), 1)) << "a crash may pass";
  fail(1, false);
  EXPECT_FALSE(may_pass(read_attempts(folder.path()), 1));
  fail(2, true);
  EXPECT_TRUE(newest_attempt(read_attempts(folder.path()), 2)->refused);
  EXPECT_FALSE(may_pass(read_attempts(folder.path()), 2));
  make_foreign(attempt_path(folder, 2, 1), std::chrono::seconds(1));
  EXPECT_TRUE(may_pass(read_attempts(folder.path()), 2)) << "another machine was refused";
  ShardClaim(folder.path(), 2).end(AttemptState::interrupted, "");
  EXPECT_TRUE(may_pass(read_attempts(folder.path()), 2));
  ShardClaim(folder.path(), 2).end(AttemptState::done, "");
  EXPECT_FALSE(may_pass(read_attempts(folder.path()), 2));
}

TEST(AttemptsTest, OfManyAtOnceOneGetsIt) {
  const TemporaryFolder folder;
  constexpr int kProcesses = 8;
  std::vector<int> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(fork_child([&] {
      try {
        const ShardClaim claim(folder.path(), 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        ::_exit(0);
      } catch (const ShardTakenError&) {
        ::_exit(7);
      }
    }));
  }
  int winners = 0;
  for (const int child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    winners += WEXITSTATUS(status) == 0 ? 1 : 0;
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7);
  }
  EXPECT_EQ(winners, 1);
  EXPECT_TRUE(is_lost(*newest_attempt(read_attempts(folder.path()), 1))) << "its process has ended without a word";
}

TEST(AttemptsTest, AnotherMachinesShardIsLostOnceItIsSilent) {
  const TemporaryFolder folder;
  ShardClaim claim(folder.path(), 1);
  make_foreign(attempt_path(folder, 1, 1), std::chrono::seconds(30));
  EXPECT_FALSE(is_lost(*newest_attempt(read_attempts(folder.path()), 1)));
  EXPECT_THROW(ShardClaim(folder.path(), 1), ShardTakenError);
  make_foreign(attempt_path(folder, 1, 1), std::chrono::seconds(90));
  EXPECT_TRUE(is_lost(*newest_attempt(read_attempts(folder.path()), 1)));
  const ShardClaim taken(folder.path(), 1);
  EXPECT_EQ(taken.attempt().number, 2);
  // It was only slow: it notices, and writes nothing more.
  EXPECT_FALSE(claim.beat());
  claim.end(AttemptState::done, "");
  EXPECT_EQ(newest_attempt(read_attempts(folder.path()), 1)->state, AttemptState::running);
}

TEST(AttemptsTest, AJobThatSlurmStartedAgainTakesUpItsOwnShard) {
  const TemporaryFolder folder;
  const ScopedVariable array("SLURM_ARRAY_JOB_ID", "12");
  const ScopedVariable task("SLURM_ARRAY_TASK_ID", "1");
  {
    const ShardClaim claim(folder.path(), 1);
    EXPECT_EQ(claim.attempt().slurm_job, "12_1");
  }
  make_foreign(attempt_path(folder, 1, 1), std::chrono::seconds(1));
  EXPECT_THROW(ShardClaim(folder.path(), 1), ShardTakenError);
  const ScopedVariable restarts("SLURM_RESTART_COUNT", "1");
  EXPECT_EQ(ShardClaim(folder.path(), 1).attempt().number, 2);
}

TEST(AttemptsTest, FilesThatAreNoneArePassedOver) {
  const TemporaryFolder folder;
  const ShardClaim claim(folder.path(), 3);
  write_bytes(attempt_path(folder, 1, 1), "{");
  write_bytes(attempt_path(folder, 1, 2), "[]");
  write_bytes(attempt_path(folder, 2, 1), R"({"state": "sleeping"})");
  write_bytes(folder.path() / "shard-0003.attempt-x.json", "{}");
  const std::vector<Attempt> attempts = read_attempts(folder.path());
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(attempts.front().shard, 3);
  EXPECT_FALSE(newest_attempt(attempts, 1));
}

TEST(AttemptsTest, AFolderThatIsNotThereIsAFault) {
  const TemporaryFolder folder;
  EXPECT_THROW(ShardClaim(folder.path() / "missing", 1), Error);
  EXPECT_TRUE(read_attempts(folder.path() / "missing").empty());
}

}  // namespace
}  // namespace pascaline::testing
