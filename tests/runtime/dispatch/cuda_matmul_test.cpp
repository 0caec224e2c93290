#include <gtest/gtest.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "tests/runtime/dispatch/matmul_check.hpp"

namespace pascaline::testing {
namespace {

class CudaMatmulTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaMatmulTest, AgreesWithTheReferenceOnRaggedShapes) {
  std::string note;
  if (list_devices(&note).front().kind != DeviceKind::cuda) {
    GTEST_SKIP() << "no CUDA device: " << note;
  }
  const auto device = open_device("cuda:0");
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  options.target = GetParam();
  Dispatcher dispatcher(*device, options);
  for (const ElementType type : {ElementType::float32, ElementType::float16}) {
    check_matmul(dispatcher, 1, 1, 1, type);
    check_matmul(dispatcher, 5, 7, 9, type);
    check_matmul(dispatcher, 130, 131, 257, type);
    check_matmul(dispatcher, 333, 512, 1000, type);
  }
  for (const Miss& miss : dispatcher.misses()) {
    EXPECT_EQ(miss.provenance, Provenance::default_config) << miss.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaMatmulTest, ::testing::Values("", "sm_61"),
                         [](const auto& test) { return test.param[0] == '\0' ? "native" : test.param; });

}  // namespace
}  // namespace pascaline::testing
