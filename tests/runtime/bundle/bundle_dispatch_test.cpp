#include <gtest/gtest.h>

#include <array>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/bundle/bundle_fixture.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

// No compiler is to be found in these tests.
class BundleDispatchTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  FakeDevice device_;
  ScopedVariable no_host_compiler_{"PASCALINE_HOST_CXX", "/nonexistent"};
  ScopedVariable no_nvrtc_{"PASCALINE_NVRTC", "/nonexistent"};
  DispatcherOptions options_;

  BundleDispatchTest() {
    write_scale_kernel(folder_.path());
    options_.kernels = options_.spaces = folder_.path();
    options_.bundle = folder_ / "x.pasc";
    write(encode_bundle(bundle()));
  }
  [[nodiscard]] Bundle bundle() const { return scale_bundle(folder_.path(), device_.info()); }
  void write(const std::string& bytes) const { write_bytes(*options_.bundle, bytes); }
  void write(const std::function<void(json&)>& change) const { write(with_manifest(encode_bundle(bundle()), change)); }
  [[nodiscard]] std::string refusal() {
    return message_of([&] { const Dispatcher dispatcher(device_, options_); });
  }
  void expect_refused(const std::string& part) {
    const std::string message = refusal();
    EXPECT_TRUE(message.starts_with("cannot use bundle " + options_.bundle->string() + ": ")) << message;
    EXPECT_TRUE(contains(message, part)) << message;
    EXPECT_EQ(device_.loads + device_.allocations, 0);
  }
  // Of what needs no device.
  void expect_refused_by_itself(const std::string& part) {
    expect_refused(part);
    EXPECT_EQ(message_of([&] { check_bundle(options_); }), refusal());
  }
};

TEST_F(BundleDispatchTest, RunsWinnersAndDefaultsWithoutACompiler) {
  Dispatcher dispatcher(device_, options_);
  EXPECT_EQ(dispatcher.toolkit(), old_toolkit());
  EXPECT_EQ(dispatcher.target().architecture, "host");
  EXPECT_EQ(device_.loads, 0) << "nothing is loaded before it is asked for";
  const Prepared& exact = dispatcher.prepare(scale_problem(8, 20));
  EXPECT_EQ(exact.plan.provenance, Provenance::exact) << exact.plan.reason;
  EXPECT_EQ(exact.plan.config, scale_config(32, 2));
  EXPECT_EQ(exact.plan.expected->median_us, 10);
  EXPECT_EQ(dispatcher.prepare(scale_problem(9, 20)).plan.provenance, Provenance::nearest);
  EXPECT_EQ(dispatcher.prepare(scale_problem(8, 21)).plan.provenance, Provenance::default_config);
  EXPECT_EQ(device_.loads, 2) << "problems of equal code share it";
}

TEST_F(BundleDispatchTest, WhatItLacksFallsBackAsFarAsThereIsCode) {
  Bundle lacking = bundle();
  lacking.kernels[0].codes.erase(lacking.kernels[0].codes.begin());
  write(encode_bundle(lacking));
  Dispatcher dispatcher(device_, options_);
  ::testing::internal::CaptureStderr();
  const Prepared& prepared = dispatcher.prepare(scale_problem(8, 20));
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), "has no code for it"));
  EXPECT_EQ(prepared.plan.provenance, Provenance::default_config);
  EXPECT_TRUE(contains(prepared.plan.reason, "--workload")) << prepared.plan.reason;
  ::testing::internal::CaptureStderr();
  const std::string message = message_of([&] { (void)dispatcher.prepare(scale_problem(8, 20, ElementType::int32)); });
  (void)::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(message, "has no code for it; make one that has it, with pascaline bundle --workload"))
      << message;
}

