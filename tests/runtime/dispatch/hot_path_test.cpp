#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"

namespace {
thread_local int allocations = 0;
}  // namespace

// A program of its own: these global allocation functions count what each thread allocates.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pascaline::testing {
namespace {

class HotPathTest : public ::testing::Test {
 protected:
  static DispatcherOptions options() {
    DispatcherOptions options;
    options.cache = PASCALINE_TEST_CACHE;
    return options;
  }
  // `count` floats of their own.
  float* floats(int count) {
    float* taken = memory_ + used_;
    used_ += (count + 3) / 4 * 4;
    return taken;
  }
  // Launches once to prepare, then a hundred times.
  template <typename Launch>
  void expect_no_allocations(Launch launch) {
    launch();
    ASSERT_GT(allocations, 0) << "the counter must count";
    allocations = 0;
    for (int i = 0; i < 100; ++i) {
      launch();
    }
    EXPECT_EQ(allocations, 0);
    EXPECT_EQ(device_.launches, 101);
    EXPECT_EQ(device_.loads, 1);
  }

  FakeDevice device_;
  Dispatcher dispatcher_{device_, options()};
  alignas(16) float memory_[1024] = {};
  int used_ = 0;
};

TEST_F(HotPathTest, ASecondMatmulOfAShapeAllocatesNothing) {
  const TensorView a(floats(72), ElementType::float32, {9, 8});
  const TensorView b(floats(32), ElementType::float32, {4, 8});
  const TensorView c(floats(36), ElementType::float32, {9, 4});
  expect_no_allocations([&] { ops::run(dispatcher_, ops::Matmul{a, b, c}); });
}

TEST_F(HotPathTest, ASecondAttentionOfAShapeAllocatesNothing) {
  const ElementType type = ElementType::float32;
  const ops::AttentionDecode arguments{.q = {floats(32), type, {2, 16}},
                                       .k = {floats(64), type, {4, 1, 16}},
                                       .v = {floats(64), type, {4, 1, 16}},
                                       .length = {floats(1), ElementType::int32, {1}},
                                       .out = {floats(32), type, {2, 16}}};
  expect_no_allocations([&] { ops::run(dispatcher_, arguments); });
}

}  // namespace
}  // namespace pascaline::testing
