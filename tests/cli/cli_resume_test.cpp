#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/space/space.hpp"
#include "db/sweep_plan.hpp"
#include "runtime/device/compile.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// Sessions of this process with the plan of a sweep of the toy kernel, as the program stores them.
class CliResumeTest : public CliTest {
 protected:
  [[nodiscard]] SweepPlan toy_plan(const std::string& n = "1000") const {
    const Space space = Space::load(folder_ / "toy.json");
    SweepPlan plan = example_plan();
    plan.kernels = {{"toy", KernelSource::load(folder_ / "toy.cu").hash, space.hash}};
    plan.devices = {"host"};
    plan.trials = 1;
    plan.jobs = 2;
    plan.cold_cache = false;
    plan.min_samples = 3;
    plan.max_samples = 5;
    plan.rounds = 2;
    plan.problems = {{space.problem({{"N", n}}), 1, ""}};
    plan.paths = {{"--kernels", kernels_}, {"--spaces", kernels_}};
    return plan;
  }
  std::int64_t begin_session(Store& store, const SweepPlan& plan) const {
    const ContextIds context = example_context(store);
    SessionRow row;
    row.run_uuid = Store::new_run();
    row.searcher = plan.searcher;
    row.seed = plan.seed;
    row.options_json = "{}";
    row.command_line = "pascaline sweep --forged";
    for (const PlannedProblem& planned : plan.problems) {
      store.problem_id(planned.problem, 1, 1);
    }
    store.save_plan(row.run_uuid, plan);
    return store.begin_session(row, context.device, context.toolkit);
  }
  std::int64_t interrupted(const SweepPlan& plan) const {
    Store store(database_, OpenMode::create);
    const std::int64_t id = begin_session(store, plan);
    store.end_session(id, "interrupted");
    return id;
  }
  /// With no folders named.
  [[nodiscard]] ProgramResult resume_bare() const { return run({"sweep", "--resume", "--db", database_}); }
  [[nodiscard]] std::vector<std::string> resuming(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"sweep", "--resume", "--db", database_, "--kernels", kernels_, "--spaces", kernels_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] ProgramResult resume(const std::vector<std::string>& more = {}) const { return run(resuming(more)); }
  /// The same on simulated workers, where it is not refused.
  [[nodiscard]] ProgramResult go_on(const std::vector<std::string>& more = {}) const {
    return simulate(resuming(more));
  }
  [[nodiscard]] SweepPlan stored_plan() const {
    const Store store(database_, OpenMode::read_only);
    return store.plan(store.sessions().at(0).run_uuid).value();
  }
  void change(const std::string& sql) const {
    SQLite::Database(database_, SQLite::OPEN_READWRITE).exec("PRAGMA ignore_check_constraints = ON;" + sql);
  }
};

TEST_F(CliResumeTest, WithoutADatabaseOrASweepThereIsNothingToGoOnWith) {
  expect_fault(resume(), 1, {database_});
  EXPECT_FALSE(std::filesystem::exists(database_)) << "looking makes no database";
  { const Store store(database_, OpenMode::create); }
  expect_fault(resume(), 1, {database_, "it has no sweep", "nothing to resume"});
}

TEST_F(CliResumeTest, FinishedSweepIsNotBegunAgain) {
  {
    Store store(database_, OpenMode::create);
    store.end_session(begin_session(store, toy_plan()), "finished");
  }
  expect_fault(resume(), 1, {database_, "every sweep has finished"});
  EXPECT_TRUE(stored().empty());
}

