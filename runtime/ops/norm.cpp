#include "runtime/ops/norm.hpp"

#include "runtime/ops/checked.hpp"
#include "runtime/ops/checks.hpp"
#include "runtime/ops/launch.hpp"

namespace pascaline::ops {
namespace {

// What rmsnorm and layernorm have in common.
void check_rows(const Checks& check, const TensorView& x, const TensorView& weight, const TensorView& y,
                const TensorView& residual) {
  const Extent rows{"ROWS", x.shape[0]};
  const Extent width{"WIDTH", x.shape[1]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {rows, width});
  check.dense({"weight", &weight}, {ElementType::float32}, {width});
  check.dense({"y", &y}, {ElementType::float32, ElementType::float16}, {rows, width});
  if (is_given(residual)) {
    check.dense({"residual", &residual}, {x.type}, {rows, width});
    check.require(size_of(y.type) <= size_of(x.type), "y is float32; with a float16 residual it must be float16");
  }
}

void launch_rows(Dispatcher& dispatcher, KernelName kernel, const TensorView& x, const TensorView& y,
                 const TensorView& residual, std::span<void* const> buffers) {
  const NamedDimension dimensions[] = {
      {"ROWS", x.shape[0]}, {"WIDTH", x.shape[1]}, {"RESIDUAL", is_given(residual) ? 1 : 0}};
  const NamedType types[] = {{"STORAGE", x.type}, {"OUTPUT", y.type}};
  launch(dispatcher, kernel, dimensions, types, buffers);
}

}  // namespace

bool checked_rmsnorm(const RmsnormArguments& given) {
  const Checks check("rmsnorm");
  check_rows(check, given.x, given.weight, given.y, given.residual);
  if (is_empty(given.y)) {
    return false;
  }
  const Operand x{"x", &given.x};
  const Operand weight{"weight", &given.weight};
  const Operand y{"y", &given.y};
  const Operand residual{"residual", &given.residual};
  check.addresses({x, weight, y, residual});
  check.apart(y, {x, weight, residual});
  check.apart(residual, {x, weight});
  return true;
}

void rmsnorm(Dispatcher& dispatcher, const RmsnormArguments& given) {
  if (!checked_rmsnorm(given)) {
    return;
  }
  void* const buffers[] = {given.x.data, given.weight.data, given.y.data, given.residual.data};
  launch_rows(dispatcher, "rmsnorm", given.x, given.y, given.residual, buffers);
}

bool checked_layernorm(const LayernormArguments& given) {
  const Checks check("layernorm");
  check_rows(check, given.x, given.weight, given.y, given.residual);
  check.dense({"bias", &given.bias}, {ElementType::float32}, {{"WIDTH", given.x.shape[1]}});
  if (is_empty(given.y)) {
    return false;
  }
  const Operand x{"x", &given.x};
  const Operand weight{"weight", &given.weight};
  const Operand bias{"bias", &given.bias};
  const Operand y{"y", &given.y};
  const Operand residual{"residual", &given.residual};
  check.addresses({x, weight, bias, y, residual});
  check.apart(y, {x, weight, bias, residual});
  check.apart(residual, {x, weight, bias});
  return true;
}

void layernorm(Dispatcher& dispatcher, const LayernormArguments& given) {
  if (!checked_layernorm(given)) {
    return;
  }
  void* const buffers[] = {given.x.data, given.weight.data, given.bias.data, given.y.data, given.residual.data};
  launch_rows(dispatcher, "layernorm", given.x, given.y, given.residual, buffers);
}

bool checked_softmax(const TensorView& x, const TensorView& y) {
  const Checks check("softmax");
  const Extent rows{"ROWS", x.shape[0]};
  const Extent width{"WIDTH", x.shape[1]};
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {rows, width});
  check.dense({"y", &y}, {x.type}, {rows, width});
  if (is_empty(y)) {
    return false;
  }
  check.addresses({{"x", &x}, {"y", &y}});
  check.apart({"y", &y}, {{"x", &x}});
  return true;
}

void softmax(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  if (!checked_softmax(x, y)) {
    return;
  }
  const NamedDimension dimensions[] = {{"ROWS", x.shape[0]}, {"WIDTH", x.shape[1]}};
  const NamedType types[] = {{"STORAGE", x.type}};
  void* const buffers[] = {x.data, y.data};
  launch(dispatcher, "softmax", dimensions, types, buffers);
}

}  // namespace pascaline::ops
