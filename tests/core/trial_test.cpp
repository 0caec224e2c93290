#include "core/trial.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

TEST(TrialTest, StatusNamesRoundTrip) {
  for (const TrialStatus status :
       {TrialStatus::ok, TrialStatus::rejected, TrialStatus::compile_failed, TrialStatus::launch_failed,
        TrialStatus::wrong_result, TrialStatus::timed_out, TrialStatus::crashed}) {
    EXPECT_EQ(trial_status_from(name_of(status)), status);
  }
  EXPECT_EQ(name_of(TrialStatus::crashed), "crashed");
  EXPECT_FALSE(trial_status_from("fine").has_value());
  EXPECT_FALSE(trial_status_from("").has_value());
}

TEST(TrialTest, StageNamesRoundTrip) {
  for (const TrialStage stage : {TrialStage::search, TrialStage::finals}) {
    EXPECT_EQ(trial_stage_from(name_of(stage)), stage);
  }
  EXPECT_FALSE(trial_stage_from("final").has_value());
}

}  // namespace
}  // namespace pascaline