TEST_F(BundleDispatchTest, NothingElseIsTakenBesides) {
  Dispatcher dispatcher(device_, options_);
  EXPECT_TRUE(contains(message_of([&] { dispatcher.reload(std::nullopt); }), "cannot use no winners instead of"));
  EXPECT_TRUE(contains(message_of([&] { dispatcher.reload("a.db"); }), "the winners of a.db instead of"));
  EXPECT_EQ(dispatcher.plan(scale_problem(8, 20)).provenance, Provenance::exact) << "nothing has changed";
  options_.database = "a.db";
  EXPECT_TRUE(contains(refusal(), "and a database are given")) << refusal();
  options_.database.reset();
  options_.target = "sm_61";
  EXPECT_TRUE(contains(refusal(), "and a target are given")) << refusal();
  options_.target.clear();
  options_.nvrtc = "11.8";
  EXPECT_TRUE(contains(refusal(), "and an NVRTC are given")) << refusal();
  options_.nvrtc.clear();
  options_.bundle.reset();
  options_.any_device = true;
  EXPECT_TRUE(contains(refusal(), "no bundle is given")) << refusal();
}

TEST_F(BundleDispatchTest, AnotherDeviceIsRefusedUnlessItMayBeAny) {
  write([](json& m) { m["device"]["name"] = "another processor"; });
  expect_refused("its winners were measured on another processor (4 multiprocessors), and emulator is a processor (4");
  EXPECT_TRUE(contains(refusal(), "--any-device"));
  options_.any_device = true;
  EXPECT_EQ(Dispatcher(device_, options_).plan(scale_problem(8, 20)).provenance, Provenance::exact);
  write([](json& m) { m["device"]["sm_count"] = m["limits"]["sm_count"] = 99; });
  const Dispatcher larger(device_, options_);
  EXPECT_EQ(larger.target().limits.sm_count, 99) << "splits are those of the code that there is";
  EXPECT_EQ(larger.target().limits.max_grid_y, device_.info().limits.max_grid_y);
}

TEST_F(BundleDispatchTest, AnUntunedOneOfAnotherDeviceSaysWhatItIsFor) {
  Bundle untuned = bundle();
  untuned.kernels[0].winners.clear();
  untuned.device->name = "another processor";
  write(encode_bundle(untuned));
  expect_refused("it has no winners, and its configurations and code are for the limits of another processor (4");
  EXPECT_FALSE(contains(refusal(), "measured")) << refusal();
  EXPECT_TRUE(contains(refusal(), "--any-device")) << refusal();
}

TEST_F(BundleDispatchTest, ABundleIsCheckedWithoutADevice) {
  write([](json& m) { m["device"]["name"] = "another processor"; });
  EXPECT_NO_THROW(check_bundle(options_));
  EXPECT_NO_THROW(check_bundle({}));
  write(encode_bundle(bundle()).substr(0, 100));
  expect_refused_by_itself("100 bytes");
}

TEST_F(BundleDispatchTest, CodeForAnotherArchitectureIsRefused) {
  Bundle other = bundle();
  other.architecture = "sm_61";
  other.kind = BinaryKind::ptx;
  other.toolkits[0].target = other.kernels[0].winners[0].toolkit.target = "compute_61";
  other.device->kind = "cuda";
  write(encode_bundle(other));
  options_.any_device = true;
  expect_refused(
      "its code is PTX for sm_61, and emulator (a processor) is emulator; make one with pascaline bundle --arch "
      "emulator");
}

TEST_F(BundleDispatchTest, OtherKernelsAreRefused) {
  write_scale_kernel(folder_.path(), "scales otherwise");
  expect_refused_by_itself("kernel 'scale': it was made for another version of the kernel (");
  write_scale_kernel(folder_.path());
  json space = json::parse(scale_json());
  space["parameters"][0]["values"].push_back(256);
  write_bytes(folder_ / "scale.json", space.dump());
  expect_refused_by_itself("kernel 'scale': it was made for another version of the search space (");
  std::filesystem::remove(folder_ / "scale.json");
  expect_refused_by_itself("scale.json");
  write_scale_kernel(folder_.path());
  write([](json& m) { m["kernels"][0]["name"] = "../scale"; });
  expect_refused_by_itself("is not a kernel's name");
}

