#include <gtest/gtest.h>

#include "model/model.hpp"
#include "tests/model/golden_run.hpp"

namespace pascaline::testing {
namespace {

TEST(GoldenTest, AOnTheProcessor) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_golden(executor, golden_model_a());
}

TEST(GoldenTest, BOnTheProcessor) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_golden(executor, golden_model_b());
}

TEST(GoldenTest, VisionHeadsThatAreNoPowerOfTwo) {
  const auto host = open_device("emulator");
  Executor processor(*host);
  check_golden(processor, golden_model_c());
  check_golden(processor, golden_model_c(), {ElementType::float16, ElementType::float32, 1e-4F});
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host, options);
  Executor kernels(dispatcher);
  check_golden(kernels, golden_model_c());
  EXPECT_FALSE(kernels.fell_back());
}

TEST(GoldenTest, AWithFloat16WeightsOnTheProcessor) {
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_golden(executor, golden_model_a(), {ElementType::float16, ElementType::float32, 1e-4F});
  check_golden(executor, golden_model_a(), {ElementType::float16, ElementType::float16, 1e-2F});
}

// Text model and projector, written by the package gguf: make_projector_fixture.py.
TEST(GoldenTest, AFromGgufFiles) {
  const std::filesystem::path data = PASCALINE_CHECKPOINT_DATA;
  const ModelLocation files(data / "tiny_a.gguf", data / "mmproj-tiny_a.gguf");
  GoldenModel golden = golden_model_a();
  golden.config = load_model_config(files);
  const auto open = [&] { return checkpoint_weights(Checkpoint::open(files, golden.config)); };
  const auto host = open_device("emulator");
  Executor executor(*host);
  check_golden(executor, golden, {}, open);
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host, options);
  Executor kernels(dispatcher);
  check_golden(kernels, golden, {ElementType::float16, ElementType::float32, 1e-4F}, open);
  EXPECT_FALSE(kernels.fell_back());
}

TEST(GoldenTest, AOnHostKernels) {
  const auto host = open_device("emulator");
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host, options);
  Executor executor(dispatcher);
  check_golden(executor, golden_model_a());
  EXPECT_FALSE(executor.fell_back());
}

}  // namespace
}  // namespace pascaline::testing
