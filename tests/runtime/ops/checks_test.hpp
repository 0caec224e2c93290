#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>

#include "core/error.hpp"
#include "runtime/ops/operation.hpp"

namespace pascaline::testing {

/// Operands in one piece of memory, which `check` does not look at.
class ChecksTest : public ::testing::Test {
 protected:
  [[nodiscard]] TensorView tensor(ElementType type, std::initializer_list<std::int64_t> shape) {
    return {memory_, type, shape};
  }
  static std::string refusal(const ops::Operation auto& op) {
    try {
      return op.check() ? "taken" : "nothing to do";
    } catch (const Error& error) {
      return error.what();
    }
  }
  static void expect_refusal(const ops::Operation auto& op, const char* message) {
    EXPECT_NE(refusal(op).find(message), std::string::npos) << refusal(op);
  }
  alignas(64) std::byte memory_[64]{};
};

}  // namespace pascaline::testing
