#include <gtest/gtest.h>

#include "core/util/paths.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/problem_memory.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline::testing {
namespace {

constexpr double kMegabyte = 1 << 20;

/// gather, whose table is far larger than the machine's memory.
class MeasuredShapeTest : public ::testing::Test {
 protected:
  const Space space_ = Space::load(data_folder("search_spaces") / "gather.json");
  RelayDevice device_;

  [[nodiscard]] static DeviceLimits limits() { return *limits_of_architecture("sm_61"); }
  [[nodiscard]] BoundSpace bound(const std::string& tokens, const std::string& type = "float32",
                                 const std::string& vocabulary = "2000000000") const {
    return {space_,
            space_.problem({{"TOKENS", tokens}, {"WIDTH", "4096"}, {"VOCABULARY", vocabulary}, {"TABLE", type}}),
            limits()};
  }
  [[nodiscard]] Compiled compile(const CompileRequest& request) const {
    Compiled compiled;
    compiled.result = CubinCache(test_cache()).get(Toolchain::find("emulator"), request);
    compiled.status = compiled.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
    return compiled;
  }
};

TEST_F(MeasuredShapeTest, ATableIsAsLargeAsCachesAndIndicesAskFor) {
  for (const char* type : {"float32", "float16", "bfloat16", "float16x", "q8_0", "q4_k", "int8_row"}) {
    for (const char* tokens : {"1", "512"}) {
      const BoundSpace whole = bound(tokens, type);
      const BoundSpace measured = whole.measured();
      const std::int64_t rows = measured.problem().dimension("VOCABULARY");
      const double table = static_cast<double>(measured.buffer_bytes(space_.arguments[0], untuned_config(measured)));
      EXPECT_GE(table, static_cast<double>(4 * limits().l2_bytes)) << type;
      EXPECT_GE(rows, 8 * whole.problem().dimension("TOKENS")) << type;
      EXPECT_LE(problem_memory(measured).buffers, 160 * kMegabyte) << type;
      EXPECT_EQ(measured.problem().dimension("TOKENS"), whole.problem().dimension("TOKENS"));
      EXPECT_EQ(measured.fill_range(space_.arguments[1]), std::pair(-1.0, static_cast<double>(rows) + 1))
          << "indices are drawn within it, and on both sides of it";
      EXPECT_EQ(measured.flops(), whole.flops());
      EXPECT_EQ(measured.bytes(), whole.bytes());
      EXPECT_EQ(measured.defines(whole.default_config()), whole.defines(whole.default_config()));
    }
  }
  EXPECT_EQ(bound("512", "float32", "100").measured().problem().dimension("VOCABULARY"), 100);
}

TEST_F(MeasuredShapeTest, AManyTimesLargerTableIsVerifiedAndTimedUnderItsOwnName) {
  const BoundSpace whole = bound("32");
  const Config config = untuned_config(whole);
  const KernelSource source = KernelSource::load(data_folder("kernel_templates") / "gather.cu", space_);
  const CompileRequest request = compile_request(whole, config, source, BinaryKind::host_object, "host");
  const Compiled compiled = compile(request);
  const Compiled reference = compile(reference_request_of(space_, request));
  ASSERT_TRUE(compiled.result.ok && reference.result.ok) << compiled.result.reason << reference.result.reason;
  DeviceMonitor monitor(device_, {.passive = true});
  TrialRunner runner(monitor, whole, ReferenceRun{reference.result.binary, config}, quick_measure(), 1);
  const Trial trial = runner.run(config, compiled, 0);
  EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
  EXPECT_EQ(trial.problem, whole.problem());
  EXPECT_TRUE(runner.weak_checks().empty());
  std::size_t largest = 0;
  for (const std::span<std::byte>& buffer : device_.allocated) {
    largest = std::max(largest, buffer.size());
  }
  EXPECT_LE(static_cast<double>(largest), 160 * kMegabyte);
  TrialRunner whole_runner(monitor, whole, ReferenceRun{reference.result.binary, config}, quick_measure(), 1);
  whole_runner.run_whole_shape();
  EXPECT_THROW(whole_runner.prepare(), OutOfMemoryError);
}

}  // namespace
}  // namespace pascaline::testing
