#include "tuner/replay/recorded_domain.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/tuner/replay/recorded.hpp"

namespace pascaline::testing {
namespace {

TEST(RecordedDomainTest, IsWhatWasRecorded) {
  const RecordedDomain space(recorded_times({30, 0, 10, 20}, 5));
  EXPECT_EQ(space.domain().combinations(), 4) << "the failed one is part of the space";
  EXPECT_EQ(space.domain().axes().front().name, "X");
  EXPECT_EQ(space.times_us(), (std::vector<double>{10, 20, 30}));
  EXPECT_EQ(space.optimum_us(), 10);
  EXPECT_EQ(space.observation({3}).status, TrialStatus::ok);
  EXPECT_EQ(space.observation({3}).time_us, 20);
  EXPECT_EQ(space.observation({1}).status, TrialStatus::compile_failed);
  EXPECT_EQ(space.observation({1}).time_us, 0);
  EXPECT_EQ(space.trial({1}).cost_ms(), 5);
  EXPECT_THROW(std::ignore = space.trial({4}), std::out_of_range);
}

TEST(RecordedDomainTest, ConfigurationsNotRecordedAreNotOfTheSpace) {
  RecordedSpace bowl = recorded_bowl("bowl");
  std::erase_if(bowl.trials, [](const RecordedTrial& trial) { return trial.indices[0] == trial.indices[1]; });
  const RecordedDomain space(bowl);
  EXPECT_EQ(space.domain().combinations(), 448);
  EXPECT_FALSE(space.domain().contains({2, 2, 0}));
}

TEST(RecordedDomainTest, TimeOfAFailureIsNoTime) {
  RecordedSpace recorded = recorded_times({30, 20});
  recorded.trials[1].status = TrialStatus::wrong_result;
  const RecordedDomain space(recorded);
  EXPECT_EQ(space.optimum_us(), 30);
  EXPECT_EQ(space.observation({1}).time_us, 0);
}

TEST(RecordedDomainTest, NothingThatWorked) {
  try {
    const RecordedDomain space(recorded_times({0, 0}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the recorded space 'times' has no working configuration: there is nothing to find");
  }
  EXPECT_THROW(RecordedDomain(recorded_times({})), Error);
}

}  // namespace
}  // namespace pascaline::testing
