#pragma once

// Every operation, as a function over tensors on a dispatcher's device.

#include "runtime/ops/attention.hpp"    // IWYU pragma: export
#include "runtime/ops/elementwise.hpp"  // IWYU pragma: export
#include "runtime/ops/layout.hpp"       // IWYU pragma: export
#include "runtime/ops/matmul.hpp"       // IWYU pragma: export
#include "runtime/ops/norm.hpp"         // IWYU pragma: export
#include "runtime/ops/rope.hpp"         // IWYU pragma: export
