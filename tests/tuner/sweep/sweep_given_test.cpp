#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "tests/tuner/sweep/sweep_fixture.hpp"

namespace pascaline::testing {
namespace {

/// Sweeps of the toy kernel with contents of its input from a file.
class SweepGivenTest : public SweepTest {
 protected:
  std::filesystem::path file_ = folder_ / "x.bin";

  void write_input(float value) const {
    const std::vector<float> numbers(1000, value);
    write_file_atomically(file_, {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
  }
};

TEST_F(SweepGivenTest, AFileThatChangesLeavesItsShapeOut) {
  space_ = make_space({kRight, kAlike, static_cast<Fault>(kAlike + 1)});
  write_input(1);
  SweepProblem wanted{space_.problem({{"N", "1000"}}), 1, ""};
  wanted.given.inputs = {{"x", file_}};
  wanted.problem.data = GivenData(wanted.given, BoundSpace(space_, wanted.problem, DeviceLimits())).hash();
  int trials = 0;
  events_.trial = [&](const Trial& trial, int, int, double, double) {
    EXPECT_EQ(trial.problem.data, wanted.problem.data);
    if (++trials == 1) {
      write_input(2);
    }
  };
  const SweepSummary summary = run_sweep({space_}, {wanted}, options_, events_, stop_, services_);
  ASSERT_EQ(summary.problems.left_out.size(), 1U);
  EXPECT_NE(summary.problems.left_out[0].find("x.bin: this file has changed since it was opened"), std::string::npos)
      << summary.problems.left_out[0];
  EXPECT_LT(trials, 9);
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    EXPECT_TRUE(trial.trial.status == TrialStatus::ok || trial.trial.status == TrialStatus::dropped)
        << trial.trial.reason;
  }
  expect_sound();
}

}  // namespace
}  // namespace pascaline::testing
