#include "tuner/ipc/worker_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/dispatch/planner.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/tuner/kernels/naive_reference.hpp"
#include "tuner/ipc/frames.hpp"
#include "tuner/measure/measure_messages.hpp"

namespace pascaline::testing {
namespace {

// A worker whose parent ends must end without a word: its standard error is that of the program its parent was, where a
// line of its own would be taken for a second fault.

struct Ends {
  int reader = -1;
  int writer = -1;
};

Ends open_pipe() {
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe");
  return {ends[0], ends[1]};
}

/// A kind of worker, and how it is spoken to.
struct Kind {
  std::vector<std::string> words;
  std::string opening;   ///< comes once, before any request
  std::string request;   ///< is answered at once
  std::string nonsense;  ///< ends it
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.words.front(); }

const std::string kNonsense(32, '\xff');

// Of a source that it was not told.
Kind compile_kind() {
  const nlohmann::json request{{"do", "compile"},
                               {"id", 1},
                               {"source", "none"},
                               {"function", "f"},
                               {"defines", {"A=1"}},
                               {"options", {"--fast"}},
                               {"kind", 0},
                               {"architecture", "emulator"},
                               {"address_sanitizer", false}};
  return {{"compile-worker", "--arch", "emulator"}, "", frame_of(request), kNonsense};
}
nlohmann::json softmax_problem(const nlohmann::json& reference, const Config& config) {
  const std::vector<std::pair<std::string, std::string>> values{{"ROWS", "2"}, {"WIDTH", "64"}, {"STORAGE", "float32"}};
  return {{"do", "problem"},
          {"space", bytes_of(std::string(PASCALINE_SOURCE_DIR) + "/search_spaces/softmax.json")},
          {"name", "softmax.json"},
          {"values", values},
          {"reference", reference},
          {"reference_config", config.json()},
          {"given", {{"inputs", nlohmann::json::array()}, {"answers", nlohmann::json::array()}}},
          {"seed", 1}};
}
Kind measure_kind() {
  GovernorOptions governor;
  governor.passive = true;
  const nlohmann::json setup{
      {"do", "setup"},        {"device", "emulator"}, {"target", ""},         {"measure", MeasureOptions()},
      {"governor", governor}, {"sensors", ""},        {"ends_at_s", nullptr}, {"database", nullptr},
      {"kernels", ""},        {"spaces", ""},         {"nvrtc", ""},          {"cache", ""}};
  const nlohmann::json problem = softmax_problem(nullptr, Config());
  return {{"measure-worker"}, frame_of(setup), frame_of(problem), kNonsense};
}

class WorkerProcessTest : public ::testing::TestWithParam<Kind> {
 protected:
  TemporaryFolder folder_;
  Ends words_ = open_pipe();

  void SetUp() override { std::signal(SIGPIPE, SIG_IGN); }
  void TearDown() override { ::close(words_.reader); }

  [[nodiscard]] std::vector<std::string> command() const {
    std::vector<std::string> words{PASCALINE_TEST_PROGRAM};
    words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
    if (words[1] == "compile-worker") {
      words.insert(words.end(), {"--cache", (folder_ / "cache").string()});
    }
    return words;
  }

