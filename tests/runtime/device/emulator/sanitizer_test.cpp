#include "runtime/device/emulator/sanitized_run.hpp"
#include "runtime/device/emulator/sanitizer_hooks.hpp"
#include "support.hpp"

namespace pascaline::testing {
namespace {

SanitizedRun run_child(const std::string& function, int index) {
  return run_sanitized(compiler(), {SANITIZED_CHILD, function, std::to_string(index)}, std::chrono::minutes(2));
}

struct Fault {
  const char* function;
  int index;
  const char* kind;
  const char* access;
  const char* location;
};

class EmulatorSanitizer : public ::testing::TestWithParam<Fault> {};

TEST_P(EmulatorSanitizer, CatchesAnAccessOneElementBeyond) {
  const Fault& fault = GetParam();
  const SanitizedRun run = run_child(fault.function, fault.index);
  ASSERT_TRUE(run.report) << run.output;
  EXPECT_EQ(run.exit_code, kSanitizerExitCode);
  EXPECT_EQ(run.report->kind, fault.kind) << run.output;
  EXPECT_EQ(run.report->access, fault.access) << run.output;
  EXPECT_EQ(run.report->location, fault.location) << run.output;
  EXPECT_EQ(run.report->function.substr(0, run.report->function.find('(')), fault.function) << run.output;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, EmulatorSanitizer,
    ::testing::Values(Fault{"writes", 101, "use-after-poison", "WRITE of size 4", "sanitized.cu:31"},
                      Fault{"writes", -1, "use-after-poison", "WRITE of size 4", "sanitized.cu:31"},
                      Fault{"reads", 101, "use-after-poison", "READ of size 4", "sanitized.cu:36"},
                      Fault{"shared", 1, "global-buffer-overflow", "READ of size 4", "sanitized.cu:43"},
                      Fault{"dynamic", 1, "use-after-poison", "WRITE of size 4", "sanitized.cu:48"},
                      Fault{"atomic", 101, "use-after-poison", "WRITE of size 4", "sanitized.cu:52"}),
    [](const auto& test) { return std::string(test.param.function) + (test.param.index < 0 ? "Before" : "Behind"); });

TEST(EmulatorSanitizerRun, ACorrectKernelPasses) {
  const SanitizedRun run = run_child("correct", 0);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_FALSE(run.report);
  EXPECT_NE(run.output.find("result 21"), std::string::npos) << run.output;
}

TEST(EmulatorSanitizerRun, ADeadlockLeavesNoPoisonBehind) {
  const SanitizedRun run = run_child("deadlock", 0);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("barrier deadlock in block (0,0,0)"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("result 21"), std::string::npos) << run.output;
}

TEST(EmulatorSanitizerRun, GuardBandsAreStillChecked) {
  const SanitizedRun run = run_child("guards", 0);
  EXPECT_NE(run.output.find("intact 1 then 0 then 1"), std::string::npos) << run.output;
}

TEST(EmulatorSanitizerRun, SanitizedCodeIsRefusedWithoutTheRuntime) {
  if (sanitizer_hooks().present()) {
    GTEST_SKIP() << "this process has AddressSanitizer";
  }
  const auto device = open_emulated_device();
  const CompileResult result = compile(kernel_source("sanitized.cu"), "reads", true);
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_THROW((void)device->load(result.binary), EmulatorError);
}

TEST(SanitizerReport, IsReadFromTheOutput) {
  const auto report = parse_sanitizer_report(
      "noise\n==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6 at pc 0x7 bp 0x7 sp 0x7\n"
      "READ of size 8 at 0x6 thread T0\n    #0 0x7f01 in atomicAdd(int*, int) "
      "/x/runtime/device/shim/pascaline/atomics.h:41\n"
      "    #1 0x7f02 in k(int*, int) /x/my kernels/k.cu:12:9\n    #2 0x7f03  (/lib/libc.so.6+0x12)\n\n"
      "    #0 0x7f02 in other /x/other.cu:1\n");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, "heap-buffer-overflow");
  EXPECT_EQ(report->access, "READ of size 8");
  EXPECT_EQ(report->location, "k.cu:12");
  EXPECT_EQ(report->function, "k(int*, int)");
  EXPECT_FALSE(parse_sanitizer_report("all is well"));
}

}  // namespace
}  // namespace pascaline::testing
