#include "tuner/measure/member_numbers.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/device/cubin_cache.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kSource = R"code(
struct Body {
  bool alive;
  float3 position;
  unsigned short tags[2];
  double mass;
};
struct Settings {
  double scale;
  short shift;
};
extern "C" __global__ void move(const Body* from, Body* to, const float4* add, float4* sums, float3 center,
                                Settings settings, bool keep, unsigned long long* counts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Body body = from[i];
  body.position.x += center.x + add[i].x;
  body.position.y += center.y + add[i].y;
  body.position.z += center.z + add[i].z;
  body.mass *= settings.scale;
  body.tags[1] = static_cast<unsigned short>(body.tags[1] + settings.shift);
  body.alive = keep && body.alive;
#if FAULT == 1
  if (i == 7) body.tags[1] += 1;
#elif FAULT == 2
  if (i == 7) body.position.y *= 1.01f;
#elif FAULT == 3
  if (i == 7) return;
#endif
  to[i] = body;
  sums[i] = make_float4(add[i].x + add[i].w, add[i].y, add[i].z, FAULT == 4 && i == 9 ? 5.0f : 0.0f);
  counts[i] = (1ull << 50) + body.tags[0];
}
#ifdef PASCALINE_REFERENCE
extern "C" __global__ void naive(const Body* from, double* to, const float4* add, double* sums, float3 center,
                                 Settings settings, bool keep, double* counts, int n) {
  const int i = threadIdx.x;
  for (int k = i; k < n; k += blockDim.x) {
    to[7 * k] = keep && from[k].alive;
    to[7 * k + 1] = from[k].position.x + double(center.x) + add[k].x;
    to[7 * k + 2] = from[k].position.y + double(center.y) + add[k].y;
    to[7 * k + 3] = from[k].position.z + double(center.z) + add[k].z;
    to[7 * k + 4] = from[k].tags[0];
    to[7 * k + 5] = static_cast<unsigned short>(from[k].tags[1] + settings.shift);
    to[7 * k + 6] = from[k].mass * settings.scale;
    sums[4 * k] = double(add[k].x) + add[k].w;
    sums[4 * k + 1] = add[k].y;
    sums[4 * k + 2] = add[k].z;
    sums[4 * k + 3] = 0;
    counts[k] = 0x1p50 + from[k].tags[0];
  }
}
#endif
)code";

nlohmann::json move_json(bool by_default) {
  nlohmann::json space = nlohmann::json::parse(R"json({
    "schema": 1, "kernel": "move", "dimensions": [{"name": "N"}], "types": [],
    "structs": [
      {"name": "Body", "members": [["alive", "bool"], ["position", "float3"], ["tags", "uint16", 2], ["mass", "float64"]]},
      {"name": "Settings", "members": [["scale", "float64"], ["shift", "int16"]]}
    ],
    "parameters": [{"name": "FAULT", "values": [0, 1, 2, 3, 4], "default": 0}],
    "launch": {"function": "move", "block": [64], "grid": ["ceil_div(N, 64)"]},
    "arguments": [
      {"name": "from", "buffer": "Body", "access": "in", "extent": "N",
       "members": {"alive": {"low": 0, "high": 2}, "tags": {"low": 0, "high": 1000}, "mass": {"fill": "ramp", "low": 1, "high": "N"}}},
      {"name": "to", "buffer": "Body", "access": "out", "extent": "N"},
      {"name": "add", "buffer": "float4", "access": "in", "extent": "N", "fill": "normal"},
      {"name": "sums", "buffer": "float4", "access": "out", "extent": "N"},
      {"name": "center", "scalar": "float3", "value": [0.5, "N", -2]},
      {"name": "settings", "scalar": "Settings", "value": [1.5, -3]},
      {"name": "keep", "scalar": "bool", "value": true},
      {"name": "counts", "buffer": "uint64", "access": "out", "extent": "N"},
      {"name": "n", "scalar": "int32", "value": "N"}
    ],
    "reference": {"kernel": {"function": "naive", "block": [64], "grid": [1]}},
    "tolerance": {"float32": 1e-5, "float64": 1e-12, "uint16": 0, "bool": 0, "uint64": 0},
    "work": {"flops": "N", "bytes": "N"}
  })json");
  if (by_default) {
    space["reference"] = {{"default", true}};
  }
  return space;
}

