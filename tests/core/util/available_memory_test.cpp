#include "core/util/available_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace pascaline::testing {
namespace {

class AvailableMemoryTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  [[nodiscard]] std::uint64_t available() const { return available_memory_bytes(folder_); }

  ~AvailableMemoryTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("available_memory_" + std::to_string(::getpid()));
};

TEST_F(AvailableMemoryTest, IsWhatTheMachineHas) {
  write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 3 kB\nMemAvailable: 500 kB\n");
  EXPECT_EQ(available(), 500U << 10);
  EXPECT_GT(available_memory_bytes(), 0U);
}

TEST_F(AvailableMemoryTest, IsNoMoreThanAControlGroupLeaves) {
  write("proc/meminfo", "MemAvailable: 500 kB\n");
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "1\n");
  EXPECT_EQ(available(), 500U << 10) << "without a limit";
  write("sys/fs/cgroup/outer/memory.max", "300000\n");
  write("sys/fs/cgroup/outer/memory.current", "200000\n");
  write("sys/fs/cgroup/outer/memory.stat", "anon 7\ninactive_file 50000\n");
  EXPECT_EQ(available(), 150'000U) << "caches of files can be had back";
  write("sys/fs/cgroup/outer/memory.current", "900000\n");
  EXPECT_EQ(available(), 0U);
}

TEST_F(AvailableMemoryTest, ReadsControlGroupsOfTheFirstVersion) {
  write("proc/meminfo", "MemAvailable: 500 kB\n");
  write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4096\n");
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "96\n");
  EXPECT_EQ(available(), 4000U);
}

}  // namespace
}  // namespace pascaline::testing
