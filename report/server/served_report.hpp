#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "report/report.hpp"

namespace pascaline {

/// The report of a database that may grow, kept until the database has changed. Any thread may ask.
class ServedReport {
 public:
  /// A report as it was made.
  struct Made {
    std::string json;
    std::string page;
    std::string tag;  ///< differs for other contents; a quoted ETag
  };

  ServedReport(std::filesystem::path database, ReportOptions options);

  /// The last report, or a new one if the database has changed since. So that making reports does not keep a processor
  /// from a sweep, a large one is made again after four times as long as it took at the earliest. While one is
  /// being made, which waits for a database that is locked, other callers get the last. Throws as `gather_report`.
  [[nodiscard]] std::shared_ptr<const Made> get();

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::shared_ptr<const Made> last() const;
  std::shared_ptr<const Made> make(const std::string& state);

  std::filesystem::path database_;
  ReportOptions options_;
  std::mutex making_;          ///< held while a report is made; guards all but `made_`
  mutable std::mutex taking_;  ///< guards `made_`
  std::shared_ptr<const Made> made_;
  std::string state_;                ///< of the database's files when it was made
  std::vector<std::int64_t> alive_;  ///< sessions that ran then; one that is killed changes no file
  Clock::time_point not_before_{};
};

}  // namespace pascaline
