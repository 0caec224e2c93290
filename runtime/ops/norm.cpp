#include "runtime/ops/norm.hpp"

#include "runtime/formats/int8_activations.hpp"

namespace pascaline::ops {
namespace {

// What rmsnorm and layernorm have in common.
template <typename Norm>
void check_norm(const Checks& check, const Norm& of) {
  const Extent rows{"ROWS", of.x.shape[0]};
  const Extent width{"WIDTH", of.x.shape[1]};
  check.dense({"x", &of.x}, {ElementType::float32, ElementType::float16}, {rows, width});
  check.dense({"weight", &of.weight}, {ElementType::float32}, {width});
  check.dense({"y", &of.y}, {ElementType::float32, ElementType::float16, ElementType::int8}, {rows, width});
  if (of.y.type == ElementType::int8) {
    check.require(width.value % kActivationBlock == 0, "y is int8, and WIDTH no multiple of 32");
    const Extent blocks{"blocks", of.by_row ? 1 : width.value / kActivationBlock};
    check.dense({"scales", &of.scales}, {ElementType::float32}, {blocks, rows});
  } else {
    check.absent({"scales", &of.scales}, "y is not int8");
    check.require(!of.by_row, "y has no scales to be by row");
  }
  if (is_given(of.residual)) {
    check.dense({"residual", &of.residual}, {of.x.type}, {rows, width});
    check.require(size_of(of.y.type) <= size_of(of.x.type), "y is float32; with a float16 residual it must be float16");
  }
}

}  // namespace

bool Rmsnorm::check() const {
  check_norm(Checks(kName), *this);
  check_epsilon(Checks(kName), epsilon);
  return !is_empty(y);
}

KernelProblem Rmsnorm::problem() const {
  return {"rmsnorm",
          {{"ROWS", x.shape[0]},
           {"WIDTH", x.shape[1]},
           {"RESIDUAL", is_given(residual) ? 1 : 0},
           {"BY_ROW", by_row ? 1 : 0},
           {"EPSILON", epsilon.nano}},
          {{"STORAGE", x.type}, {"OUTPUT", y.type}}};
}

bool Layernorm::check() const {
  const Checks check(kName);
  check_norm(check, *this);
  check.dense({"bias", &bias}, {ElementType::float32}, {{"WIDTH", x.shape[1]}});
  return !is_empty(y);
}

KernelProblem Layernorm::problem() const {
  return {"layernorm",
          {{"ROWS", x.shape[0]},
           {"WIDTH", x.shape[1]},
           {"RESIDUAL", is_given(residual) ? 1 : 0},
           {"BY_ROW", by_row ? 1 : 0}},
          {{"STORAGE", x.type}, {"OUTPUT", y.type}}};
}

bool RowStatistics::check() const {
  const Checks check(kName);
  const Extent rows{"ROWS", x.shape[0]};
  check.require(norm == RowNorm::rms || norm == RowNorm::layer, "the norm is none of ops::RowNorm");
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {rows, {"WIDTH", x.shape[1]}});
  check.dense({"statistics", &statistics}, {ElementType::float32}, {{"NORM", static_cast<std::int64_t>(norm)}, rows});
  check_epsilon(check, epsilon);
  return !is_empty(x);
}

KernelProblem RowStatistics::problem() const {
  return {"row_statistics",
          {{"ROWS", x.shape[0]},
           {"WIDTH", x.shape[1]},
           {"NORM", static_cast<std::int64_t>(norm)},
           {"EPSILON", epsilon.nano}},
          {{"STORAGE", x.type}}};
}

bool Softmax::check() const {
  const Checks check(kName);
  const Extent rows{"ROWS", x.shape[0]};
  const Extent width{"WIDTH", x.shape[1]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {rows, width});
  check.dense({"y", &y}, {x.type}, {rows, width});
  return !is_empty(y);
}

KernelProblem Softmax::problem() const {
  return {"softmax", {{"ROWS", x.shape[0]}, {"WIDTH", x.shape[1]}}, {{"STORAGE", x.type}}};
}

}  // namespace pascaline::ops
