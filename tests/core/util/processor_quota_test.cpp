#include "core/util/processor_quota.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/util/worker_pool.hpp"

namespace pascaline {
namespace {

class ProcessorQuotaTest : public ::testing::Test {
 protected:
  std::filesystem::path root_;

  ProcessorQuotaTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pascaline_quota.XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~ProcessorQuotaTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::optional<double> quota() const { return processor_quota(root_); }
};

TEST_F(ProcessorQuotaTest, NoGroupOrNoLimitIsNone) {
  EXPECT_FALSE(quota().has_value());
  write("proc/self/cgroup", "0::/\n");
  EXPECT_FALSE(quota().has_value());
  for (const char* text : {"max 100000\n", "", "100000", "-1 100000", "x y", "100000 0"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(quota().has_value()) << text;
  }
}

TEST_F(ProcessorQuotaTest, TheLeastOfTheGroupsAroundCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
  write("sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(quota(), 0.2);
}

TEST_F(ProcessorQuotaTest, InAContainerTheRootIsItsGroup) {
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  write("sys/fs/cgroup/cpu.max", "1600000 100000\n");
  EXPECT_EQ(quota(), 16);
}

TEST_F(ProcessorQuotaTest, VersionOneHasAFileForEach) {
  write("proc/self/cgroup", "12:memory:/a\n4:cpu,cpuacct:/a\nnonsense\n1:cpuset:/b\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 4);
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(quota().has_value());
}

TEST_F(ProcessorQuotaTest, ThreadsAreNoMoreThanThat) {
  EXPECT_EQ(threads_within(64, std::nullopt), 64);
  EXPECT_EQ(threads_within(64, 16.0), 16);
  EXPECT_EQ(threads_within(64, 2.5), 3);
  EXPECT_EQ(threads_within(4, 16.0), 4);
  EXPECT_EQ(threads_within(4, 0.2), 1);
  EXPECT_EQ(threads_within(1000, 500.0), WorkerPool::kMaxThreads);
}

}  // namespace
}  // namespace pascaline
