#pragma once

#include <cstdint>

#include "runtime/dispatch/dispatcher.hpp"

namespace pascaline::testing {

/// Runs ops::matmul on random data over a poisoned C and compares with the float64 reference and the guard bands.
/// Fails the test where they differ.
void check_matmul(Dispatcher& dispatcher, std::int64_t m, std::int64_t n, std::int64_t k, ElementType type);

}  // namespace pascaline::testing