/// A kernel of structures, vectors and integers of 16 and 64 bits on the emulated device.
class MemberNumbersTest : public ::testing::TestWithParam<bool> {
 protected:
  TemporaryFolder folder_;
  Space space_ = Space::parse(move_json(GetParam()).dump(), "move.json");
  std::unique_ptr<Device> device_ = open_device("emulator");
  BoundSpace bound_{space_, space_.problem({{"N", "100"}}), device_->info().limits};
  DeviceMonitor monitor_{*device_, {.passive = true}};

  void SetUp() override { std::ofstream(folder_ / "move.cu") << kSource; }
  [[nodiscard]] Compiled compile(const CompileRequest& request) const {
    Compiled compiled;
    compiled.result = CubinCache(test_cache()).get(Toolchain::find("emulator"), request);
    compiled.status = compiled.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
    return compiled;
  }
  [[nodiscard]] Trial run(std::int64_t fault) {
    const KernelSource source = KernelSource::load(folder_ / "move.cu");
    const auto request = [&](const Config& config) {
      return compile_request(bound_, config, source, BinaryKind::host_object, "emulator");
    };
    const Config standard = space_.general_default();
    const Compiled reference = compile(reference_request_of(space_, request(standard)));
    EXPECT_EQ(reference.result.reason, "");
    TrialRunner runner(monitor_, bound_, ReferenceRun{reference.result.binary, standard}, quick_measure(), 1);
    const Config config({{"FAULT", fault}});
    return runner.run(config, compile(request(config)), 0);
  }
};

TEST_P(MemberNumbersTest, ARightKernelPasses) {
  const Trial trial = run(0);
  EXPECT_TRUE(trial.status == TrialStatus::ok || trial.status == TrialStatus::dropped) << trial.reason;
  ASSERT_TRUE(trial.max_error) << trial.reason;
  EXPECT_LT(*trial.max_error, 1e-6);
}

TEST_P(MemberNumbersTest, AWrongMemberIsNamed) {
  const std::pair<std::int64_t, const char*> faults[] = {
      {1, "to[7].tags[1]: "}, {2, "to[7].position.y: "}, {3, "to[7]."}, {4, "sums[9].w: 5 instead of 0"}};
  for (const auto& [fault, where] : faults) {
    const Trial trial = run(fault);
    EXPECT_EQ(trial.status, TrialStatus::wrong_result) << fault;
    EXPECT_NE(trial.reason.find(where), std::string::npos) << trial.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(References, MemberNumbersTest, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "TheDefault" : "ANaiveKernel"; });

TEST(DrawMembersTest, EachMemberHasItsOwnFillAndGapsAreZero) {
  const Space space = Space::parse(move_json(false).dump(), "move.json");
  const BoundSpace bound(space, space.problem({{"N", "100"}}), DeviceLimits{});
  const Argument& from = space.arguments[0];
  const DrawnMatrix whole{ElementType::float32, 700, 1, Fill::uniform, -1, 1, 5};
  const std::vector<std::byte> bytes = draw_members(bound, from, whole);
  ASSERT_EQ(bytes.size(), 100 * from.composite->bytes());
  const std::vector<double> numbers = widen(from, ElementType::float32, bytes);
  ASSERT_EQ(numbers.size(), 700U);
  int alive = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(bytes[i * from.composite->bytes() + 1], std::byte{0});
    EXPECT_TRUE(numbers[7 * i] == 0 || numbers[7 * i] == 1);
    alive += numbers[7 * i] == 1 ? 1 : 0;
    EXPECT_LE(std::abs(numbers[7 * i + 2]), 1);
    EXPECT_NE(numbers[7 * i + 1], numbers[7 * i + 2]) << "each member has a stream of its own";
    EXPECT_LT(numbers[7 * i + 5], 1000);
    EXPECT_EQ(numbers[7 * i + 6], static_cast<double>(i + 1));
  }
  EXPECT_GT(alive, 20);
  EXPECT_LT(alive, 80);
  EXPECT_NE(bytes, draw_members(bound, from, {ElementType::float32, 700, 1, Fill::uniform, -1, 1, 6}));
  EXPECT_EQ(bound.value(from, space.general_default()), 700);
  EXPECT_EQ(bound.value(space.arguments[2], space.general_default()), 400)
      << "a vector's numbers are those of a buffer";
  EXPECT_FALSE(is_mixed(space.arguments[2]));
}

}  // namespace
}  // namespace pascaline::testing