TEST_F(BundleDispatchTest, AlteredParametersAreRefusedThoughTheHashesAreRight) {
  struct Case {
    void (*change)(json&);
    const char* part;
  };
  const std::vector<Case> cases{
      {[](json& m) { m["kernels"][0]["winners"][0]["config"]["BLOCK"] = 4096; }, "4096 is not among the values"},
      {[](json& m) { m["kernels"][0]["winners"][0]["config"]["BLOCK"] = "32"; }, "is not among the values"},
      {[](json& m) { m["kernels"][0]["winners"][0]["config"]["MORE"] = 1; }, "has no parameter 'MORE'"},
      {[](json& m) { m["kernels"][0]["winners"][0]["config"].erase("BLOCK"); }, "gives no value for parameter 'BLOCK'"},
      {[](json& m) { m["kernels"][0]["winners"][0]["dimensions"][0][1] = 1; }, "every step needs a row"},
      {[](json& m) { m["kernels"][0]["winners"][0]["dimensions"][0][1] = 0; }, "below its minimum"},
      {[](json& m) { m["kernels"][0]["winners"][0]["dimensions"][1][1] = 33; }, "a block holds a row"},
      {[](json& m) { m["kernels"][0]["winners"][0]["dimensions"][0][1] = INT64_C(1) << 40; }, "grid size"},
      {[](json& m) { m["kernels"][0]["winners"][0]["dimensions"][0][0] = "LINES"; }, "is 'ROWS', not 'LINES'"},
      {[](json& m) { m["kernels"][0]["winners"][0]["types"][0][1] = "float16"; }, "does not fit kernel 'scale'"},
      {[](json& m) { m["limits"]["max_threads_per_block"] = 16; }, " threads; the device allows"},
      {[](json& m) { m["kernels"][0]["function"] = "other"; }, "its code is of function other"},
      {[](json& m) { m["kernels"][0]["codes"][0]["defines"][0] = "BLOCK=33"; }, "BLOCK=33, which is not among"},
      {[](json& m) { m["kernels"][0]["codes"][0]["defines"][3] = "T=float16"; }, "T=float16, which is not a type"},
      {[](json& m) { m["kernels"][0]["codes"][0]["defines"].push_back("X=1"); }, "a macro X=1"},
      {[](json& m) { m["kernels"][0]["codes"][0]["defines"].erase(0); }, "lacks the macro BLOCK"},
      {[](json& m) { m["kernels"][0]["codes"][0]["options"].push_back("-G"); }, "compiled with -G"}};
  for (const Case& one : cases) {
    write(one.change);
    expect_refused_by_itself(one.part);
  }
}

TEST_F(BundleDispatchTest, RunsOnTheHost) {
  const auto host = open_device("emulator");
  Bundle real = scale_bundle(folder_.path(), host->info());
  real.kernels[0].codes.clear();
  {
    const ScopedVariable compiler("PASCALINE_HOST_CXX", nullptr);
    const Toolchain toolchain = Toolchain::find("host");
    const KernelSource source = KernelSource::load(folder_ / "scale.cu");
    BundleCode code = scale_code(folder_.path(), scale_config(32, 2));
    CompileRequest request;
    request.source = &source;
    request.function = "scale";
    request.architecture = "host";
    request.kind = BinaryKind::host_object;
    request.defines = code.defines;
    const CompileResult compiled = CubinCache(PASCALINE_TEST_CACHE).get(toolchain, request);
    ASSERT_TRUE(compiled.ok) << compiled.log;
    code.code = compiled.binary.code;
    code.resources = compiled.binary.resources;
    real.kernels[0].codes.push_back(std::move(code));
  }
  write(encode_bundle(real));
  Dispatcher dispatcher(*host, options_);
  const Prepared& prepared = dispatcher.prepare(scale_problem(8, 20));
  EXPECT_EQ(prepared.plan.provenance, Provenance::exact) << prepared.plan.reason;
  const std::vector<float> x(160, 1.5F);
  std::vector<float> y(160);
  const Buffer from = host->allocate(640);
  const Buffer to = host->allocate(640);
  host->upload(from, std::as_bytes(std::span(x)));
  const std::array<void*, 2> buffers{from.data(), to.data()};
  dispatcher.launch(prepared, buffers);
  host->synchronize();
  host->download(std::as_writable_bytes(std::span(y)), to);
  EXPECT_EQ(y, std::vector<float>(160, 3.0F));
}

}  // namespace
}  // namespace pascaline::testing
