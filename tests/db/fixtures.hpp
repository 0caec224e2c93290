#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/store.hpp"
#include "db/sweep_plan.hpp"

namespace pascaline::testing {

/// A folder of its own for a test, removed with it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& below = std::filesystem::temp_directory_path());
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// Where databases are written without waiting for a disk, and programs may not be allowed to start; the usual place
/// where there is none.
[[nodiscard]] std::filesystem::path memory_folder();

[[nodiscard]] DeviceRow example_device();
[[nodiscard]] ToolkitRow example_toolkit();
[[nodiscard]] Problem example_problem(std::int64_t m = 512);
[[nodiscard]] Config example_config(std::int64_t tile);
/// A trial with every field set; `ok` with 30 samples.
[[nodiscard]] Trial example_trial(std::int64_t tile);
/// A trial whose numbers and texts all differ, from each other and from those that a trial has by default.
[[nodiscard]] Trial distinct_trial();
[[nodiscard]] Trial failed_trial(std::int64_t tile, TrialStatus status, const std::string& reason);

/// Rows that a trial of `example_problem(m)` hangs on.
[[nodiscard]] ContextIds example_context(Store& store, std::int64_t m = 512);
/// A plan of the example's problem, which must be stored to store it.
[[nodiscard]] SweepPlan example_plan();
[[nodiscard]] std::int64_t begin_example_session(Store& store, const ContextIds& context);

/// "name: value" of everything that `for_each_field` visits.
[[nodiscard]] std::vector<std::string> fields_of(const Trial& trial);

/// Fails the test where they differ; samples are not looked at.
void expect_equal(const Trial& a, const Trial& b);
void expect_equal(const std::optional<TimeSummary>& a, const std::optional<TimeSummary>& b);

/// Message of the StoreError that `work` must throw; a failure of the test if it does not.
[[nodiscard]] std::string store_error(const std::function<void()>& work);

/// Runs `work` in a child process, which then exits with 0 (1 if it throws, its message on stderr).
[[nodiscard]] int fork_child(const std::function<void()>& work);
/// Waits for the child; its exit code, or 128 + signal.
[[nodiscard]] int wait_child(int child);

[[nodiscard]] std::string bytes_of(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, const std::string& bytes);

/// Throws `what` unless the condition holds; for work in a child, where a failed expectation would go unnoticed.
void require(bool condition, const char* what);

}  // namespace pascaline::testing
