#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

// Configuration to status and time.
std::map<std::string, std::pair<TrialStatus, double>> outcomes(const RecordedSpace& space) {
  std::map<std::string, std::pair<TrialStatus, double>> out;
  for (const RecordedTrial& trial : space.trials) {
    out.emplace(space.config(trial).text(), std::pair(trial.status, trial.time_us));
  }
  return out;
}

double total_cost_ms(const RecordedSpace& space) {
  return std::accumulate(space.trials.begin(), space.trials.end(), 0.0,
                         [](double sum, const RecordedTrial& trial) { return sum + trial.cost_ms(); });
}

TEST(SharedSpaces, OneSpaceIsTheSameInEveryFormat) {
  const auto folder = testing::shared_fixture("search");
  if (!folder) {
    GTEST_SKIP() << "PASCALINE_SHARED_FIXTURES names no folder with recorded spaces: the same space in three formats";
  }
  const RecordedSpace cache = read_recorded_space(*folder / "kernel_tuner_cache/convolution_milo_A4000.json.gz");
  const RecordedSpace results = read_recorded_space(*folder / "kernel_tuner_cache/convolution_milo_A4000_T4.json.gz");
  const RecordedSpace table = read_recorded_space(*folder / "spaces/convolution_milo__A4000.csv.gz");
  EXPECT_EQ(cache.device, "NVIDIA RTX A4000");
  EXPECT_EQ(cache.trials.size(), 4362U);
  EXPECT_EQ(outcomes(cache), outcomes(results));
  EXPECT_EQ(outcomes(cache), outcomes(table));
  EXPECT_EQ(cache.parameters.size(), 10U);
  EXPECT_EQ(std::count_if(cache.trials.begin(), cache.trials.end(),
                          [](const RecordedTrial& trial) { return trial.status == TrialStatus::ok; }),
            4201);
  EXPECT_NEAR(total_cost_ms(cache), total_cost_ms(table), 10);  // of the table's rounded costs
}

TEST(SharedSpaces, EveryRecordedTableIsRead) {
  const auto folder = testing::shared_fixture("search/spaces");
  if (!folder) {
    GTEST_SKIP() << "PASCALINE_SHARED_FIXTURES names no folder with recorded spaces: their tables";
  }
  std::size_t trials = 0;
  for (const auto& file : std::filesystem::directory_iterator(*folder)) {
    const RecordedSpace space = read_recorded_space(file.path());
    EXPECT_FALSE(space.parameters.empty()) << file.path();
    trials += space.trials.size();
  }
  EXPECT_GT(trials, 10'000U);
}

}  // namespace
}  // namespace pascaline
