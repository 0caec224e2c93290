#pragma once

#include <gtest/gtest.h>

#include <string>

#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {

/// A store with a session begun on the example device.
class ReportFixture : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  std::int64_t session_ = begin_example_session(store_, context_);

  static Trial timed(std::int64_t tile, double median_us) {
    Trial trial = example_trial(tile);
    trial.time = TimeSummary{median_us, median_us * 0.9, median_us * 1.1, 30};
    return trial;
  }
  static Trial finalist(std::int64_t tile, double median_us) {
    Trial trial = timed(tile, median_us);
    trial.stage = TrialStage::finals;
    return trial;
  }
};

[[nodiscard]] inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

#define EXPECT_HOLDS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

}  // namespace pascaline::testing
