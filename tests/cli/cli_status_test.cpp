#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <utility>

#include "tests/cli/cli_fixture.hpp"
#include "tuner/sweep/sweep_view.hpp"

namespace pascaline::testing {
namespace {

// Sessions of this process, which is alive as long as the test.
class CliStatusTest : public CliTest {
 protected:
  std::int64_t begin_session(Store& store, const std::string& run = {}) {
    const ContextIds context = example_context(store);
    SessionRow row;
    row.command_line = "pascaline sweep --kernel matmul";
    row.run_uuid = run.empty() ? Store::new_run() : run;
    store.save_plan(row.run_uuid, example_plan());
    row.searcher = "random";
    return store.begin_session(row, context.device, context.toolkit);
  }
  [[nodiscard]] ProgramResult status(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"status", "--db", database_};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

TEST_F(CliStatusTest, WithoutADatabaseItIsAFault) {
  expect_fault(status(), 1, {database_});
  expect_fault(status({"--json"}), 1, {database_});
  expect_fault(status({"--watch"}), 1, {database_});
}

TEST_F(CliStatusTest, NothingWasEverBegun) {
  { const Store store(database_, OpenMode::create); }
  const ProgramResult result = status();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.out, fmt::format("nothing is running on {}\nno sweep has been started yet: pascaline sweep --help\n",
                                    database_));
  const ProgramResult json = status({"--json"});
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_EQ(json_of(json), (nlohmann::json{{"database", database_},
                                           {"running", nlohmann::json::array()},
                                           {"last", nlohmann::json::array()},
                                           {"resume", nullptr}}));
}

TEST_F(CliStatusTest, RunningSessionIsShown) {
  Store store(database_, OpenMode::create);
  const std::int64_t session = begin_session(store);
  const ProgramResult result = status();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_EQ(result.out.rfind("running since ", 0), 0U) << result.out;
  EXPECT_NE(result.out.find(fmt::format("session {}: pascaline sweep --kernel matmul\n", session)), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find(example_device().name + "   starting\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("0 trials, 0 usable"), std::string::npos) << result.out;

  const ProgramResult json = status({"--json"});
  EXPECT_EQ(json.exit_code, 0);
  const nlohmann::json running = json_of(json)["running"];
  ASSERT_EQ(running.size(), 1U);
  EXPECT_EQ(running[0]["sessions"], nlohmann::json::array({session}));
  EXPECT_EQ(running[0]["view"].get<SweepView>().devices.at(0).name, example_device().name);
  EXPECT_TRUE(json_of(json)["resume"].is_null());
}

TEST_F(CliStatusTest, SessionsOfARunAreItsDevices) {
  Store store(database_, OpenMode::create);
  SweepView sweep;
  sweep.trials = 151;
  sweep.elapsed_s = 60;
  for (int gpu = 0; gpu < 2; ++gpu) {
    DeviceProgress device;
    device.device = fmt::format("cuda:{}", gpu);
    device.name = "NVIDIA H200";
    device.problem = fmt::format("M={}", gpu + 1);
    store.note_progress(begin_session(store, "run"), 60'000, session_progress_text(device, sweep), {});
    sweep.trials = 152;
    sweep.elapsed_s = 61;
  }
  const ProgramResult result = status();
  EXPECT_EQ(result.exit_code, 0);
  const std::size_t heading = result.out.find('\n') + 1;
  EXPECT_NE(result.out.find(fmt::format("UTC, process {}, session 1, 2: ", ::getpid())), std::string::npos)
      << result.out;
  EXPECT_EQ(result.out.substr(heading),
            "cuda:0 NVIDIA H200   M=1   starting\n  no time yet\ncuda:1 NVIDIA H200   M=2   starting\n  no time yet\n"
            "152 trials, 0 usable · 0:01:01 elapsed\n");
  const nlohmann::json running = json_of(status({"--json"}))["running"];
  ASSERT_EQ(running.size(), 1U);
  EXPECT_EQ(running[0]["run"], "run");
  EXPECT_EQ(running[0]["process_id"], ::getpid());
  EXPECT_EQ(running[0]["view"]["devices"].size(), 2U);
}

TEST_F(CliStatusTest, TwoSweepsAreTwo) {
  Store store(database_, OpenMode::create);
  static_cast<void>(begin_session(store, "a"));
  static_cast<void>(begin_session(store, "b"));
  EXPECT_EQ(json_of(status({"--json"}))["running"].size(), 2U);
}

TEST_F(CliStatusTest, RunWithADeviceLeftToDoCanBeTakenUp) {
  Store store(database_, OpenMode::create);
  const std::int64_t first = begin_session(store, "run");
  const std::int64_t second = begin_session(store, "run");
  store.end_session(second, "finished");
  EXPECT_TRUE(json_of(status({"--json"}))["resume"].is_null()) << "it is under way";
  store.end_session(first, "interrupted");
  EXPECT_TRUE(json_of(status({"--json"}))["resume"].is_string());
}

TEST_F(CliStatusTest, InterruptedSweepCanBeTakenUp) {
  Store store(database_, OpenMode::create);
  store.end_session(begin_session(store), "finished");
  store.end_session(begin_session(store), "interrupted");
  const ProgramResult result = status();
  EXPECT_EQ(result.exit_code, 3);
  const std::size_t newest = result.out.find("session 2: ");
  const std::size_t oldest = result.out.find("session 1: ");
  EXPECT_LT(newest, oldest) << result.out;
  EXPECT_NE(result.out.find("UTC, interrupted, " + example_device().name), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("UTC, finished, " + example_device().name), std::string::npos) << result.out;
  const std::string resume = "pascaline sweep --resume --db " + database_;
  EXPECT_NE(result.out.find("to resume: " + resume + "\n"), std::string::npos) << result.out;
  EXPECT_EQ(json_of(status({"--json"}))["resume"], resume);
}

TEST_F(CliStatusTest, FinishedSweepsLeaveNothingToGoOnWith) {
  Store store(database_, OpenMode::create);
  store.end_session(begin_session(store), "finished");
  const ProgramResult result = status();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out.find("--resume"), std::string::npos) << result.out;
  EXPECT_TRUE(json_of(status({"--json"}))["resume"].is_null());
}

TEST_F(CliStatusTest, UnfinishedSweepBeforeAFinishedOrLivingOneCanBeTakenUp) {
  database_ = (folder_ / "it's mine.db").string();
  Store store(database_, OpenMode::create);
  store.end_session(begin_session(store, "a"), "interrupted");
  store.end_session(begin_session(store, "b"), "finished");
  const std::string resume =
      fmt::format("pascaline sweep --resume --db '{}/it'\\''s mine.db'", folder_.path().string());
  EXPECT_EQ(json_of(status({"--json"}))["resume"], resume);
  static_cast<void>(begin_session(store, "c"));
  EXPECT_EQ(json_of(status({"--json"}))["resume"], resume);
}

TEST_F(CliStatusTest, DeadSweepIsNotRunning) {
  EXPECT_EQ(wait_child(fork_child([this] {
              Store store(database_, OpenMode::create);
              static_cast<void>(begin_session(store));
            })),
            0);
  const ProgramResult result = status();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.out.find("UTC, died, "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("--resume"), std::string::npos) << result.out;
  EXPECT_EQ(json_of(status({"--json"}))["last"][0]["state"], "died");
}

TEST_F(CliStatusTest, OnlyTheLastFewSessionsAreListed) {
  Store store(database_, OpenMode::create);
  for (int i = 0; i < 8; ++i) {
    store.end_session(begin_session(store), "finished");
  }
  EXPECT_EQ(json_of(status({"--json"}))["last"].size(), 5U);
  EXPECT_NE(status().out.find("session 8"), std::string::npos);
  EXPECT_EQ(status().out.find("session 3:"), std::string::npos);
}

TEST_F(CliStatusTest, WatchRepeatsUntilCtrlC) {
  Store store(database_, OpenMode::create);
  const std::int64_t session = begin_session(store);
  const int watch = start_program(folder_.path(), {"status", "--db", database_, "--watch", "--json"});
  const auto printed = [&] { return bytes_of(folder_ / "stdout"); };
  const auto wait_for = [&](const std::string& text) {
    for (int i = 0; i < 600 && printed().find(text) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_NE(printed().find(text), std::string::npos) << printed();
  };
  wait_for("\"starting\"");
  store.end_session(session, "finished");
  wait_for("\"running\":[]");
  ::kill(watch, SIGINT);
  EXPECT_EQ(wait_child(watch), 130);
  EXPECT_EQ(bytes_of(folder_ / "stderr"), "");
}

TEST_F(CliStatusTest, WatchSaysWhatChangesInPlainLines) {
  Store store(database_, OpenMode::create);
  std::int64_t session = begin_session(store);
  const int watch = start_program(folder_.path(), {"status", "--db", database_, "--watch"});
  for (int i = 0; i < 600 && bytes_of(folder_ / "stdout").find("nothing is running") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (session != 0 && bytes_of(folder_ / "stdout").find("running since") != std::string::npos) {
      store.end_session(std::exchange(session, 0), "finished");
    }
  }
  ::kill(watch, SIGTERM);
  EXPECT_EQ(wait_child(watch), 130);
  const std::string out = bytes_of(folder_ / "stdout");
  EXPECT_EQ(out.rfind("running since", 0), 0U) << out;
  EXPECT_NE(out.find("\nnothing is running on " + database_), std::string::npos) << out;
  EXPECT_EQ(out.find('\033'), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
