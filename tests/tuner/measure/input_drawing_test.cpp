#include "tuner/measure/input_drawing.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "core/util/paths.hpp"
#include "kernel_templates/inputs/draw.cuh"
#include "tests/tuner/drawn_matrices.hpp"
#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/measure/problem_data.hpp"
#include "tuner/measure/trial_runner.hpp"

namespace pascaline::testing {
namespace {

[[nodiscard]] Binary drawing_of(const Device& device) {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  return drawing_code(device.info(), options);
}

TEST(InputDrawingTest, TheKernelDrawsWhatTheProcessorDraws) {
  RelayDevice device;
  InputDrawing drawing(device, drawing_of(device));
  EXPECT_TRUE(drawing.on_device());
  std::size_t launched = 0;
  for (const DrawnMatrix& matrix : drawn_matrices(17)) {
    expect_drawn_alike(device, drawing, matrix);
    launched += bytes_of(matrix) > 0 ? 1 : 0;
  }
  EXPECT_EQ(device.launches, static_cast<int>(launched));
  EXPECT_TRUE(device.uploads.empty());
}

TEST(InputDrawingTest, WithoutAKernelTheProcessorDrawsInPlace) {
  RelayDevice device;
  InputDrawing drawing(device, std::nullopt);
  EXPECT_FALSE(drawing.on_device());
  for (const DrawnMatrix& matrix : drawn_matrices(18)) {
    expect_drawn_alike(device, drawing, matrix);
  }
  EXPECT_EQ(device.launches, 0);
  EXPECT_TRUE(device.uploads.empty());
}

// In machine code of the target, the table of pieces is read where arguments lie, and nothing is spilled.
TEST(InputDrawingTest, TheKernelCompilesForPascal) {
  const KernelSource source = KernelSource::load(data_folder("kernel_templates") / "inputs" / "draw.cu");
  CompileRequest request;
  request.source = &source;
  request.function = "draw";
  request.architecture = "sm_61";
  const CompileResult result = Toolchain::find("sm_61").compile(request);
  ASSERT_TRUE(result.ok) << result.reason << result.log;
  EXPECT_LE(result.binary.resources.registers, 64);
  EXPECT_EQ(result.binary.resources.local_bytes, 0);
}

/// The toys on a device that draws, as a GPU does.
class DrawnProblemTest : public ::testing::Test {
 protected:
  RelayDevice device_;
  const Binary drawing_ = drawing_of(device_);

  [[nodiscard]] ProblemData data_of(const ToyBench& bench) {
    const ReferenceRun reference = bench.reference();
    return {device_, bench.bound(), load_launches(device_, reference.binary), reference.config, drawing_};
  }
  [[nodiscard]] static std::vector<std::byte> bytes_of(const NamedPointer& buffer, std::size_t count) {
    const auto* data = static_cast<const std::byte*>(buffer.data);
    return {data, data + count};
  }
};

TEST_F(DrawnProblemTest, NothingIsUploadedAndInputsAreThoseThatTheProcessorDraws) {
  const ToyBench bench(toy_json());
  ProblemData there = data_of(bench);
  ProblemData here(device_, bench.bound(), device_.load(bench.reference().binary));
  there.draw(5);
  EXPECT_TRUE(device_.uploads.empty());
  here.draw(5);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(bytes_of(there.buffers()[i], 4000), bytes_of(here.buffers()[i], 4000));
  }
  EXPECT_EQ(there.expected(), here.expected());
  there.draw(6);
  EXPECT_NE(there.expected(), here.expected());
}

TEST_F(DrawnProblemTest, WhatAKernelWroteToIsDrawnAgain) {
  const ToyBench bench(accumulate_json());
  ProblemData data = data_of(bench);
  data.draw(5);
  const auto contents = [&] {
    std::vector<std::vector<std::byte>> found;
    for (const NamedPointer& buffer : data.buffers()) {
      found.push_back(bytes_of(buffer, 4000));
    }
    return found;
  };
  const auto before = contents();
  const int launches = device_.launches;
  data.restore_inputs();
  EXPECT_EQ(device_.launches, launches) << "nothing has changed";
  for (const NamedPointer& buffer : data.buffers()) {
    static_cast<float*>(buffer.data)[7] = 1e9F;
  }
  EXPECT_FALSE(data.changed_input().empty());
  data.restore_inputs();
  EXPECT_EQ(contents(), before);
  EXPECT_TRUE(data.changed_input().empty());
  for (const NamedPointer& buffer : data.buffers()) {
    static_cast<float*>(buffer.data)[7] = 1e9F;
  }
  data.poison_outputs();
  data.restore_inputs();
  EXPECT_EQ(contents(), before);
}

TEST_F(DrawnProblemTest, TrialsOfAccumulatingKernelsAreVerified) {
  const ToyBench bench(accumulate_json());
  DeviceMonitor monitor(device_, {.passive = true});
  TrialRunner runner(monitor, bench.bound(), bench.reference(), quick_measure(), 1);
  runner.draw_by(drawing_);
  for (const std::int64_t block : {32, 64}) {
    const Trial trial = runner.run(toy_config(block), bench.compile(toy_config(block)), 0);
    EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
  }
  const Config overwrites = toy_config(32, kLastElementLeftOut);
  EXPECT_EQ(runner.run(overwrites, bench.compile(overwrites), 0).status, TrialStatus::wrong_result);
}

}  // namespace
}  // namespace pascaline::testing
