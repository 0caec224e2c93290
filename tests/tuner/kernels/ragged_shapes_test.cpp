#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/share.hpp"
#include "tests/tuner/kernels/ragged_sweep.hpp"

namespace pascaline::testing {

namespace {

/// Every kernel of this tree, found by its two files.
class RaggedEmulatorTest : public ::testing::TestWithParam<RaggedKernels> {};

// Compiling takes most of the time. A kernel that takes many formats of weights has as many cases, which differ in
// little but how a weight is read: each of these looks at half of the variants.
TEST_P(RaggedEmulatorTest, AgreesWithTheReference) {
  const auto device = open_device("emulator");
  for (const RaggedKernel& kernel : share_of(GetParam().cases, "types", GetParam().name.size())) {
    SCOPED_TRACE(kernel.text());
    RaggedLimits limits = kernel.other ? RaggedLimits{40, 2, 1, 3} : RaggedLimits{40, 4, 2, 3};
    limits.shapes = static_cast<int>(shared_part(static_cast<std::size_t>(limits.shapes), "shapes"));
    RaggedSweep(*device, "", RaggedSource::shipped(kernel), limits).run();
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, RaggedEmulatorTest,
                         ::testing::ValuesIn(RaggedShapes::by_kernel(data_folder("search_spaces"))),
                         [](const auto& tested) { return tested.param.name; });

constexpr const char* kScaledRows = R"cu(
#ifndef THREADS
#define THREADS 64
#endif
extern "C" __global__ void scaled_rows(const float* x, const float* weight, float* y, int rows, int width) {
  const int i = static_cast<int>(blockIdx.x) * THREADS + static_cast<int>(threadIdx.x);
  if (i < rows * width) {
    y[i] = x[i] * weight[i % width];
  }
}
#ifdef PASCALINE_REFERENCE
extern "C" __global__ void scaled_rows_reference(const float* x, const float* weight, double* y, int rows,
                                                 int width) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < rows * width) {
    y[i] = static_cast<double>(x[i]) * weight[i % width];
  }
}
#endif
)cu";

constexpr const char* kScaledRowsSpace = R"json({
  "schema": 1, "kernel": "scaled_rows", "description": "y = x * weight, row by row",
  "dimensions": [{"name": "ROWS", "varies": true, "description": "rows", "example": 512},
                 {"name": "WIDTH", "description": "elements of a row", "example": 1024}],
  "types": [],
  "parameters": [{"name": "THREADS", "values": [32, 64, 128], "default": 64, "description": "threads of a block"}],
  "launch": {"function": "scaled_rows", "block": ["THREADS"], "grid": ["ceil_div(ROWS * WIDTH, THREADS)"]},
  "arguments": [{"name": "x", "buffer": "float32", "access": "in", "extent": "ROWS * WIDTH"},
                {"name": "weight", "buffer": "float32", "access": "in", "extent": "WIDTH"},
                {"name": "y", "buffer": "float32", "access": "out", "extent": "ROWS * WIDTH"},
                {"name": "rows", "scalar": "int32", "value": "ROWS"},
                {"name": "width", "scalar": "int32", "value": "WIDTH"}],
  "reference": {"kernel": {"function": "scaled_rows_reference", "block": [256],
                           "grid": ["ceil_div(ROWS * WIDTH, 256)"]}},
  "tolerance": {"float32": 1e-6},
  "work": {"flops": "ROWS * WIDTH", "bytes": "8 * ROWS * WIDTH + 4 * WIDTH"}
})json";

/// A folder as somebody has it who adds kernels: two files each, of which no C++ knows.
class AddedKernelTest : public ::testing::Test {
 protected:
  AddedKernelTest() {
    write_bytes(folder_ / "scaled_rows.cu", kScaledRows);
    write_bytes(folder_ / "scaled_rows.json", kScaledRowsSpace);
    for (const char* file : {"saxpy.cu", "saxpy.json"}) {
      std::filesystem::copy_file(std::filesystem::path(PASCALINE_SOURCE_DIR) / "examples/own_kernel" / file,
                                 folder_ / file);
    }
  }
  void check(const RaggedKernel& kernel) {
    const auto device = open_device("emulator");
    RaggedSweep(*device, "", {folder_.path(), folder_.path(), kernel}, {20, 3, 2, 2}).run();
  }
  // Fails the test unless a check of the kernel with `from` replaced by `to` fails.
  void expect_noticed(const std::string& kernel, const std::string& from, const std::string& to) {
    std::string text = bytes_of(folder_ / (kernel + ".cu"));
    ASSERT_NE(text.find(from), std::string::npos);
    write_bytes(folder_ / (kernel + ".cu"), text.replace(text.find(from), from.size(), to));
    ::testing::TestPartResultArray results;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      check({kernel, ElementType::float32});
    }
    EXPECT_GT(results.size(), 0) << kernel << " passes with " << to;
  }

  TemporaryFolder folder_;
};

TEST_F(AddedKernelTest, IsFoundAndCheckedByItsTwoFiles) {
  const std::vector<RaggedKernel> found = RaggedShapes::kernels(folder_.path());
  std::vector<std::string> texts;
  for (const RaggedKernel& kernel : found) {
    texts.push_back(kernel.text());
    check(kernel);
  }
  EXPECT_EQ(texts,
            (std::vector<std::string>{"saxpy_float16", "saxpy_float32", "scaled_rows_float16", "scaled_rows_float32"}));
}

TEST_F(AddedKernelTest, IsCaughtWhereItIsWrong) {
  expect_noticed("scaled_rows", "weight[i % width];\n  }\n}\n#ifdef",
                 "weight[width > 3 ? i % (width - 1) : 0];\n  }\n}\n#ifdef");
  expect_noticed("saxpy", "out[first + i] = alpha * x[first + i] + y[first + i]",
                 "out[first + i] = alpha * x[first + i]");
}

// Shapes as they are drawn for a kernel of which nothing is known but its search space.
TEST(RaggedShapesTest, EverySpaceHasShapesThatAreDrawnFromItAlone) {
  for (const RaggedKernel& kernel : RaggedShapes::kernels(data_folder("search_spaces"))) {
    Space space = Space::load(data_folder("search_spaces") / (kernel.name + ".json"));
    space.kernel = "some_kernel";
    RaggedShapes draw(7);
    std::set<std::string> shapes;
    for (int i = 0; i < 30; ++i) {
      shapes.insert(draw.problem(space, kernel, *limits_of_architecture("sm_61")).text());
    }
    EXPECT_GE(shapes.size(), space.dimensions.empty() ? 1U : 10U) << kernel.text();
  }
}

}  // namespace
}  // namespace pascaline::testing
