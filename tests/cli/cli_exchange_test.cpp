#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "db/exchange/read.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliExchangeTest : public CliTest {};

// Every space that pascaline.import_t1 made of a T1 input (tests/python/import_t1_test.py) can be read.
TEST_F(CliExchangeTest, SpacesMadeOfT1InputsAreRead) {
  const fs::path made = PASCALINE_TEST_T1;
  EXPECT_EQ(Space::load(made / "scale.json").general_default().text(), "ITEMS=2 block_size_x=32 wrong=0");
  EXPECT_EQ(Space::load(made / "fills.json").arguments.size(), 7U);
  EXPECT_EQ(Space::load(made / "stencil.json").parameters.size(), 5U);
  EXPECT_EQ(Space::load(made / "conditions.json").constraints.size(), 50U);
}

TEST_F(CliExchangeTest, ASpaceMadeOfAT1InputIsSweptAndItsResultsExported) {
  const std::string made = PASCALINE_TEST_T1;
  const ProgramResult swept =
      run({"sweep",         "--kernels", made,       "--spaces", made, "--kernel",     "scale",         "--device",
           "emulator",      "--db",      database_,  "--jobs",   "2",  "--warm-cache", "--min-samples", "3",
           "--max-samples", "5",         "--rounds", "2"});
  ASSERT_EQ(swept.exit_code, 0) << swept.error;
  for (const char* format : {"t4", "csv"}) {
    const ProgramResult exported =
        run({"export", "--db", database_, "--format", format, "-o", (folder_ / format).string()});
    ASSERT_EQ(exported.exit_code, 0) << exported.error;
    const RecordedSpace recorded = read_recorded_space(folder_ / format);
    ASSERT_EQ(recorded.trials.size(), 4U);
    for (const RecordedTrial& trial : recorded.trials) {
      const bool wrong = recorded.config(trial).integer("wrong") != 0;
      EXPECT_EQ(trial.status, wrong ? TrialStatus::wrong_result : TrialStatus::ok);
    }
    expect_fault(run({"export", "--db", database_, "--format", format, "--kernel", "other"}), 1,
                 {database_, "no such trials"});
  }
  const std::string new_folder = (folder_ / "results").string() + "/";
  ASSERT_EQ(run({"export", "--db", database_, "--format", "t4", "-o", new_folder}).exit_code, 0);
  EXPECT_EQ(read_recorded_space(std::filesystem::directory_iterator(new_folder)->path()).trials.size(), 4U);
}

TEST_F(CliExchangeTest, FilesNeverReachTheTerminalRaw) {
  const std::string heading = "x,time_ms,status,eval_cost_ms\n";
  write_bytes(folder_ / "failed.csv", heading + "1,,compile,1\n");
  expect_fault(run({"replay", (folder_ / "failed.csv").string()}), 1, {"failed.csv", "worked"});
  write_bytes(folder_ / "twice.csv", "\x1b[31m,\x1b[31m," + heading + "1,2,3,1,ok,1\n");
  const ProgramResult refused = run({"replay", (folder_ / "twice.csv").string()});
  expect_fault(refused, 1, {"twice.csv", "is a duplicate"});
  EXPECT_EQ(refused.error.find('\x1b'), std::string::npos);
  const std::string odd = (folder_ / "a\x1b[31m\xff.csv").string();
  write_bytes(odd, heading + "1,1,ok,1\n2,2,ok,1\n3,1.5,ok,1\n");
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}}) {
    std::vector<std::string> words{"replay", odd, "--searcher", "random", "--repeats", "2", "--evaluations", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult replayed = run(words);
    EXPECT_EQ(replayed.exit_code, 0) << replayed.error;
    EXPECT_EQ(replayed.out.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace pascaline::testing
