#include "tuner/sweep/code_judge.hpp"

#include <gtest/gtest.h>

#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

TEST(CodeJudgeTest, OnlyWhatIsSlowerAtBothEndsOfItsEstimateCannotWin) {
  CodeRange next;
  CodeJudge judge([&](const Config&, const Binary&) { return std::optional(next); });
  const auto take = [&](std::int64_t block, CodeRange range) {
    next = range;
    judge.take(toy_config(block), {});
  };
  take(32, {10, 20});
  EXPECT_FALSE(judge.cannot_win(toy_config(32))) << "nothing was measured";
  judge.set_fastest(toy_config(32), 300);
  take(64, {30, 29});
  EXPECT_FALSE(judge.cannot_win(toy_config(64))) << "1.45 times at one end";
  take(128, {20, 40});
  const auto slow = judge.cannot_win(toy_config(128));
  ASSERT_TRUE(slow);
  EXPECT_NEAR(slow->expected_us, 600, 1e-9);
  EXPECT_NE(slow->reason.find("2 times as long"), std::string::npos) << slow->reason;
  EXPECT_FALSE(judge.cannot_win(toy_config(256))) << "whose code nobody has seen";
  EXPECT_EQ(judge.middle_us(toy_config(256)), 0);
  EXPECT_NEAR(judge.middle_us(toy_config(128)), 28.28, 0.01);
  judge.set_fastest(toy_config(256), 100);
  EXPECT_FALSE(judge.cannot_win(toy_config(128))) << "there is no estimate of the fastest";
}

TEST(CodeJudgeTest, CodeIsEstimatedForPascalAndMaxwellOnly) {
  const ToyBench bench(toy_json());
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.limits.sm_count = 10;
  const auto estimates = [&](int major, int minor) {
    info.architecture = "sm_" + std::to_string(10 * major + minor);
    return static_cast<bool>(code_estimator(info, {}, bench.bound()));
  };
  EXPECT_TRUE(estimates(6, 1));
  EXPECT_TRUE(estimates(5, 2));
  EXPECT_FALSE(estimates(7, 0));
  EXPECT_FALSE(estimates(9, 0));
  info.architecture = "sm_61";
  Binary ptx;
  ptx.kind = BinaryKind::ptx;
  ptx.code = "ptx";
  EXPECT_FALSE(code_estimator(info, {}, bench.bound())(bench.bound().default_config(), ptx));
  info.kind = DeviceKind::emulator;
  EXPECT_FALSE(estimates(6, 1));
}

}  // namespace
}  // namespace pascaline::testing
