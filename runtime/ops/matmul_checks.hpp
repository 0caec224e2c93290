#pragma once

#include "runtime/ops/checks.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline::ops {

/// Names of a product's operands and of its extents M, N, K in messages.
struct ProductNames {
  const char* a;
  const char* b;
  const char* c;
  const char* m;
  const char* n;
  const char* k;
};

/// Checks a product as Matmul::check does; false where there is nothing to do.
[[nodiscard]] bool is_product(const Checks& check, const ProductNames& names, const Matmul& given);

}  // namespace pascaline::ops
