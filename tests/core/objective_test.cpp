#include "core/objective.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

TEST(ObjectiveTest, NamesRoundTrip) {
  for (const Objective objective : kObjectives) {
    EXPECT_EQ(objective_from(name_of(objective)), objective);
  }
  EXPECT_EQ(name_of(Objective::edp), "edp");
  EXPECT_FALSE(objective_from("power").has_value());
  EXPECT_FALSE(objective_from("").has_value());
  EXPECT_FALSE(objective_from("Time").has_value());
}

TEST(ObjectiveTest, ValuesHaveUnits) {
  EXPECT_EQ(unit_of(Objective::energy), "mJ");
  EXPECT_EQ(unit_of(Objective::sustained), "us");
}

TEST(ObjectiveTest, InSentencesItIsWhatPeopleCallIt) {
  EXPECT_EQ(phrase_of(Objective::time), "time");
  EXPECT_EQ(phrase_of(Objective::energy), "energy");
  EXPECT_EQ(phrase_of(Objective::edp), "energy-delay product");
  EXPECT_EQ(phrase_of(Objective::sustained), "sustained time");
}

}  // namespace
}  // namespace pascaline
