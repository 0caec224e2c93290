#pragma once

#include <gtest/gtest.h>

#include <algorithm>
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

inline constexpr std::size_t kPlaceBytes = 4096;
alignas(64) inline std::byte place_memory[24 * kPlaceBytes];

/// A tensor on the fake device: number `place` of 24, in memory that no other number has.
inline TensorView placed(std::size_t place, std::initializer_list<std::int64_t> shape,
                         ElementType type = ElementType::float32) {
  return {place_memory + place * kPlaceBytes, type, shape};
}

/// Launches an operation, or computes it on the processor without a dispatcher.
using Call = std::function<void(Dispatcher*)>;

/// One call that must be refused.
struct Refusal {
  const char* name;
  Call call;
  const char* message;  // part of it
};

template <typename Op>
Call call(const Op& op) {
  return [op](Dispatcher* dispatcher) { dispatcher != nullptr ? ops::run(*dispatcher, op) : ops::compute(op); };
}

/// The operation that `make` gives, spoiled in one place.
template <typename Op, typename Spoil>
Call bad(Op (*make)(), const Spoil& spoil) {
  Op op = make();
  spoil(op);
  return call(op);
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
    std::ranges::fill(place_memory, std::byte{0x2A});
    for (const Refusal& refusal : refusals) {
      for (Dispatcher* const dispatcher : {&dispatcher_, static_cast<Dispatcher*>(nullptr)}) {
        try {
          refusal.call(dispatcher);
          ADD_FAILURE() << "taken: " << refusal.name;
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find(refusal.message), std::string::npos)
              << refusal.name << ": " << error.what();
        }
      }
      EXPECT_EQ(device_.launches, 0) << refusal.name;
    }
    EXPECT_TRUE(dispatcher_.misses().empty()) << "what is refused needs no kernel";
    EXPECT_TRUE(std::ranges::all_of(place_memory, [](std::byte byte) { return byte == std::byte{0x2A}; }))
        << "something was written";
  }
  /// Launches it, and computes it on the processor in memory of zeros.
  template <typename Op>
  void expect_taken(const Op& op) {
    std::ranges::fill(place_memory, std::byte{0});
    ops::run(dispatcher_, op);
    ops::compute(op);
  }

  FakeDevice device_;
  Dispatcher dispatcher_{device_, options()};
};

}  // namespace pascaline::testing
