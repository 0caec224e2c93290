#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/agreement.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline::testing {
namespace {

/// A kernel `own(const float* x, OUT* out, OUT* scratch, int n)` whose body is given, for each thread `i` of N = 64;
/// results are compared with its default's, BLOCK = 32.
class OwnKernel {
 public:
  explicit OwnKernel(const std::string& body, const std::string& type = "float32", const nlohmann::json& change = {})
      : space_(Space::parse(json_of(type, change).dump(), "own.json")),
        device_(open_device("emulator")),
        bound_(space_, space_.problem({{"N", "64"}}), device_->info().limits) {
    const std::string out = type == "float32"   ? "float"
                            : type == "float64" ? "double"
                            : type == "int8"    ? "signed char"
                            : type == "uint8"   ? "unsigned char"
                            : type == "float16" ? "unsigned short"
                                                : "int";
    write_file_atomically(
        folder_ / "own.cu",
        "extern \"C\" __global__ void own(const float* x, " + out + "* out, " + out +
            "* scratch, int n) {\n  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) {\n" + body +
            "\n  }\n}\n"
            "extern \"C\" __global__ void naive(const float* x, double* out, void*, int n) {\n"
            "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (i < n / 2) out[i] = 2.0 * x[i];\n}\n"
            "extern \"C\" __global__ void naive_in_steps(const float* x, double* out, void*, int n, double* "
            "workspace,\n"
            "                                          double* slack) {\n"
            "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  workspace[2 * i] = 2.0 * x[i];\n  out[i] = workspace[2 * i];\n  slack[i] = i % 2;\n}\n");
    source_ = KernelSource::load(folder_ / "own.cu");
    Compiled reference = compile(reference_request_of(space_, request(untuned_config(bound_))));
    EXPECT_TRUE(reference.result.ok) << reference.result.reason;
    runner_.emplace(monitor_, bound_, std::move(reference.result.binary), quick_measure(), 1);
  }

  [[nodiscard]] Trial run(std::int64_t block) {
    const Config config({{"BLOCK", block}});
    return runner_->run(config, compile(request(config)), 0);
  }
  [[nodiscard]] const std::optional<Config>& agrees_with() const { return runner_->agrees_with(); }
  [[nodiscard]] const Space& space() const { return space_; }
  [[nodiscard]] const std::vector<std::string>& weak_checks() const { return runner_->weak_checks(); }

  static nlohmann::json json_of(const std::string& type, const nlohmann::json& change) {
    nlohmann::json space = nlohmann::json::parse(R"json({
      "schema": 1, "kernel": "own", "dimensions": [{"name": "N", "example": 64}], "types": [],
      "parameters": [{"name": "BLOCK", "values": [8, 16, 32, 64], "default": 32}],
      "launch": {"function": "own", "block": ["BLOCK"], "grid": ["ceil_div(N, BLOCK)"]},
      "arguments": [
        {"name": "x", "buffer": "float32", "access": "in", "extent": "N", "fill": "uniform"},
        {"name": "out", "access": "out", "extent": "N"},
        {"name": "scratch", "access": "scratch", "extent": "N"},
        {"name": "n", "scalar": "int32", "value": "N"}],
      "reference": {"default": true}, "work": {"flops": "N", "bytes": "8 * N"}})json");
    space["arguments"][1]["buffer"] = type;
    space["arguments"][2]["buffer"] = type;
    space["tolerance"] = {{type, 1e-6}};
    if (!change.is_null()) {
      space.merge_patch(change);
    }
    return space;
  }

 private:
  [[nodiscard]] CompileRequest request(const Config& config) const {
    return compile_request(bound_, config, source_, BinaryKind::host_object, device_->info().architecture);
  }
  [[nodiscard]] static Compiled compile(const CompileRequest& request) {
    Compiled compiled;
    compiled.result = CubinCache(test_cache()).get(Toolchain::find(request.architecture), request);
    compiled.status = compiled.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
    return compiled;
  }

  TemporaryFolder folder_;
  Space space_;
  std::unique_ptr<Device> device_;
  BoundSpace bound_;
  KernelSource source_;
  DeviceMonitor monitor_{*device_, {.passive = true}};
  std::optional<TrialRunner> runner_;
};

void expect_refused(const Trial& trial, const std::string& reason) {
  EXPECT_EQ(trial.status, TrialStatus::rejected);
  EXPECT_NE(trial.reason.find(reason), std::string::npos) << trial.reason;
}

