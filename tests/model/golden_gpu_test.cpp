#include <gtest/gtest.h>

#include "model/model.hpp"
#include "tests/model/golden_run.hpp"
#include "tests/model/recorded_run.hpp"

namespace pascaline::testing {
namespace {

class GoldenGpuTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string note;
    if (list_devices(&note).front().kind != DeviceKind::cuda) {
      GTEST_SKIP() << "no CUDA device: " << note;
    }
    device_ = open_device("cuda:0");
    DispatcherOptions options;
    options.cache = PASCALINE_TEST_CACHE;
    options.target = GetParam();
    dispatcher_ = std::make_unique<Dispatcher>(*device_, options);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_P(GoldenGpuTest, ModelsInFloat32) {
  Executor executor(*dispatcher_);
  check_golden(executor, golden_model_a());
  check_golden(executor, golden_model_b());
  check_golden(executor, golden_model_c());
  EXPECT_FALSE(executor.fell_back());
}

TEST_P(GoldenGpuTest, BothModelsInFloat16) {
  Executor executor(*dispatcher_);
  check_golden(executor, golden_model_a(), {ElementType::float16, ElementType::float16, 1e-2F});
  check_golden(executor, golden_model_b(), {ElementType::float16, ElementType::float16, 2e-2F});
  EXPECT_FALSE(executor.fell_back());
}

TEST_P(GoldenGpuTest, Qwen3AsTransformersComputesIt) {
  Executor executor(*dispatcher_);
  const std::filesystem::path models = PASCALINE_CHECKPOINT_DATA;
  check_recorded(executor, models / "qwen3_tied");
  check_recorded(executor, models / "qwen3_untied", {ElementType::float16, ElementType::float16, 1e-2F});
  EXPECT_FALSE(executor.fell_back());
}

INSTANTIATE_TEST_SUITE_P(Targets, GoldenGpuTest, ::testing::Values("", "sm_61"), [](const auto& instance) {
  return *instance.param == '\0' ? std::string("native") : std::string(instance.param);
});

}  // namespace
}  // namespace pascaline::testing