TEST_F(CliResumeTest, FinishedSweepIsContinuedIfMoreIsAskedFor) {
  {
    Store store(database_, OpenMode::create);
    store.end_session(begin_session(store, toy_plan()), "finished");
  }
  const ProgramResult result = go_on({"--trials", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_FALSE(stored().empty());
  expect_fault(resume(), 1, {database_, "every sweep has finished", "--until", "--budget"});
}

TEST_F(CliResumeTest, SweepThatStillRunsIsLeftAlone) {
  Store store(database_, OpenMode::create);
  std::ignore = begin_session(store, toy_plan());
  expect_fault(resume(), 1, {std::to_string(::getpid()), "`pascaline status`"});
}

TEST_F(CliResumeTest, NewestUnfinishedSweepIsTakenUpPastFinishedAndLivingOnes) {
  Store store(database_, OpenMode::create);
  SweepPlan plan = toy_plan();
  const auto begin = [&](std::uint64_t seed) {
    plan.seed = seed;
    return begin_session(store, plan);
  };
  store.end_session(begin(1), "interrupted");
  const std::int64_t wanted = begin(2);
  store.end_session(wanted, "interrupted");
  store.end_session(begin(3), "finished");
  std::ignore = begin(4);
  const ProgramResult result = go_on();
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out.rfind(fmt::format("resuming session {}, started ", wanted), 0), 0U) << result.out;
  EXPECT_EQ(store.sessions().at(0).seed, 2U);
}

// What is shown is what runs, whatever the session says that its command was.
TEST_F(CliResumeTest, LineThatIsShownIsMadeOfThePlanInForce) {
  SweepPlan plan = toy_plan("400");
  plan.problems[0].label = "prefill: q\x1b[2J";
  interrupted(plan);
  const ProgramResult result = resume({"--trials", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::string line = result.out.substr(0, result.out.find('\n'));
  for (const std::string part : {"--kernel toy", "--devices host", "--trials 2", "--searcher random", "--warm-cache",
                                 "--min-samples 3", "--problem N=400", "--rounds 2"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in: " << line;
  }
  EXPECT_NE(line.find("--kernels " + kernels_), std::string::npos) << line;
  EXPECT_EQ(result.out.find("--forged"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(stored_plan().trials, 2) << "and it is what the next one goes on with";
  EXPECT_EQ(stored_plan().problems.at(0).problem, plan.problems[0].problem);
}

TEST_F(CliResumeTest, OptionThatIsGivenAnewReplacesTheStoredOneHoweverItWasWritten) {
  SweepPlan plan = toy_plan("100");
  plan.tolerate_power = plan.polite = true;
  plan.min_gain = 0.25;
  interrupted(plan);
  const ProgramResult result = go_on({"--problem", "N=400", "-d", "host", "--tolerate=thermal", "-n2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["problems_done"], 1);
  const SweepPlan now = stored_plan();
  ASSERT_EQ(now.problems.size(), 1U);
  EXPECT_EQ(now.problems[0].problem.text(), "toy N=400");
  EXPECT_TRUE(now.tolerate_thermal && !now.tolerate_power && !now.cold_cache && now.polite);
  EXPECT_EQ(now.min_gain, 0.25);
  EXPECT_EQ(now.trials, 2);
  EXPECT_EQ(now.min_samples, 3);
}

// Paths in a file of unknown origin: nothing is written, read or compiled where they lead.
TEST_F(CliResumeTest, ObjectiveStaysAndAnotherOneBringsItsOwnNumberOfFinalists) {
  SweepPlan plan = toy_plan();
  plan.objective = Objective::energy;
  plan.finalists = 7;
  interrupted(plan);
  expect_fault(resume(), 1,
               {"--objective energy", "does not report its power",
                "give --resume --objective time, or the --sensors that it was begun with"});
  EXPECT_EQ(go_on({"--objective", "time"}).exit_code, 0);
  EXPECT_EQ(stored_plan().objective, Objective::time);
  EXPECT_EQ(stored_plan().finalists, 5);
}

TEST_F(CliResumeTest, PathsOfTheDatabaseAreNeverOpened) {
  std::filesystem::create_directories(folder_ / "foreign");
  std::filesystem::create_directories(folder_ / "here");
  for (const char* name : {"toy.cu", "toy.json"}) {
    std::filesystem::copy_file(folder_ / name, folder_ / "foreign" / name);
  }
  SweepPlan plan = toy_plan();
  const std::string victim = (folder_ / "victim").string();
  const std::string foreign = (folder_ / "foreign").string();
  plan.paths = {{"--cache", (folder_ / "foreign_cache").string()},
                {"--kernels", foreign},
                {"--log", victim},
                {"--nvrtc", victim},
                {"--sensors", "/dev/zero"},
                {"--spaces", foreign}};
  interrupted(plan);
  expect_fault(resume_bare(), 1, {"--kernels " + foreign, "--spaces " + foreign, "if you trust"});
  EXPECT_TRUE(stored().empty());
  expect_fault(resume(), 1, {"--nvrtc " + victim, "another compiler", "if you trust"});
  EXPECT_TRUE(stored().empty());
  const ProgramResult result = go_on({"--nvrtc", "11.8"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("--log " + victim), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("does not open paths stored in a database"), std::string::npos) << result.out;
  EXPECT_FALSE(std::filesystem::exists(victim));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "foreign_cache"));
  const std::vector<std::pair<std::string, std::string>> now{{"--kernels", kernels_}, {"--spaces", kernels_}};
  EXPECT_EQ(stored_plan().paths, now);
  EXPECT_EQ(stored_plan().nvrtc, "11.8");
}

// A version is no path: it stays in force, as with another compiler nothing that was measured would count.
TEST_F(CliResumeTest, VersionOfTheCompilerStaysInForce) {
  tune({"--trials", "3", "--nvrtc", "11.8"});
  const SweepPlan plan = stored_plan();
  EXPECT_EQ(plan.nvrtc, "11.8");
  EXPECT_EQ(
      std::count_if(plan.paths.begin(), plan.paths.end(), [](const auto& path) { return path.first == "--nvrtc"; }), 0);
  change("UPDATE sessions SET state = 'interrupted'");
  const ProgramResult result = go_on();
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.substr(0, result.out.find('\n')).find(" --nvrtc 11.8"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("not used now"), std::string::npos) << result.out;
  EXPECT_EQ(stored_plan().nvrtc, "11.8");
  change("UPDATE sessions SET state = 'interrupted'");
  ASSERT_EQ(go_on({"--nvrtc", "12"}).exit_code, 0);
  EXPECT_EQ(stored_plan().nvrtc, "12");
}

// What a session says of its compiler holds for all of its trials.
TEST_F(CliResumeTest, AnotherCompilerBeginsAnotherSessionOfTheRun) {
  tune();
  change("UPDATE sessions SET state = 'interrupted'");
  ASSERT_EQ(go_on().exit_code, 0);
  {
    const Store store(database_, OpenMode::read_only);
    ASSERT_EQ(store.sessions().size(), 1U) << "the same one with the same compiler";
  }
  change("UPDATE sessions SET state = 'interrupted'; UPDATE toolkits SET version = '0.1'");
  ASSERT_EQ(go_on().exit_code, 0);
  const Store store(database_, OpenMode::read_only);
  const std::vector<SessionRow> sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 2U);
  EXPECT_EQ(sessions[0].run_uuid, sessions[1].run_uuid);
  EXPECT_EQ(sessions[1].toolkit.version, "0.1");
  EXPECT_NE(sessions[0].toolkit.version, "0.1");
}

TEST_F(CliResumeTest, TimeSpentThatNobodyCanHaveSpentLeavesNoneOfTheBudget) {
  tune();
  change(
      "UPDATE sessions SET state = 'interrupted', spent_ms = 9223372036854775807; DELETE FROM winners; "
      "UPDATE plans SET trials = 100, budget_s = 3600");
  const std::size_t before = stored().size();
  const ProgramResult result = go_on();
  EXPECT_EQ(result.exit_code, 0) << "by the trials from before";
  EXPECT_EQ(stored().size(), before);
  const Store store(database_, OpenMode::read_only);
  EXPECT_GT(store.sessions().at(0).spent_ms, 0);
}

TEST_F(CliResumeTest, LongNameOfAProblemIsCutBetweenCharacters) {
  SweepPlan plan = toy_plan();
  plan.problems[0].label = std::string(999, 'a') + "\u00e9 and more";
  interrupted(plan);
  const ProgramResult result = go_on();
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(stored_plan().problems.at(0).label, std::string(999, 'a'));
}

TEST_F(CliResumeTest, KernelThatIsElsewhereIsAskedForAndOneThatChangedIsTold) {
  SweepPlan plan = toy_plan();
  plan.kernels[0].source_hash = "another";
  plan.paths = {{"--kernels", "/elsewhere"}, {"--spaces", "/elsewhere"}};
  interrupted(plan);
  const ProgramResult resumed = go_on();
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  EXPECT_NE(resumed.out.find("warning: the source of kernel 'toy' changed"), std::string::npos) << resumed.out;
  plan.kernels[0].name = "matmul";
  plan.kernels[0].space_hash = "another";
  plan.problems.clear();
  interrupted(plan);
  expect_fault(resume_bare(), 1, {"source and the search space of kernel 'matmul'", "--kernels /elsewhere"});
}

// The time the run was to be done by is the one it meant then, and passed meanwhile.
TEST_F(CliResumeTest, NewTimeToBeDoneByReplacesTheOldOne) {
  SweepPlan plan = toy_plan();
  plan.trials = 2;
  plan.until_unix_s = 1;
  interrupted(plan);
  const std::time_t later = std::time(nullptr) + 7200;
  std::tm local{};
  ::localtime_r(&later, &local);
  const ProgramResult result = go_on({"--until", fmt::format("{:02}:{:02}", local.tm_hour, local.tm_min), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["trials"], 2);
  EXPECT_GT(stored_plan().until_unix_s, std::time(nullptr));
}

TEST_F(CliResumeTest, OptionsOfTheResumingCommandCountAndTheRunStaysTheSame) {
  SweepPlan plan = toy_plan();
  plan.seed = 7;
  interrupted(plan);
  const ProgramResult result = go_on({"--trials", "3", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(json_of(result)["trials"], 3);
  const Store store(database_, OpenMode::read_only);
  const SessionRow session = store.sessions().at(0);
  EXPECT_EQ(session.run_uuid, store.sessions().at(1).run_uuid) << "the same run, on the device it was not begun on";
  EXPECT_EQ(session.seed, 7U);
  EXPECT_EQ(session.state, "finished");
}

TEST_F(CliResumeTest, NonsenseInThePlanIsRefusedWithWhatIsWrong) {
  const std::int64_t id = interrupted(toy_plan());
  const std::string session = fmt::format("session {}", id);
  const std::pair<const char*, const char*> nonsense[] = {
      {"devices = 'host,--log=x'", "neither emulator nor cuda:N"},
      {"devices = ''", "neither emulator nor cuda:N"},
      {"devices = 'cuda:-0'", "neither emulator nor cuda:N"},
      {"devices = 'cuda:1x'", "neither emulator nor cuda:N"},
      {"target = 'sm_61 --log'", "not an architecture"},
      {"nvrtc = '/tmp/libnvrtc.so'", "not a version"},
      {"nvrtc = '12 --log'", "not a version"},
      {"nvrtc = '11.8,/tmp/x'", "not a version"},
      {"nvrtc = 'all,12'", "not a version"},
      {"target = 'sm_61' || char(0) || 'x'", "sm_61 x', which is not an architecture"},
      {"nvrtc = '12' || char(0)", "not a version"},
      {"devices = 'host' || char(0) || 'x'", "'host x', which is neither emulator nor cuda:N"},
      {"searcher = '--help'", "--searcher"},
      {"searcher = 'nobody'", "--searcher"},
      {"seed = -1", "--seed"},
      {"trials = 0", "--trials"},
      {"trials = 9223372036854775807", "--trials"},
      {"budget_s = -5", "--budget"},
      {"budget_s = 0", "--budget"},
      {"budget_s = 0.0004", "--budget"},
      {"budget_s = 1e300", "--budget"},
      {"until_unix_s = 9223372036854775807", "not a valid date"},
      {"jobs = 100000", "--jobs"},
      {"compile_timeout_s = 1e300", "--compile-timeout"},
      {"kernel_timeout_s = -1", "--kernel-timeout"},
      {"compile_memory_mib = 9223372036854775807", "--compile-memory"},
      {"min_samples = 6", "--min-samples 6 is more"},
      {"max_samples = 99999999999", "--max-samples"},
      {"half_width = 0", "--precision"},
      {"finalists = 0", "--finalists"},
      {"rounds = -3", "--rounds"},
      {"preheat_s = -1", "--preheat"},
      {"max_temperature_c = 1000", "--max-temperature"},
      {"drift = 9e999", "--drift"},
      {"pause_limit_s = 0", "--pause-limit"},
  };
  const std::string original = bytes_of(database_);
  for (const auto& [assignment, part] : nonsense) {
    change(fmt::format("PRAGMA journal_mode = DELETE; UPDATE plans SET {}", assignment));
    const ProgramResult result = resume();
    EXPECT_EQ(result.exit_code, 1) << assignment << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    for (const std::string& wanted : {session, std::string(part)}) {
      EXPECT_NE(result.error.find(wanted), std::string::npos) << assignment << ": " << result.error;
    }
    std::filesystem::remove(database_ + "-wal");
    write_bytes(database_, original);
  }
  for (const auto& [sql, part] :
       {std::pair("UPDATE problems SET dimensions = '{\"N\":-4}'", "does not fit"),
        std::pair("UPDATE problems SET dimensions = '{'", "column dimensions"),
        std::pair("UPDATE plan_problems SET calls = 9e999", "is called"),
        std::pair("INSERT INTO plan_calls SELECT run_uuid, 0, 'token', -1 FROM plans", "is called"),
        std::pair("UPDATE plan_kernels SET kernel = '../../etc/passwd'", "a kernel's name"),
        std::pair("UPDATE plan_kernels SET kernel = ''", "a kernel's name"),
        std::pair("UPDATE plan_kernels SET kernel = '--log=/tmp/x'", "a kernel's name"),
        std::pair("UPDATE plan_kernels SET kernel = 'toy' || char(0) || 'x'", "a kernel's name"),
        std::pair("UPDATE problems SET kernel = 'other'", "which it does not name"),
        std::pair("DELETE FROM plan_kernels", "names no kernel"),
        std::pair("DELETE FROM plan_problems", "no problem")}) {
    change(std::string("PRAGMA journal_mode = DELETE;") + sql);
    expect_fault(resume(), 1, {part});
    std::filesystem::remove(database_ + "-wal");
    write_bytes(database_, original);
  }
  EXPECT_TRUE(stored().empty());
}

TEST_F(CliResumeTest, RunWithoutItsPlanIsNotResumedAndTheFileStaysAsItIs) {
  const std::string session = std::to_string(interrupted(toy_plan()));
  SQLite::Database(database_, SQLite::OPEN_READWRITE)
      .exec("DELETE FROM plan_problems; DELETE FROM plan_kernels; DELETE FROM plan_paths; DELETE FROM plans");
  expect_fault(resume(), 1,
               {"session " + session, "its plan is missing", "begin the same sweep again without --resume"});
  EXPECT_TRUE(json_of(run({"status", "--db", database_, "--json"}))["resume"].is_null());
}

}  // namespace
}  // namespace pascaline::testing
