#include "tuner/sweep/sweep_task.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

TaskState searching_state() {
  TaskState state;
  state.take();
  return state;
}

TaskState gathering_state() {
  TaskState state = searching_state();
  state.gather();
  return state;
}

TaskState finals_state() {
  TaskState state = gathering_state();
  state.compare();
  return state;
}

TaskState done_state() {
  TaskState state;
  state.finish();
  return state;
}

TaskState left_out_state() {
  TaskState state = searching_state();
  state.leave_out("no room");
  return state;
}

TEST(TaskStateTest, GoesFromWaitingToFinalsAndBack) {
  TaskState state;
  EXPECT_EQ(state.stage(), TaskStage::waiting);
  EXPECT_FALSE(state.taken() || state.over());
  state.take();
  EXPECT_EQ(state.stage(), TaskStage::searching);
  state.gather();
  EXPECT_EQ(state.stage(), TaskStage::gathering);
  state.compare();
  EXPECT_EQ(state.stage(), TaskStage::finals);
  EXPECT_TRUE(state.taken());
  state.gather();  // again, with another baseline
  EXPECT_EQ(state.stage(), TaskStage::gathering);
  state.release();
  EXPECT_EQ(state.stage(), TaskStage::waiting);
  state.take();
  state.finish();
  EXPECT_TRUE(state.over());
  EXPECT_FALSE(state.taken());
  EXPECT_EQ(left_out_state().why_left_out(), "no room");
  EXPECT_TRUE(left_out_state().over());
}

TEST(TaskStateTest, ReservedTaskIsOpenedBeforeADeviceTakesIt) {
  TaskState state(TaskStage::reserved);
  EXPECT_FALSE(state.taken() || state.over());
  EXPECT_THROW(state.take(), Error);
  state.open();
  EXPECT_EQ(state.stage(), TaskStage::waiting);
  EXPECT_THROW(state.open(), Error) << "it is open already";
}

TEST(TaskStateTest, WhatDoesNotLeadAwayFromAStageIsAFault) {
  const std::vector<std::function<void(TaskState&)>> transitions{
      [](TaskState& state) { state.take(); },    [](TaskState& state) { state.gather(); },
      [](TaskState& state) { state.compare(); }, [](TaskState& state) { state.release(); },
      [](TaskState& state) { state.finish(); },  [](TaskState& state) { state.leave_out("x"); }};
  // Per stage: take, gather, compare, release, finish, leave_out.
  const std::vector<std::pair<TaskState, std::vector<bool>>> allowed{
      {TaskState(TaskStage::reserved), {false, false, false, false, false, false}},
      {TaskState(), {true, false, false, false, true, false}},
      {searching_state(), {false, true, false, true, true, true}},
      {gathering_state(), {false, false, true, true, true, true}},
      {finals_state(), {false, true, false, true, true, true}},
      {done_state(), {false, false, false, false, false, false}},
      {left_out_state(), {false, false, false, false, false, false}}};
  for (const auto& [from, ways] : allowed) {
    for (std::size_t i = 0; i < transitions.size(); ++i) {
      TaskState state = from;
      bool went = true;
      try {
        transitions[i](state);
      } catch (const Error& error) {
        went = false;
        EXPECT_NE(std::string(error.what()).find(name_of(from.stage())), std::string::npos) << error.what();
        EXPECT_EQ(state.stage(), from.stage()) << "it stays where it was";
      }
      EXPECT_EQ(went, ways[i]) << name_of(from.stage()) << ", transition " << i;
    }
  }
}

}  // namespace
}  // namespace pascaline::testing
