#include "core/trial.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

TEST(TrialTest, StatusNamesRoundTrip) {
  ASSERT_EQ(trial_status_names().size(), kTrialStatuses);
  for (std::size_t i = 0; i < kTrialStatuses; ++i) {
    EXPECT_EQ(trial_status_from(trial_status_names()[i]), static_cast<TrialStatus>(i));
    EXPECT_EQ(name_of(static_cast<TrialStatus>(i)), trial_status_names()[i]);
  }
  EXPECT_EQ(name_of(TrialStatus::dropped), "dropped");
  EXPECT_EQ(name_of(TrialStatus::crashed), "crashed");
  EXPECT_FALSE(trial_status_from("fine").has_value());
  EXPECT_FALSE(trial_status_from("").has_value());
}

TEST(TrialTest, OkAndDroppedTrialsHaveATime) {
  for (std::size_t i = 0; i < kTrialStatuses; ++i) {
    const auto status = static_cast<TrialStatus>(i);
    EXPECT_EQ(has_time(status), status == TrialStatus::ok || status == TrialStatus::dropped) << name_of(status);
  }
}

TEST(TrialTest, StageNamesRoundTrip) {
  for (const TrialStage stage : {TrialStage::search, TrialStage::finals}) {
    EXPECT_EQ(trial_stage_from(name_of(stage)), stage);
  }
  EXPECT_FALSE(trial_stage_from("final").has_value());
}

}  // namespace
}  // namespace pascaline
