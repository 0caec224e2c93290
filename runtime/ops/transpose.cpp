#include "runtime/ops/transpose.hpp"

namespace pascaline::ops {

bool Transpose::check() const {
  const Checks check(kName);
  const Extent rows{"ROWS", x.shape[0]};
  const Extent columns{"COLUMNS", x.shape[1]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {rows, columns});
  check.dense({"y", &y}, {x.type}, {columns, rows});
  return !is_empty(y);
}

KernelProblem Transpose::problem() const {
  return {"transpose", {{"ROWS", x.shape[0]}, {"COLUMNS", x.shape[1]}}, {{"STORAGE", x.type}}};
}

}  // namespace pascaline::ops
