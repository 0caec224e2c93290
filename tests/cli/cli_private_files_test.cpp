#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

// Files that others could read, change or put in the way.
class CliPrivateFilesTest : public CliTest {
 protected:
  const fs::path cache_ = folder_ / "cache";

  ~CliPrivateFilesTest() override { ::umask(before_); }
  [[nodiscard]] ProgramResult compile(const std::vector<std::pair<std::string, std::string>>& more = {},
                                      bool unprivileged = false) const {
    ProgramSetting setting{{{"PASCALINE_CACHE_DIR", cache_.string()}}, {}, unprivileged};
    setting.environment.insert(setting.environment.end(), more.begin(), more.end());
    return run(on_toy("compile", {"--arch", "emulator"}), setting);
  }
  // Whatever was shown before it, the command ends with a line that says what is wrong.
  void expect_refused(const std::vector<std::string>& parts) const {
    ProgramResult result = compile();
    result.out.clear();
    expect_fault(result, 1, parts);
  }
  [[nodiscard]] fs::path entry() const {
    for (const auto& file : fs::recursive_directory_iterator(cache_)) {
      if (file.is_regular_file()) {
        return file.path();
      }
    }
    return {};
  }

 private:
  const mode_t before_ = ::umask(022);
};

TEST_F(CliPrivateFilesTest, TheCacheIsTheUsersOnlyWhateverTheUmask) {
  ::umask(0);
  ASSERT_EQ(compile().exit_code, 0);
  EXPECT_EQ(mode_of(cache_), 0700U);
  EXPECT_EQ(mode_of(entry().parent_path()), 0700U);
  EXPECT_EQ(mode_of(entry()), 0600U);
  EXPECT_EQ(compile().exit_code, 0);
}

TEST_F(CliPrivateFilesTest, ACacheThatOthersCanWriteIsRefused) {
  ASSERT_EQ(compile().exit_code, 0);
  for (const fs::path& path : {cache_, entry().parent_path(), entry()}) {
    const mode_t before = mode_of(path);
    for (const mode_t mode : {0777U, 0720U, 01777U}) {
      fs::permissions(path, fs::perms{mode});
      expect_refused({path.string(), "can write it", "PASCALINE_CACHE_DIR"});
    }
    fs::permissions(path, fs::perms{before});
    ASSERT_EQ(compile().exit_code, 0);
  }
  fs::permissions(folder_.path(), fs::perms{01777});
  EXPECT_EQ(compile().exit_code, 0) << "a folder of the user's own in one such as /tmp";
}

TEST_F(CliPrivateFilesTest, ACacheOfSomebodyElseIsRefused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give files to another user";
  }
  ASSERT_EQ(compile().exit_code, 0);
  for (const fs::path& path : {cache_, entry().parent_path(), entry()}) {
    ASSERT_EQ(::chown(path.c_str(), 4321, 4321), 0);
    expect_refused({path.string(), "user 4321 owns it", "PASCALINE_CACHE_DIR"});
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
}

TEST_F(CliPrivateFilesTest, ACacheThatCannotBeWrittenCostsTimeOnly) {
  fs::permissions(folder_.path(), fs::perms{0755});
  const std::vector<std::pair<std::string, std::string>> nowhere{{"PASCALINE_CACHE_DIR", "/proc/none/cache"}};
  const ProgramResult result = compile(nowhere);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("not cached"), std::string::npos) << result.error;
  for (const auto& variable : {std::pair{"PASCALINE_CACHE_DIR", "/proc/none/cache"}, {"HOME", "/proc/none"}}) {
    ProgramSetting setting{{{"PASCALINE_CACHE_DIR", ""}}};
    setting.environment.emplace_back(variable);
    const ProgramResult checked = run(on_toy("check", {"--problem", "N=100"}), setting);
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
  }
}

TEST_F(CliPrivateFilesTest, CheckTellsAFaultOfTheMachineFromOneOfTheKernel) {
  fs::create_directories(cache_);
  fs::permissions(cache_, fs::perms{0777});
  expect_fault(run(on_toy("check", {"--problem", "N=100"}), {{{"PASCALINE_CACHE_DIR", cache_.string()}}}), 1,
               {cache_.string(), "everybody can write it"});
}

TEST_F(CliPrivateFilesTest, ExportedRowsTouchNothingBesideTheirFile) {
  tune();
  write_bytes(folder_ / "precious", "precious");
  const fs::path rows = folder_ / "rows";
  fs::create_symlink(folder_ / "precious", folder_ / "rows.part");
  write_bytes(folder_ / "other.part", "mine");
  ::umask(077);
  for (const char* name : {"rows", "other"}) {
    const ProgramResult result =
        run({"export", "--format", "rows", "--db", database_, "-o", (folder_ / name).string()});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(mode_of(folder_ / name), 0600U);
  }
  EXPECT_EQ(bytes_of(folder_ / "precious"), "precious");
  EXPECT_EQ(bytes_of(folder_ / "other.part"), "mine");
  fs::create_symlink("target", folder_ / "link");
  EXPECT_EQ(run({"export", "--format", "rows", "--db", database_, "-o", (folder_ / "link").string()}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(bytes_of(folder_ / "target"), bytes_of(rows));
}

TEST_F(CliPrivateFilesTest, WhatAKilledCompilationLeavesIsRemovedAtTheNextStart) {
  const fs::path temporary = folder_ / "tmp";
  fs::create_directories(temporary);
  const fs::path compiler = folder_ / "slow";
  write_bytes(
      compiler,
      "#!/bin/sh\ncase \"$*\" in --version | *-E*) exec c++ \"$@\" ;; esac\n: > \"$TMPDIR/begun\"\nexec sleep 600\n");
  fs::permissions(compiler, fs::perms{0755});
  const std::vector<std::pair<std::string, std::string>> environment{{"TMPDIR", temporary.string()},
                                                                     {"PASCALINE_HOST_CXX", compiler.string()},
                                                                     {"PASCALINE_CACHE_DIR", cache_.string()}};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto has_begun = [&] {
    for (const auto& file : fs::recursive_directory_iterator(temporary)) {
      if (file.path().filename() == "begun") {
        return true;
      }
    }
    return false;
  };
  const int program = start_program(folder_.path(), on_toy("compile", {"--arch", "emulator"}), {environment});
  while (!has_begun() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(has_begun());
  ::kill(program, SIGKILL);
  int status = 0;
  ::waitpid(program, &status, 0);
  EXPECT_FALSE(fs::is_empty(temporary));
  // Its workers end by themselves; until then the folder has an owner.
  while (!fs::is_empty(temporary) && std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(run({"kernels"}, {environment}).exit_code, 0);
  }
  EXPECT_TRUE(fs::is_empty(temporary));
}

}  // namespace
}  // namespace pascaline::testing