  /// Becomes a worker with these as its standard streams.
  void become_worker(int input, int output) const {
    require(::dup2(input, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0, "no streams");
    take_words();
    std::vector<std::string> words = command();
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    ::setsid();
    ::execv(pointers[0], pointers.data());
    throw std::runtime_error("cannot start " + words[0]);
  }
  void take_words() const { require(::dup2(words_.writer, STDERR_FILENO) >= 0, "no standard error"); }

  /// What is said on standard error until all who could say something have ended.
  [[nodiscard]] std::string last_words() {
    ::close(words_.writer);
    std::string said;
    std::array<char, 4096> block{};
    for (;;) {
      pollfd entry{words_.reader, POLLIN, 0};
      if (::poll(&entry, 1, 60'000) <= 0) {
        return said + "(somebody is still there)";
      }
      const ssize_t count = ::read(words_.reader, block.data(), block.size());
      if (count <= 0) {
        return said;
      }
      said.append(block.data(), static_cast<std::size_t>(count));
    }
  }
};

TEST_P(WorkerProcessTest, WhoseParentIsGoneBeforeItBegins) {
  const Ends requests = open_pipe();
  const Ends replies = open_pipe();
  ::close(requests.writer);
  ::close(replies.reader);
  const int worker = fork_child([&] { become_worker(requests.reader, replies.writer); });
  EXPECT_EQ(last_words(), "");
  std::ignore = wait_child(worker);
  ::close(requests.reader);
  ::close(replies.writer);
}

// The parent gives up its two ends one after the other: between them the worker may find out by writing.
TEST_P(WorkerProcessTest, WhoseRepliesNobodyReads) {
  for (const bool asked_before : {false, true}) {
    words_ = asked_before ? open_pipe() : words_;
    const Ends requests = open_pipe();
    const Ends replies = open_pipe();
    const int worker = fork_child([&] { become_worker(requests.reader, replies.writer); });
    ::close(requests.reader);
    ::close(replies.writer);
    if (asked_before) {
      EXPECT_TRUE(write_all(requests.writer, GetParam().opening + GetParam().request));
      char byte = 0;
      EXPECT_EQ(::read(replies.reader, &byte, 1), 1) << "it answers as long as it is listened to";
    }
    ::close(replies.reader);
    // It may have ended by now, with a word that nobody heard.
    const std::string more = (asked_before ? "" : GetParam().opening) + GetParam().request;
    std::ignore = write_all(requests.writer, more) && write_all(requests.writer, GetParam().nonsense);
    EXPECT_EQ(last_words(), "") << (asked_before ? "after an answer" : "before any answer");
    EXPECT_EQ(wait_child(worker), 1);
    ::close(requests.writer);
    if (!asked_before) {
      ::close(words_.reader);
    }
  }
}

// `requests` tells how many it is sent before.
TEST_P(WorkerProcessTest, WhoseParentIsKilled) {
  for (int requests = 0; requests < 4; ++requests) {
    words_ = requests == 0 ? words_ : open_pipe();
    const int parent = fork_child([&] {
      take_words();
      const WorkerProcess worker(command());
      for (int i = 0; i < requests; ++i) {
        std::string text = (i == 0 ? GetParam().opening : "") + GetParam().request;
        require(worker.write_some(text) && text.empty(), "nothing is read");
      }
      ::raise(SIGKILL);
    });
    EXPECT_EQ(last_words(), "") << requests << " requests";
    EXPECT_EQ(wait_child(parent), 128 + SIGKILL);
    if (requests < 3) {
      ::close(words_.reader);
    }
  }
}

TEST_P(WorkerProcessTest, WhichIsGivenUpInTheMiddle) {
  const int parent = fork_child([&] {
    take_words();
    for (int i = 0; i < 20; ++i) {
      const WorkerProcess worker(command());
      for (int request = 0; request < 5; ++request) {
        std::string text = (request == 0 ? GetParam().opening : "") + GetParam().request;
        std::ignore = worker.write_some(text);
      }
      ::usleep(static_cast<useconds_t>(3000 * i));
    }
  });
  EXPECT_EQ(last_words(), "");
  EXPECT_EQ(wait_child(parent), 0);
}

// The requests of this file are such that a worker does its work: one that only says a fault ends otherwise.
TEST_P(WorkerProcessTest, WhichIsAskedDoesItsWork) {
  if (GetParam().words.front() != "measure-worker") {
    GTEST_SKIP() << "compilers are asked for nothing that they could compile";
  }
  const Space space = Space::load(std::string(PASCALINE_SOURCE_DIR) + "/search_spaces/softmax.json");
  const BoundSpace bound(space, space.problem({{"ROWS", "2"}, {"WIDTH", "64"}, {"STORAGE", "float32"}}),
                         shared_emulator().info().limits);
  const WorkerProcess worker(command());
  std::string text = GetParam().opening +
                     frame_of(softmax_problem(compile_reference(shared_emulator(), bound), untuned_config(bound)));
  require(worker.write_some(text) && text.empty(), "nothing is read");
  FrameReader reader;
  std::vector<std::string> said;
  const auto is_over = [&] { return !said.empty() && (said.back() == "prepared" || said.back() == "fault"); };
  while (!is_over()) {
    pollfd entry{worker.output(), POLLIN, 0};
    ASSERT_GT(::poll(&entry, 1, 60'000), 0) << "it says nothing";
    std::string bytes;
    ASSERT_TRUE(worker.read(bytes)) << "it ended";
    reader.append(bytes);
    while (!is_over()) {
      const auto message = reader.next();
      if (!message) {
        break;
      }
      said.push_back(message->at("is").get<std::string>());
    }
  }
  EXPECT_EQ(said.back(), "prepared");
  EXPECT_EQ(std::count(said.begin(), said.end(), "ready"), 1);
}

// A cache that cannot be used is no fault of the worker, and its end is no news to anybody.
TEST_P(WorkerProcessTest, WhoseFolderWentWithItsParent) {
  if (GetParam().words.front() != "compile-worker") {
    GTEST_SKIP() << "only compilers have a folder";
  }
  write_bytes(folder_ / "cache", "a file");
  const Ends requests = open_pipe();
  const Ends replies = open_pipe();
  ::close(requests.writer);
  ::close(replies.reader);
  const int worker = fork_child([&] { become_worker(requests.reader, replies.writer); });
  EXPECT_EQ(last_words(), "");
  (void)wait_child(worker);  // it ends by itself, or with the session of its parent, whichever is first
  ::close(requests.reader);
  ::close(replies.writer);
}

INSTANTIATE_TEST_SUITE_P(Kinds, WorkerProcessTest, ::testing::Values(compile_kind(), measure_kind()),
                         [](const auto& kind) { return kind.index == 0 ? "Compile" : "Measure"; });

}  // namespace
}  // namespace pascaline::testing
