#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>

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

TEST(HotPathTest, ASecondLaunchOfAShapeAllocatesNothing) {
  FakeDevice device;
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(device, options);
  alignas(16) float memory[64] = {};
  const TensorView a(memory, ElementType::float32, {8, 8});
  const TensorView c(memory, ElementType::float32, {8, 4});
  const TensorView b(memory, ElementType::float32, {4, 8});
  ops::matmul(dispatcher, a, b, c);
  ASSERT_GT(allocations, 0) << "the counter must count";

  allocations = 0;
  for (int i = 0; i < 100; ++i) {
    ops::matmul(dispatcher, a, b, c);
  }
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(device.launches, 101);
  EXPECT_EQ(device.loads, 1);
}

}  // namespace
}  // namespace pascaline::testing
