#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

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
  /// from a sweep, a large one is made anew after four times as long as it took at the earliest. Throws as
  /// `gather_report`.
  [[nodiscard]] std::shared_ptr<const Made> get();

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path database_;
  ReportOptions options_;
  std::mutex mutex_;
  std::shared_ptr<const Made> made_;
  std::string state_;  ///< of the database's files when it was made
  Clock::time_point not_before_{};
};

}  // namespace pascaline
