#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include <nlohmann/json.hpp>

#include "tests/tuner/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// Sessions of this process, as a sweep of the toy kernel leaves them.
class CliResumeTest : public CliTest {
 protected:
  std::int64_t begin_session(Store& store, const std::vector<std::string>& arguments, const std::string& folder) const {
    const ContextIds context = example_context(store);
    SessionRow row;
    row.arguments = arguments;
    row.options_json = nlohmann::json{{"folder", folder}}.dump();
    row.searcher = "random";
    return store.begin_session(row, context.device, context.toolkit);
  }
  [[nodiscard]] ProgramResult resume(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"sweep", "--resume", "--db", database_};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

TEST_F(CliResumeTest, WithoutADatabaseOrASweepThereIsNothingToGoOnWith) {
  expect_fault(resume(), 1, {database_});
  EXPECT_FALSE(std::filesystem::exists(database_)) << "looking makes no database";
  { const Store store(database_, OpenMode::create); }
  expect_fault(resume(), 1, {database_, "nothing to go on with"});
}

TEST_F(CliResumeTest, FinishedSweepIsNotBegunAgain) {
  {
    Store store(database_, OpenMode::create);
    store.end_session(begin_session(store, sweep(), kernels_), "finished");
  }
  expect_fault(resume(), 1, {database_, "every sweep has finished"});
  EXPECT_TRUE(stored().empty());
}

TEST_F(CliResumeTest, SweepThatStillRunsIsLeftAlone) {
  Store store(database_, OpenMode::create);
  std::ignore = begin_session(store, sweep(), kernels_);
  expect_fault(resume(), 1, {std::to_string(::getpid()), "`pascaline status`"});
}

TEST_F(CliResumeTest, NewestUnfinishedSweepIsTakenUpPastFinishedAndLivingOnes) {
  Store store(database_, OpenMode::create);
  store.end_session(begin_session(store, sweep({"--seed", "1"}), kernels_), "interrupted");
  const std::int64_t wanted = begin_session(store, sweep({"--seed", "2", "--trials", "1"}), kernels_);
  store.end_session(wanted, "interrupted");
  store.end_session(begin_session(store, sweep({"--seed", "3"}), kernels_), "finished");
  std::ignore = begin_session(store, sweep({"--seed", "4"}), kernels_);
  const ProgramResult result = resume();
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out.rfind(fmt::format("going on with session {}, begun ", wanted), 0), 0U) << result.out;
  EXPECT_EQ(store.sessions().at(0).seed, 2U);
}

TEST_F(CliResumeTest, OptionThatIsGivenAnewReplacesTheStoredOneHoweverItWasWritten) {
  {
    Store store(database_, OpenMode::create);
    const auto words = on_toy("sweep", {"-p", "N=100", "--problem=N=200", "-pN=300", "--devices=host", "-n1",
                                        "--tolerate", "power", "--db", "elsewhere.db", "--warm-cache"});
    store.end_session(begin_session(store, words, kernels_), "interrupted");
  }
  const ProgramResult result = resume({"--problem", "N=400", "-d", "host", "--tolerate=thermal", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["problems_done"], 1);
  const std::vector<std::string> words = Store(database_, OpenMode::read_only).sessions().at(0).arguments;
  const auto has = [&](const std::string& word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  EXPECT_TRUE(has("N=400") && has("thermal") && has("--warm-cache") && has("--device"))
      << fmt::format("{}", words.size());
  EXPECT_FALSE(has("N=100") || has("N=200") || has("N=300") || has("power") || has("--devices"));
}

TEST_F(CliResumeTest, FolderThatIsGoneIsNamed) {
  {
    Store store(database_, OpenMode::create);
    store.end_session(begin_session(store, sweep(), kernels_ + "/gone"), "interrupted");
  }
  expect_fault(resume(), 1, {kernels_ + "/gone", "No such file"});
}

// The time the run was to be done by is the one it meant then, and passed meanwhile.
TEST_F(CliResumeTest, NewTimeToBeDoneByReplacesTheOldOne) {
  {
    Store store(database_, OpenMode::create);
    const auto words = sweep({"--trials", "2", "--until", "07:00", "--until-unix", "1"});
    store.end_session(begin_session(store, words, kernels_), "interrupted");
  }
  const std::time_t later = std::time(nullptr) + 7200;
  std::tm local{};
  ::localtime_r(&later, &local);
  const ProgramResult result = resume({"--until", fmt::format("{:02}:{:02}", local.tm_hour, local.tm_min), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["trials"], 2);
  const std::vector<std::string> words = Store(database_, OpenMode::read_only).sessions().at(0).arguments;
  EXPECT_EQ(std::count(words.begin(), words.end(), "--until-unix"), 1);
  EXPECT_EQ(std::count(words.begin(), words.end(), "1"), 0);
}

TEST_F(CliResumeTest, WordsOfTheResumingCommandComeLast) {
  {
    Store store(database_, OpenMode::create);
    store.end_session(begin_session(store, sweep({"--trials", "1", "--seed", "7"}), kernels_), "interrupted");
  }
  const ProgramResult result = resume({"--trials", "3", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["trials"], 3);
  const Store store(database_, OpenMode::read_only);
  const SessionRow session = store.sessions().at(0);
  EXPECT_EQ(session.run_uuid, store.sessions().at(1).run_uuid) << "the same run, on the device it was not begun on";
  EXPECT_EQ(session.seed, 7U);
  EXPECT_EQ(session.state, "finished");
}

}  // namespace
}  // namespace pascaline::testing
