#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/operation.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/ops/element_types.hpp"

namespace pascaline::testing {

/// An extent, or a row stride, that is just taken.
inline constexpr std::int64_t kLarge = std::int64_t{1} << 30;

/// A tensor on the fake device: number `place` of 24, in memory that no other number has.
inline TensorView placed(std::size_t place, std::initializer_list<std::int64_t> shape,
                         ElementType type = ElementType::float32) {
  constexpr std::size_t kBytes = 4096;
  alignas(64) static std::byte memory[24 * kBytes];
  return {memory + place * kBytes, type, shape};
}

/// One call that must be refused.
struct Refusal {
  const char* name;
  std::function<void(Dispatcher&)> call;
  const char* message;  // part of it
};

/// Runs the operation that `make` gives, spoiled in one place.
template <typename Op>
std::function<void(Dispatcher&)> spoiled(Op (*make)(), std::function<void(Op&)> spoil) {
  return [=](Dispatcher& dispatcher) {
    Op op = make();
    spoil(op);
    ops::run(dispatcher, op);
  };
}

/// A dispatcher on a device whose launches do nothing but count.
class RefusalsTest : public ::testing::Test {
 protected:
  static DispatcherOptions options() {
    DispatcherOptions options;
    options.cache = PASCALINE_TEST_CACHE;
    return options;
  }
  void expect_refusals(std::span<const Refusal> refusals) {
    for (const Refusal& refusal : refusals) {
      try {
        refusal.call(dispatcher_);
        ADD_FAILURE() << "taken: " << refusal.name;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(refusal.message), std::string::npos)
            << refusal.name << ": " << error.what();
      }
      EXPECT_EQ(device_.launches, 0) << refusal.name;
    }
    EXPECT_TRUE(dispatcher_.misses().empty()) << "what is refused needs no kernel";
  }

  FakeDevice device_;
  Dispatcher dispatcher_{device_, options()};
};

}  // namespace pascaline::testing
