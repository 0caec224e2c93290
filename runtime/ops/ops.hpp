#pragma once

// Every operation, as a function over tensors on a dispatcher's device. The first call of an operation with a shape
// prepares a kernel for it, which throws an Error while the device records: call each shape once before recording it.

#include "runtime/ops/attention.hpp"    // IWYU pragma: export
#include "runtime/ops/elementwise.hpp"  // IWYU pragma: export
#include "runtime/ops/layout.hpp"       // IWYU pragma: export
#include "runtime/ops/matmul.hpp"       // IWYU pragma: export
#include "runtime/ops/norm.hpp"         // IWYU pragma: export
#include "runtime/ops/rope.hpp"         // IWYU pragma: export
#include "runtime/ops/sample.hpp"       // IWYU pragma: export
