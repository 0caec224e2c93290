#include "core/util/process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "core/error.hpp"

namespace pascaline {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

ProcessResult shell(const std::string& script, std::chrono::milliseconds deadline = 20s) {
  return run_process({"sh", "-c", script}, deadline);
}

// Whether the process runs still; a zombie whose parent is gone is waited out.
bool is_running(pid_t process) {
  for (int i = 0; i < 1000; ++i) {
    if (::kill(process, 0) != 0 && errno == ESRCH) {
      return false;
    }
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

TEST(ProcessTest, ExitStatusAndOutput) {
  const ProcessResult result = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_EQ(run_process({"true"}, 20s).exit_code, 0);
}

TEST(ProcessTest, Signal) {
  const ProcessResult result = shell("kill -SEGV $$");
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_FALSE(result.timed_out);
}

TEST(ProcessTest, PeakMemoryCountsTheChildrenItWaitedFor) {
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);  // a child begins as a copy of this process
  const std::uint64_t much = (static_cast<std::uint64_t>(own.ru_maxrss) << 10U) + (std::uint64_t{64} << 20U);
  const auto held = [](std::uint64_t bytes) {
    return shell("head -c " + std::to_string(bytes) + " /dev/zero | tail -c " + std::to_string(bytes) + " >/dev/null")
        .peak_resident_bytes;
  };
  EXPECT_GT(held(much), much);
  EXPECT_LT(held(1000), much);
}

TEST(ProcessTest, ArgumentsAreNotReadByAShell) {
  EXPECT_EQ(run_process({"printf", "%s|", "a b", "$HOME", "", "*"}, 20s).output, "a b|$HOME||*|");
}

TEST(ProcessTest, StandardInputIsEmpty) { EXPECT_EQ(shell("cat; echo end").output, "end\n"); }

TEST(ProcessTest, EnvironmentIsAddedAndReplaced) {
  ::setenv("PASCALINE_TEST_OLD", "old", 1);
  ::setenv("PASCALINE_TEST_OLDER", "older", 1);
  const ProcessResult result =
      run_process({"sh", "-c", "echo $PASCALINE_TEST_OLD $PASCALINE_TEST_OLDER $PASCALINE_TEST_NEW"}, 20s,
                  {{"PASCALINE_TEST_OLD", "replaced"}, {"PASCALINE_TEST_NEW", "new"}});
  EXPECT_EQ(result.output, "replaced older new\n");
  EXPECT_STREQ(std::getenv("PASCALINE_TEST_OLD"), "old");
}

TEST(ProcessTest, WhatCannotBeStartedIsAFault) {
  try {
    (void)run_process({"/no/such/program"}, 1s);
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ENOENT);
    EXPECT_NE(std::string(error.what()).find("/no/such/program"), std::string::npos);
  }
  EXPECT_THROW((void)run_process({}, 1s), Error);
}

TEST(ProcessTest, DeadlineKillsTheWholeGroup) {
  const auto start = Clock::now();
  const ProcessResult result = shell("sleep 60 & echo $!; wait", 2s);
  EXPECT_LT(Clock::now() - start, 30s);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  const auto grandchild = static_cast<pid_t>(std::atoi(result.output.c_str()));
  ASSERT_GT(grandchild, 0);
  EXPECT_FALSE(is_running(grandchild));
}

TEST(ProcessTest, DeadlineHoldsForAChildThatClosedItsOutput) {
  const auto start = Clock::now();
  const ProcessResult result = shell("echo closing; exec >&- 2>&-; sleep 60", 2s);
  EXPECT_LT(Clock::now() - start, 30s);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.output, "closing\n");
}

TEST(ProcessTest, DeadlineHoldsForAChildThatWritesWithoutEnd) {
  const auto start = Clock::now();
  const ProcessResult result = shell("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", 300ms);
  EXPECT_LT(Clock::now() - start, 30s);
  EXPECT_TRUE(result.timed_out);
}

TEST(ProcessTest, AProcessLeftBehindIsNotWaitedFor) {
  const auto start = Clock::now();
  const ProcessResult result = shell("sleep 60 & echo $!; exit 5");
  EXPECT_LT(Clock::now() - start, 30s);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 5);
  ::kill(static_cast<pid_t>(std::atoi(result.output.c_str())), SIGKILL);
}

TEST(ProcessTest, OutputIsCutAtOneMebibyte) {
  const ProcessResult result = shell("head -c 3000000 /dev/zero | tr '\\0' x");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output.size(), std::size_t{1} << 20);
}

TEST(ProcessTest, DescriptorsDoNotPileUp) {
  const auto next_descriptor = [] {
    const int descriptor = ::dup(STDERR_FILENO);
    ::close(descriptor);
    return descriptor;
  };
  const int before = next_descriptor();
  for (int i = 0; i < 5; ++i) {
    (void)run_process({"true"}, 20s);
    EXPECT_THROW((void)run_process({"/no/such/program"}, 20s), Error);
  }
  EXPECT_EQ(next_descriptor(), before);
}

// Its grandchild has a process group of its own, as a compiler of a worker's has.
// A stage in a process group of its own, as compilers have them.
TEST(ProcessTest, AStoppedProcessIsKilledWithAllBelow) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string stage = "set -m; sleep 100 & echo $! >&" + std::to_string(ends[1]) + "; wait";
  const auto started = [&] {
    pollfd entry{ends[0], POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  };
  const ProcessResult result = run_process({"bash", "-c", "bash -c '" + stage + "' & wait"}, 60s, {}, started);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  char text[32] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  EXPECT_FALSE(is_running(static_cast<pid_t>(std::stol(text))));
  ::close(ends[0]);
  ::close(ends[1]);
}

// A session of its own, whose leader is gone, and a process of another group in it.
TEST(ProcessTest, DescendantsEndInWhateverSession) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t middle = ::fork();
  if (middle == 0) {
    const std::string script = "setsid bash -c 'bash -c \"set -m; sleep 100 & echo \\$! >&" + std::to_string(ends[1]) +
                               "; wait\" & wait' & sleep 100";
    ::execlp("sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  char text[32] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  end_tree(::getpid());
  ::waitpid(middle, nullptr, 0);
  EXPECT_FALSE(is_running(static_cast<pid_t>(std::stol(text))));
  EXPECT_FALSE(is_running(middle));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ProcessTest, AStoppedSessionLeavesNobody) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string script = "set -m; sleep 1000 & echo started >&" + std::to_string(ends[1]) + "; wait";
  bool started = false;
  const auto stop = [&] {
    pollfd entry{ends[0], POLLIN, 0};
    started = started || ::poll(&entry, 1, 0) == 1;
    return started;
  };
  const ProcessResult result = run_session({"sh", "-c", script}, 60s, {}, stop);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  ::close(ends[1]);
  char block[64];
  while (::read(ends[0], block, sizeof block) > 0) {  // ends once nobody holds the other end any more
  }
  ::close(ends[0]);
}

TEST(ProcessTest, ASessionThatIsNotStoppedEndsByItself) {
  const ProcessResult result = run_session({"sh", "-c", "echo done; exit 4"}, 60s, {}, [] { return false; });
  EXPECT_EQ(result.output, "done\n");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_FALSE(result.stopped);
  const ProcessResult late = run_session({"sleep", "1000"}, 50ms, {}, {});
  EXPECT_TRUE(late.timed_out);
  EXPECT_FALSE(late.stopped);
}

}  // namespace
}  // namespace pascaline