TEST(ReferenceRun, AnElementThatItLeavesOutIsAFaultInEveryType) {
  for (const char* type : {"float32", "float64", "float16", "int32", "int8", "uint8"}) {
    OwnKernel nothing("", type);
    expect_refused(nothing.run(32), "does not write out[0], ");
    expect_refused(nothing.run(64), "does not write out[0], ");
    OwnKernel half("    if (i < n / 2) out[i] = 1;", type);
    expect_refused(half.run(64), "does not write out[32], ");
    EXPECT_EQ(OwnKernel("    out[i] = 1;", type).run(64).status, TrialStatus::ok) << type;
    EXPECT_EQ(OwnKernel("    out[i] = -1;", type).run(64).status, TrialStatus::ok) << type << ": as the poison";
    EXPECT_EQ(OwnKernel("    out[i] = 0x3C;", type).run(64).status, TrialStatus::ok) << type << ": as the other";
  }
}

// The default with 32 threads does what is right; `wrong` is what others do.
std::string unless_default(const std::string& wrong, const std::string& right = "    out[i] = 2;") {
  return "    if (blockDim.x == 32) {\n" + right + "\n    } else {\n" + wrong + "\n    }";
}

TEST(ReferenceRun, ANaiveKernelHasAWorkspaceAndSaysHowFarElementsMayBeOff) {
  const nlohmann::json change{{"reference",
                               {{"default", nullptr},
                                {"kernel", {{"function", "naive_in_steps"}, {"block", {64}}, {"grid", {1}}}},
                                {"workspace", "2 * N"},
                                {"slack", "out"}}}};
  EXPECT_EQ(OwnKernel("    out[i] = 2 * x[i];", "float32", change).run(32).status, TrialStatus::ok);
  EXPECT_EQ(OwnKernel("    out[i] = 2 * x[i] + i % 2 * 0.9f;", "float32", change).run(32).status, TrialStatus::ok);
  for (const char* wrong : {"    out[i] = 2 * x[i] + i % 2 * 1.1f;", "    out[i] = 2 * x[i] + (1 - i % 2) * 0.1f;"}) {
    EXPECT_EQ(OwnKernel(wrong, "float32", change).run(32).status, TrialStatus::wrong_result) << wrong;
  }
}

TEST(ReferenceRun, ScratchThatIsReadBeforeItIsWrittenIsFound) {
  for (const char* type : {"float32", "int32", "int8", "uint8", "float16"}) {
    OwnKernel kernel(unless_default("    out[i] = scratch[i] > 0 ? 3 : 2;"), type);
    EXPECT_EQ(kernel.run(64).status, TrialStatus::wrong_result) << type;
  }
  OwnKernel flag(unless_default("    out[i] = scratch[i] == -1 ? 2 : 3;"), "int32");
  const Trial trial = flag.run(64);
  EXPECT_EQ(trial.status, TrialStatus::wrong_result);
  EXPECT_NE(trial.reason.find("it reads what it has not written"), std::string::npos) << trial.reason;
  OwnKernel reference("    out[i] = scratch[i] == -1 ? 2 : 3;", "int32");
  EXPECT_EQ(reference.run(32).status, TrialStatus::wrong_result) << "in the default, too";
  OwnKernel own("    scratch[i] = i; out[i] = scratch[i] + 1;", "int32");
  EXPECT_EQ(own.run(64).status, TrialStatus::ok);
}

TEST(ReferenceRun, ZeroedScratchMustBeLeftFitForTheNextLaunch) {
  for (const char* type : {"float32", "int32", "int8"}) {
    nlohmann::json change = OwnKernel::json_of(type, {});
    change["arguments"][2]["fill"] = "zero";
    OwnKernel dirty(unless_default("    scratch[i] += 2; out[i] = scratch[i];"), type, change);
    const Trial trial = dirty.run(64);
    EXPECT_EQ(trial.status, TrialStatus::wrong_result) << type;
    EXPECT_NE(trial.reason.find("although its first launch was right"), std::string::npos) << trial.reason;
    OwnKernel clean("    scratch[i] += 1; out[i] = scratch[i] + 1; scratch[i] = 0;", type, change);
    EXPECT_EQ(clean.run(64).status, TrialStatus::ok) << type;
    OwnKernel counting("    const auto before = scratch[i]; scratch[i] += 1; out[i] = 2 + scratch[i] - before;", type,
                       change);
    EXPECT_EQ(counting.run(64).status, TrialStatus::ok) << type << ": what is left does not matter";
  }
}

