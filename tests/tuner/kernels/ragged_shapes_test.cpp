#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/util/paths.hpp"
#include "tests/tuner/kernels/ragged_sweep.hpp"

namespace pascaline::testing {
namespace {

TEST(RaggedShapesTest, EveryShippedKernelIsLookedAt) {
  std::vector<std::string> shipped;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("search_spaces"))) {
    if (entry.path().extension() == ".json") {
      shipped.push_back(entry.path().stem().string());
    }
  }
  std::sort(shipped.begin(), shipped.end());
  EXPECT_EQ(RaggedShapes::kernels(), shipped) << "give a new kernel its shapes in ragged_shapes.cpp";
}

/// A kernel and the type its first type variable stands for.
class RaggedHostTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(RaggedHostTest, AgreesWithTheReference) {
  const auto device = open_device("emulator");
  const auto& [kernel, storage] = GetParam();
  RaggedSweep(*device, "", kernel, *element_type_from(storage), {40, 4, 3, 3}).run();
}

INSTANTIATE_TEST_SUITE_P(Kernels, RaggedHostTest,
                         ::testing::Combine(::testing::ValuesIn(RaggedShapes::kernels()),
                                            ::testing::Values("float32", "float16")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                         });

}  // namespace
}  // namespace pascaline::testing
