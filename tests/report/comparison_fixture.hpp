#pragma once

#include <gtest/gtest.h>

#include <cstddef>

#include "report/comparison.hpp"
#include "tests/report/made_database.hpp"

namespace pascaline::testing {

[[nodiscard]] inline std::size_t count_of_verdict(const ReportComparison& comparison, Verdict verdict) {
  return comparison.counts[static_cast<std::size_t>(verdict)];
}

/// Two databases, the older one called b.
class ComparisonFixture : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  MadeDatabase a_{folder_ / "a.db"};
  MadeDatabase b_{folder_ / "b.db"};

  [[nodiscard]] ReportComparison compared(const ReportOptions& options = {}) const {
    return compare({&a_.store}, {&b_.store}, options);
  }
  /// The one row that there must be.
  [[nodiscard]] ComparisonRow only_row() const {
    const ReportComparison comparison = compared();
    EXPECT_EQ(comparison.rows.size(), 1U);
    return comparison.rows.empty() ? ComparisonRow{} : comparison.rows.front();
  }
};

}  // namespace pascaline::testing