TEST(ReferenceRun, ACheckThatCannotFailIsTold) {
  const auto told = [](OwnKernel&& kernel) {
    EXPECT_EQ(kernel.run(64).status, TrialStatus::ok);
    return kernel.weak_checks();
  };
  const std::string right = "    out[i] = 1 + x[i] * 0.5f;";
  EXPECT_TRUE(told(OwnKernel(right)).empty());
  EXPECT_TRUE(told(OwnKernel("    out[i] = i % 3;", "int32")).empty());
  const std::vector<std::string> zeros = told(OwnKernel("    out[i] = 0;"));
  ASSERT_EQ(zeros.size(), 1U);
  EXPECT_NE(zeros.front().find("output 'out' is 0 everywhere"), std::string::npos) << zeros.front();
  const std::vector<std::string> constant = told(OwnKernel("    out[i] = 7;", "int32"));
  ASSERT_EQ(constant.size(), 1U);
  EXPECT_NE(constant.front().find("output 'out' is the same everywhere"), std::string::npos) << constant.front();
  for (const double tolerance : {1.0, 1e9}) {
    const std::vector<std::string> large = told(OwnKernel(right, "float32", {{"tolerance", {{"float32", tolerance}}}}));
    ASSERT_EQ(large.size(), 1U) << tolerance;
    EXPECT_NE(large.front().find("tolerance of output 'out' is so large"), std::string::npos) << large.front();
  }
}

TEST(ReferenceRun, ANaiveKernelThatLeavesOutElementsIsAFault) {
  OwnKernel own(
      "    out[i] = 2 * x[i];", "float32",
      {{"reference", {{"default", nullptr}, {"kernel", {{"function", "naive"}, {"block", {64}}, {"grid", {1}}}}}}});
  expect_refused(own.run(32), "the reference kernel 'naive' does not write out[32], ");
}

TEST(ReferenceRun, ACandidateThatLeavesOutWhatIsAsThePoisonIsWrong) {
  for (const char* type : {"int32", "int8", "uint8"}) {
    OwnKernel own("    if (blockDim.x == 32 || i % 2 == 0) out[i] = -1;", type);
    EXPECT_EQ(own.run(32).status, TrialStatus::ok);
    const Trial trial = own.run(64);
    EXPECT_EQ(trial.status, TrialStatus::wrong_result) << type;
    EXPECT_NE(trial.reason.find("out[1]: "), std::string::npos) << trial.reason;
  }
}

TEST(ReferenceRun, NaNThatIsComputedEqualsOnlyNaNThatIsComputed) {
  OwnKernel own("    if (blockDim.x != 64) out[i] = __int_as_float(0x7fffffff);");
  EXPECT_EQ(own.run(32).status, TrialStatus::ok);
  EXPECT_EQ(own.run(16).status, TrialStatus::ok);
  EXPECT_EQ(own.run(64).status, TrialStatus::wrong_result);
}

TEST(ReferenceRun, ScratchThatNothingWroteIsNoValue) {
  OwnKernel own("    out[i] = x[i] + scratch[i];");
  expect_refused(own.run(64), "computes out[0] from memory that nothing has written");
  OwnKernel candidate("    if (blockDim.x == 32) scratch[i] = 0;\n    out[i] = scratch[i];");
  EXPECT_EQ(candidate.run(32).status, TrialStatus::ok);
  EXPECT_EQ(candidate.run(64).status, TrialStatus::wrong_result);
}

TEST(ReferenceRun, OutputsThatAreInputsMayKeepElementsButNotAll) {
  nlohmann::json change = {{"arguments", nlohmann::json::array()}};
  change["arguments"] = nlohmann::json::parse(R"json([
    {"name": "x", "buffer": "float32", "access": "in", "extent": "N", "fill": "uniform"},
    {"name": "out", "buffer": "float32", "access": "inout", "extent": "N", "fill": "uniform"},
    {"name": "scratch", "buffer": "float32", "access": "scratch", "extent": "N"},
    {"name": "n", "scalar": "int32", "value": "N"}])json");
  EXPECT_EQ(OwnKernel("    if (i % 2) out[i] += x[i];", "float32", change).run(64).status, TrialStatus::ok);
  OwnKernel nothing("", "float32", change);
  expect_refused(nothing.run(64), "leaves every output as it was");
}

