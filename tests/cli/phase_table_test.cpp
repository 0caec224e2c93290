#include "app/sweep/phase_table.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pascaline::testing {
namespace {

std::vector<PhaseTime> example_phases() {
  return {{"NVIDIA H200", "prompt", 56, 12000, 8000, 12, 0}, {"NVIDIA H200", "token", 10, 900, 600, 8, 2}};
}

TEST(PhaseTableTest, PhasesAndTheirSumAreRows) {
  EXPECT_EQ(phase_table(example_phases()),
            "model time, before (defaults) and after (winners), summed over the calls:\n"
            "phase   calls   before   after  speedup  problems\n"
            "prompt     56    12 ms    8 ms    1.50x        12\n"
            "token      10   900 us  600 us    1.50x   8 of 10\n"
            "all        66  12.9 ms  8.6 ms    1.50x\n"
            "problems that lack a winner or a default to compare it with are in no sum\n");
}

TEST(PhaseTableTest, NothingToShow) { EXPECT_EQ(phase_table({}), ""); }

TEST(PhaseTableTest, EachDeviceHasItsTable) {
  std::vector<PhaseTime> phases = example_phases();
  phases[1].device = "GTX 1080";
  const std::string text = phase_table(phases);
  EXPECT_NE(text.find("model time on NVIDIA H200, before"), std::string::npos) << text;
  EXPECT_NE(text.find("model time on GTX 1080, before"), std::string::npos) << text;
  EXPECT_EQ(text.find("all "), std::string::npos) << "of one phase there is no sum";
}

TEST(PhaseTableTest, PhaseWithoutTimesHasNone) {
  std::vector<PhaseTime> phases{{"host", "image", 3, 0, 0, 0, 2}};
  EXPECT_NE(phase_table(phases).find("image      3       -      -        -    0 of 2\n"), std::string::npos)
      << phase_table(phases);
  const nlohmann::json json = phases_json(phases);
  EXPECT_TRUE(json.at(0).at("speedup").is_null());
  EXPECT_EQ(json.at(0).at("without_times"), 2);
  EXPECT_EQ(phases_json(example_phases()).at(0).at("speedup"), 1.5);
}

}  // namespace
}  // namespace pascaline::testing
