#include "tuner/measure/trial_setup.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/search/search_domain.hpp"

namespace pascaline::testing {
namespace {

Binary example_binary(const std::string& code = "machine code") {
  Binary binary;
  binary.kind = BinaryKind::host_object;
  binary.target = "host";
  binary.function = "toy";
  binary.code = code;
  binary.compile_ms = 12.5;
  binary.resources.registers = 32;
  binary.resources.static_shared_bytes = 4096;
  return binary;
}

class TrialSetupTest : public ::testing::Test {
 protected:
  // The launch geometry and everything but `scratch`, whose extent is BLOCK, are as the members say.
  explicit TrialSetupTest(const nlohmann::json& space = toy_json({kRight, kNotANumber})) : json_(space) {}

  nlohmann::json json_;
  Space space_ = Space::parse(json_.dump(), "toy.json");
  BoundSpace bound_{space_, space_.problem({{"N", "1000"}}), DeviceLimits{}};

  [[nodiscard]] std::string key(const Config& config, const Binary& binary = example_binary()) const {
    return run_key(bound_, config, binary);
  }
};

TEST_F(TrialSetupTest, RunKeyIsThatOfCodeAndLaunchNotOfTheConfiguration) {
  EXPECT_EQ(key(toy_config(64)), key(toy_config(64, kNotANumber)));
  Binary elsewhere = example_binary();
  elsewhere.compile_ms = 1;
  elsewhere.from_cache = true;
  elsewhere.log = "a warning";
  EXPECT_EQ(key(toy_config(64)), key(toy_config(64), elsewhere));
  EXPECT_NE(key(toy_config(64)), key(toy_config(32))) << "another geometry";
  EXPECT_NE(key(toy_config(64)), key(toy_config(64), example_binary("other code")));
  Binary capped = example_binary();
  capped.max_registers = 32;
  EXPECT_NE(key(toy_config(64)), key(toy_config(64), capped)) << "the driver translates PTX otherwise";
  Binary other_function = example_binary();
  other_function.function = "toy_reference";
  EXPECT_NE(key(toy_config(64)), key(toy_config(64), other_function));
}

class FixedGeometryTest : public TrialSetupTest {
 protected:
  static nlohmann::json space() {
    nlohmann::json changed = toy_json({kRight, kNotANumber});
    changed["launch"]["block"] = {"64"};
    changed["launch"]["grid"] = {"ceil_div(N, 64)"};
    return changed;
  }
  FixedGeometryTest() : TrialSetupTest(space()) {}
};

TEST_F(FixedGeometryTest, RunKeyDiffersWithWhatArgumentsAre) {
  EXPECT_EQ(bound_.geometry(space_.launches.front(), toy_config(32)),
            bound_.geometry(space_.launches.front(), toy_config(64)));
  EXPECT_NE(key(toy_config(32)), key(toy_config(64))) << "the scratch buffer is another";
  EXPECT_EQ(key(toy_config(32)), key(toy_config(32, kNotANumber)));
}

TEST_F(TrialSetupTest, BlankTrialHoldsWhatIsKnownBefore) {
  const Trial trial = blank_trial(bound_, toy_config(64), example_binary());
  EXPECT_EQ(trial.problem, bound_.problem());
  EXPECT_EQ(trial.config, toy_config(64));
  EXPECT_TRUE(trial.is_default);
  EXPECT_EQ(trial.compile_ms, 12.5);
  EXPECT_EQ(trial.resources.registers, 32);
  EXPECT_EQ(trial.binary_hash.size(), 32U);
  EXPECT_DOUBLE_EQ(trial.occupancy, occupancy(bound_.limits(), 64, 32, 4096));
  EXPECT_GT(trial.started_unix_ms, 1'600'000'000'000);
  const Trial without = blank_trial(bound_, toy_config(32), Binary{});
  EXPECT_FALSE(without.is_default);
  EXPECT_EQ(without.binary_hash, "");
  EXPECT_EQ(without.occupancy, 0);
}

TEST_F(TrialSetupTest, ResourcesBeyondTheDeviceAreNamed) {
  Geometry geometry;
  geometry.block = {1024, 1, 1};
  Resources resources;
  resources.registers = 32;
  EXPECT_FALSE(exceeds_limits(resources, geometry, DeviceLimits{}));
  geometry.shared_bytes = 48 * 1024;
  EXPECT_FALSE(exceeds_limits(resources, geometry, DeviceLimits{}));
  resources.static_shared_bytes = 1;
  EXPECT_EQ(exceeds_limits(resources, geometry, DeviceLimits{}),
            "49153 bytes of shared memory per block; the device has 49152");
  resources.static_shared_bytes = 0;
  resources.registers = 65;
  EXPECT_EQ(exceeds_limits(resources, geometry, DeviceLimits{}),
            "1024 threads with 65 registers each do not fit on a multiprocessor");
}

TEST(CubinRunKeyTest, IsThatOfTheMachineCodeWhateverTheSourceLooksLike) {
  std::string nvrtc;
  for (const NvrtcInfo& info : find_nvrtc()) {
    for (const std::string& architecture : info.architectures) {
      nvrtc = architecture == "sm_61" ? info.path : nvrtc;
    }
  }
  if (nvrtc.empty()) {
    GTEST_SKIP() << "no NVRTC that compiles for sm_61; run ./scripts/setup.sh";
  }
  const Toolchain toolchain = Toolchain::find("sm_61", nvrtc);
  const auto compile = [&](const std::string& text, const std::string& define) {
    KernelSource source{"toy.cu", text, {}, text};
    CompileRequest request;
    request.source = &source;
    request.function = "toy";
    request.architecture = "sm_61";
    request.defines = {define};
    const CompileResult result = toolchain.compile(request);
    EXPECT_TRUE(result.ok) << result.reason;
    return result.binary;
  };
  const std::string head = R"(extern "C" __global__ void toy(float* x, const float* y, float* out, float*, int n) {)";
  const Binary plain =
      compile(head + "if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x] * y[threadIdx.x]; }", "A");
  const Binary spelled =
      compile(head + "const unsigned i = threadIdx.x;\n// a comment\nif (!(i >= n)) { out[i] = x[i] * y[i]; }\n}",
              "A_NAME_THAT_ONLY_THE_COMPILER_NOTES=1");
  const Binary other =
      compile(head + "if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x] - y[threadIdx.x]; }", "A");
  const Binary noted =
      compile(head + "if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x] * y[threadIdx.x]; }", "B=12345");
  EXPECT_EQ(cubin_code_hash(plain.code), cubin_code_hash(noted.code));
  EXPECT_NE(cubin_code_hash(plain.code), cubin_code_hash(other.code));

  const Space space = Space::parse(toy_json({kRight, kNotANumber}).dump(), "toy.json");
  const BoundSpace bound(space, space.problem({{"N", "1000"}}), DeviceLimits{});
  EXPECT_EQ(run_key(bound, toy_config(64), plain), run_key(bound, toy_config(64, kNotANumber), noted));
  EXPECT_NE(run_key(bound, toy_config(64), plain), run_key(bound, toy_config(64), other));
  EXPECT_EQ(run_key(bound, toy_config(64), plain), run_key(bound, toy_config(64), spelled));
}

// NVRTC 11.8 and 12.9 make the same machine code of simple kernels, in cubins that differ in notes and symbols.
TEST(CubinRunKeyTest, TheSameMachineCodeOfTwoCompilersIsOne) {
  std::vector<Toolchain> toolchains;
  for (const char* version : {"11.8", "12.9"}) {
    for (const NvrtcInfo& info : find_nvrtc()) {
      const bool wanted =
          info.version == version && toolchains.size() < 2 &&
          std::find(info.architectures.begin(), info.architectures.end(), "sm_61") != info.architectures.end();
      if (wanted) {
        toolchains.push_back(Toolchain::find("sm_61", info.path));
      }
    }
  }
  if (toolchains.size() < 2) {
    GTEST_SKIP() << "NVRTC 11.8 and 12.9 are not both here; ./scripts/setup.sh --nvrtc-all brings them";
  }
  const KernelSource source = KernelSource::load(data_folder("kernel_templates") / "transpose.cu");
  const Space space = Space::load(data_folder("search_spaces") / "transpose.json");
  const BoundSpace bound(space, space.example_problem(), limits_of_architecture("sm_61").value());
  const auto compiled = [&](const Toolchain& toolchain, const Config& config) {
    const CompileResult result = toolchain.compile(compile_request(bound, config, source, BinaryKind::cubin, "sm_61"));
    EXPECT_TRUE(result.ok) << result.reason;
    return result.binary;
  };
  const Config standard = space.general_default();
  const Binary older = compiled(toolchains[0], standard);
  const Binary newer = compiled(toolchains[1], standard);
  EXPECT_NE(older.code, newer.code);
  EXPECT_NE(cubin_code_hash(older.code), cubin_code_hash(newer.code));
  ASSERT_TRUE(cubin_launch_hash(older.code, older.function));
  EXPECT_EQ(cubin_launch_hash(older.code, older.function), cubin_launch_hash(newer.code, newer.function));
  EXPECT_EQ(run_key(bound, standard, older), run_key(bound, standard, newer));

  const SearchDomain domain(bound);
  const Point here = space.indices_of(standard);
  std::size_t different = 0;
  for (const Point& near : domain.neighbours(here, Reach::step)) {
    const Config other = space.config_at(near);
    different += run_key(bound, standard, older) != run_key(bound, other, compiled(toolchains[0], other)) ? 1 : 0;
  }
  EXPECT_GT(different, 0U);
}

}  // namespace
}  // namespace pascaline::testing