// With its default the kernel would write nothing.
TEST(ReferenceRun, IsOfTheBaselineWhereTheDefaultIsExcluded) {
  OwnKernel own("    if (blockDim.x < 32) out[i] = 2 * x[i];", "float32",
                {{"constraints", {{{"require", "BLOCK < N / 2"}, {"because", "two blocks at least"}}}}});
  EXPECT_EQ(own.run(8).status, TrialStatus::ok);
  EXPECT_EQ(own.run(16).status, TrialStatus::ok);
}

TEST(ReferenceRun, OneBeyondTheLimitsOfABlockIsAFaultNotOfTheMachine) {
  OwnKernel own(
      "    __shared__ float fixed[11 * 1024];\n    fixed[i] = x[i];\n    __syncthreads();\n    out[i] = fixed[i ^ 1];",
      "float32", {{"launch", {{"shared_bytes", "256 * BLOCK"}}}});
  EXPECT_EQ(own.run(32).reason, "53248 bytes of shared memory per block; the device has 49152");
  expect_refused(own.run(8),
                 "the reference, the kernel with BLOCK=32, cannot be launched: 53248 bytes of shared memory");
}

TEST(ReferenceRun, WrongResultsThatAgreeAreToldApart) {
  OwnKernel own("    out[i] = blockDim.x == 32 ? 1 : blockDim.x == 16 ? x[i] : 2.0f * x[i] + 1e-8f * blockDim.x;");
  EXPECT_EQ(own.run(32).status, TrialStatus::ok);
  EXPECT_FALSE(own.agrees_with());
  const auto expect_wrong = [&](std::int64_t block, std::int64_t as) {
    EXPECT_EQ(own.run(block).status, TrialStatus::wrong_result);
    ASSERT_TRUE(own.agrees_with());
    EXPECT_EQ(own.agrees_with()->text(), fmt::format("BLOCK={}", as));
  };
  expect_wrong(8, 8);
  expect_wrong(16, 16);
  expect_wrong(64, 8);
  EXPECT_EQ(own.run(32).status, TrialStatus::ok);
  EXPECT_FALSE(own.agrees_with());
}

TEST(ReferenceRun, WrongResultsAgreeAlsoWhereTheReferenceIsZero) {
  OwnKernel own("    out[i] = blockDim.x == 32 ? 0.0f : 2.0f * x[i];");
  EXPECT_EQ(own.run(8).status, TrialStatus::wrong_result);
  EXPECT_EQ(own.run(16).status, TrialStatus::wrong_result);
  ASSERT_TRUE(own.agrees_with());
  EXPECT_EQ(own.agrees_with()->text(), "BLOCK=8");
}

TEST(AgreementTest, DoubtNeedsAMajority) {
  const Space space = OwnKernel("    out[i] = 1;").space();
  Agreement agreement;
  agreement.add(1, TrialStatus::ok, "");
  agreement.add(2, TrialStatus::wrong_result, "A");
  agreement.add(3, TrialStatus::compile_failed, "");
  EXPECT_EQ(agreement.doubt(space.reference), "");
  agreement.add(4, TrialStatus::wrong_result, "A");
  EXPECT_EQ(agreement.doubt(space.reference),
            "2 of 3 configurations agree with each other and not with the reference, the default configuration, which "
            "is probably wrong");
  agreement.add(5, TrialStatus::wrong_result, "B");
  EXPECT_EQ(agreement.doubt(space.reference), "") << "two of four";
}

TEST(AgreementTest, ConfigurationsOfTheSameCodeCountAsTheirOriginal) {
  const Space space = OwnKernel("    out[i] = 1;").space();
  Agreement agreement;
  agreement.add(7, TrialStatus::ok, "");
  agreement.add(8, TrialStatus::wrong_result, "A");
  agreement.add_same(8);
  agreement.add_same(9);  // of an earlier process
  EXPECT_EQ(agreement.doubt(space.reference),
            "2 of 3 configurations agree with each other and not with the reference, the default configuration, which "
            "is probably wrong");
  agreement.add_same(7);
  EXPECT_EQ(agreement.doubt(space.reference), "") << "two of four";
}

}  // namespace
}  // namespace pascaline::testing
