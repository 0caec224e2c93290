#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/db/fixtures.hpp"
#include "tests/db/process_fixture.hpp"
#include "tests/tuner/program.hpp"

namespace pascaline::testing {

/// A C++ compiler for the emulated device that never ends, with a stage in a process group of its own. All its
/// processes hold a pipe open.
class EndlessCompiler {
 public:
  explicit EndlessCompiler(const TemporaryFolder& folder) : folder_(folder.path()), pipe_(folder_ / "held") {
    EXPECT_EQ(::mkfifo(pipe_.c_str(), 0600), 0);
    std::filesystem::create_directory(folder_ / "tmp");
    const std::filesystem::path compiler = folder_ / "endless++";
    write_bytes(compiler, "#!/bin/bash\ncase \"$*\" in\n  *-shared*) exec 9>" + pipe_.string() +
                              "; set -m; sleep 1000 & wait ;;\nesac\nexec g++ \"$@\"\n");
    std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
    setting_.environment = {{"PASCALINE_HOST_CXX", compiler.string()},
                            {"PASCALINE_CACHE_DIR", (folder_ / "cold").string()},
                            {"TMPDIR", (folder_ / "tmp").string()}};
  }

  /// Sends the program the signal once its compiler runs. It must end with that code, soon and with all that it has
  /// started, and, unless it was killed, without its temporary folders.
  void interrupt(const std::vector<std::string>& words, int signal, int exit_code) const {
    const int program = start_program(folder_, words, setting_);
    const int held = ::open(pipe_.c_str(), O_RDONLY | O_CLOEXEC);  // waits for the compiler
    ASSERT_GE(held, 0);
    const auto asked = std::chrono::steady_clock::now();
    ::kill(program, signal);
    EXPECT_EQ(wait_child(program), exit_code) << bytes_of(folder_ / "stderr");
    EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(5));
    EXPECT_EQ(bytes_of(folder_ / "stderr").find("cannot run on"), std::string::npos) << "it went on without the kernel";
    EXPECT_TRUE(signal == SIGKILL || left_over().empty()) << left_over();
    char block[16];
    EXPECT_EQ(::read(held, block, sizeof block), 0) << "its last process has ended";
    ::close(held);
  }

 private:
  // Temporary files and folders that are still there.
  [[nodiscard]] std::string left_over() const {
    std::string found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().filename().string().find(".part-") != std::string::npos ||
          entry.path().parent_path() == folder_ / "tmp") {
        found += entry.path().string() + "\n";
      }
    }
    return found;
  }

  std::filesystem::path folder_;
  std::filesystem::path pipe_;
  ProgramSetting setting_;
};

}  // namespace pascaline::testing
