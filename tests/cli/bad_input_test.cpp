#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/paths.hpp"
#include "tests/cli/program.hpp"

namespace pascaline::testing {
namespace {

class BadSpaceTest : public ProgramTest {
 protected:
  // The changed space is refused by file and place, and what was stored before stays.
  void expect_refused(const std::string& from, const std::string& to, const std::vector<std::string>& pieces) {
    ASSERT_EQ(sweep().code, 0);
    const int before = stored_trials();
    change_space(from, to);
    std::vector<std::string> all = pieces;
    all.emplace_back("toy.json:");
    EXPECT_TRUE(is_one_line_fault(sweep(), all));
    EXPECT_EQ(stored_trials(), before);
  }
};

TEST_F(BadSpaceTest, UnknownKey) { expect_refused("\"work\"", "\"wrok\"", {"unknown key 'wrok'"}); }

TEST_F(BadSpaceTest, UnknownNameInAnExpression) {
  expect_refused("ceil_div(N, BLOCK)", "ceil_div(N, BLOCKS)", {"/launch/grid/0", "unknown name 'BLOCKS'"});
}

TEST_F(BadSpaceTest, TypeSlip) {
  expect_refused("[32, 64, 128]", "\"32, 64, 128\"", {"/parameters/0/values", "expected an array"});
}

TEST_F(BadSpaceTest, ConstraintThatCannotBeParsed) {
  expect_refused("BLOCK <= device", "BLOCK <=* device", {"/constraints/0/require", "column 9"});
}

TEST_F(BadSpaceTest, ConstraintsThatLeaveNothing) {
  expect_refused("BLOCK <= device_max_threads_per_block", "BLOCK > 4096", {"/constraints", "no valid configuration"});
}

TEST_F(BadSpaceTest, ConstraintsThatLeaveNothingForThisShape) {
  expect_refused("BLOCK <= device_max_threads_per_block", "BLOCK * N < 0",
                 {"no configuration is valid", "a block has a limit"});
}

TEST_F(BadSpaceTest, DefaultOutsideItsList) {
  expect_refused("\"default\": 64", "\"default\": 65", {"/parameters/0/default", "65"});
}

TEST_F(BadSpaceTest, TruncatedFile) { expect_refused(", \"bytes\": \"8 * N\"}\n}", ", \"byt", {"line 13"}); }

using BadInputTest = ProgramTest;

TEST_F(BadInputTest, KernelThatDoesNotCompile) {
  write("toy.cu", read_file(path("toy.cu")) + "\nint broken = ;\n");
  const Outcome swept = sweep();
  EXPECT_TRUE(is_one_line_fault(swept, {"toy.cu:20", "error"}));  // the reference comes first
  const Outcome compiled =
      run({"compile", "--kernels", folder_.string(), "--spaces", folder_.string(), "-k", "toy", "--arch", "host"});
  EXPECT_EQ(compiled.code, 3);
  EXPECT_NE(compiled.out.find("compile_failed"), std::string::npos);
  EXPECT_NE(compiled.out.find("toy.cu:"), std::string::npos);
}

TEST_F(BadInputTest, ValueOutsideItsListOnTheCommandLine) {
  const Outcome outcome = run({"compile", "--kernels", folder_.string(), "--spaces", folder_.string(), "-k", "toy",
                               "--arch", "host", "--set", "BLOCK=48"});
  EXPECT_TRUE(is_one_line_fault(outcome, {"48", "BLOCK", "32, 64, 128"}));
}

TEST_F(BadInputTest, DatabaseThatIsNone) {
  write("tuned.db", "these are notes, not trials\n");
  EXPECT_TRUE(is_one_line_fault(sweep(), {database_}));
  EXPECT_EQ(read_file(database_), "these are notes, not trials\n");
}

TEST_F(BadInputTest, DatabaseOfANewerProgram) {
  ASSERT_EQ(sweep().code, 0);
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(database_.c_str(), &handle), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(handle, "PRAGMA user_version = 4711", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  EXPECT_TRUE(is_one_line_fault(sweep(), {database_, "newer"}));
  EXPECT_TRUE(is_one_line_fault(run({"show", "--db", database_}), {database_, "newer"}));
}

TEST_F(BadInputTest, TruncatedDatabase) {
  ASSERT_EQ(sweep().code, 0);
  std::filesystem::resize_file(database_, std::filesystem::file_size(database_) / 2);
  EXPECT_TRUE(is_one_line_fault(sweep(), {database_}));
}

TEST_F(BadInputTest, FolderOrNothingInPlaceOfADatabase) {
  EXPECT_TRUE(is_one_line_fault(run({"show", "--db", folder_.string()}), {folder_.string()}));
  EXPECT_TRUE(is_one_line_fault(run({"show", "--db", path("none.db")}), {"none.db"}));
}

TEST_F(BadInputTest, ReadOnlyDatabase) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "permissions do not bind root; the store's own tests drop them in a child";
  }
  ASSERT_EQ(sweep().code, 0);
  ::chmod(database_.c_str(), 0444);
  ::chmod(folder_.c_str(), 0555);
  const Outcome outcome = sweep();
  ::chmod(folder_.c_str(), 0755);
  EXPECT_EQ(outcome.code, 1);
}

TEST_F(BadInputTest, NoDiskSpace) {
  ASSERT_EQ(sweep().code, 0);
  const int before = stored_trials();
  const auto blocks = std::filesystem::file_size(database_) / 1024;
  // A process may not write beyond this size: what a full disk looks like to SQLite.
  const Outcome outcome = run({"sweep", "--kernels", folder_.string(), "--spaces", folder_.string(), "-k", "toy",
                               "--device", "host", "--db", database_, "--quiet", "--seed", "2", "--problem", "N=77"},
                              "trap '' XFSZ; ulimit -f " + std::to_string(blocks / 8));
  EXPECT_TRUE(is_one_line_fault(outcome, {}));
  EXPECT_GE(stored_trials(), before);
}

TEST_F(BadInputTest, NoGpu) {
  if (run({"devices"}).out.find("cuda:") == 0) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  EXPECT_TRUE(is_one_line_fault(run({"sweep", "--device", "cuda:0", "--db", database_}), {"no CUDA driver"}));
  EXPECT_FALSE(std::filesystem::exists(database_ + "-journal"));
}

TEST_F(BadInputTest, NvrtcWithoutTheTarget) {
  const Outcome outcome = run({"compile", "--arch", "sm_61", "--limit", "1", "--nvrtc", "99.9"});
  EXPECT_TRUE(is_one_line_fault(outcome, {"sm_61", "99.9"}));
  EXPECT_TRUE(is_one_line_fault(run({"compile", "--arch", "sm_13", "--limit", "1"}), {"sm_13"}));
  write("libnvrtc.so", "no library");
  const Outcome garbage =
      run({"compile", "--arch", "sm_61", "--limit", "1"}, "export PASCALINE_NVRTC=" + path("libnvrtc.so"));
  EXPECT_TRUE(is_one_line_fault(garbage, {"libnvrtc.so"}));
}

TEST_F(BadInputTest, ShapesThatDoNotFit) {
  EXPECT_TRUE(is_one_line_fault(sweep({"--problem", "N=abc"}), {"N", "abc"}));
  EXPECT_TRUE(is_one_line_fault(sweep({"--problem", "N=0"}), {"N", "0"}));
  EXPECT_TRUE(is_one_line_fault(sweep({"--problem", "M=3"}), {"N"}));
  EXPECT_TRUE(is_one_line_fault(sweep({"--problem", "N"}), {"NAME=value"}));
  EXPECT_TRUE(is_one_line_fault(run({"compile", "-k", "no/such"}), {"no/such"}));
  EXPECT_TRUE(is_one_line_fault(run({"compile", "-k", "missing"}), {"missing.json"}));
}

TEST_F(BadInputTest, WrongCommandLineIsUsage) {
  EXPECT_EQ(run({"frobnicate"}).code, 2);
  EXPECT_EQ(run({"sweep", "--trials", "many"}).code, 2);
  EXPECT_EQ(run({}).code, 2);
}

}  // namespace
}  // namespace pascaline::testing
