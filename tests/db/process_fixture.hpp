#pragma once

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>

#include "tests/db/fixtures.hpp"

namespace pascaline::testing {

/// A database that several processes use, and a pipe by which children tell numbers.
class ProcessFixture : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "tuned.db";
  std::array<int, 2> pipe_{-1, -1};

  void SetUp() override { ASSERT_EQ(::pipe(pipe_.data()), 0); }
  void TearDown() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  void tell(std::int64_t number) const { std::ignore = ::write(pipe_[1], &number, sizeof number); }
  [[nodiscard]] std::int64_t hear() const {
    std::int64_t number = -1;
    return ::read(pipe_[0], &number, sizeof number) == sizeof number ? number : -1;
  }
  /// Runs `work` in a child, which then waits; kills it with SIGKILL once it has got there.
  void run_and_kill(const std::function<void()>& work) const {
    const int child = fork_child([&] {
      work();
      tell(1);
      ::pause();
    });
    ASSERT_EQ(hear(), 1);
    ::kill(child, SIGKILL);
    ASSERT_EQ(wait_child(child), 128 + SIGKILL);
  }
  void expect_sound() const {
    SQLite::Database database(file_.string());
    EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), "ok");
  }
};

}  // namespace pascaline::testing
