#include "runtime/ops/elementwise.hpp"

#include "runtime/ops/checked.hpp"
#include "runtime/ops/checks.hpp"
#include "runtime/ops/launch.hpp"

namespace pascaline::ops {
namespace {

// Values of the dimension OPERATION.
enum class Operation : std::uint8_t { convert, add, silu_multiply, gelu_tanh, gelu_erf };

// `b` may be none.
bool checked(const Checks& check, Operand a, Operand b, Operand y) {
  constexpr ElementType kFloat = ElementType::float32;
  constexpr ElementType kHalf = ElementType::float16;
  constexpr ElementType kBrain = ElementType::bfloat16;
  check.same_shape(a, {kFloat, kHalf, kBrain}, a);
  if (b.name != nullptr) {
    check.same_shape(b, {a.tensor->type}, a);
  }
  check.same_shape(y, {kFloat, kHalf, kBrain}, a);
  if (is_empty(*y.tensor)) {
    return false;
  }
  check.addresses({a, b, y});
  check.same_or_apart(y, {a, b});
  return true;
}

// `b` may be none.
void run(Dispatcher& dispatcher, Operation operation, const TensorView& a, const TensorView& b, const TensorView& y) {
  const NamedDimension dimensions[] = {{"COUNT", a.shape[0] * row_length(a)},
                                       {"OPERATION", static_cast<int>(operation)}};
  const NamedType types[] = {{"INPUT", a.type}, {"OUTPUT", y.type}};
  void* const buffers[] = {a.data, b.data, y.data};
  launch(dispatcher, "elementwise", dimensions, types, buffers);
}

constexpr TensorView kNone;

}  // namespace

bool checked_convert(const TensorView& x, const TensorView& y) {
  return checked(Checks("convert"), {"x", &x}, {nullptr, &kNone}, {"y", &y});
}

bool checked_add(const TensorView& a, const TensorView& b, const TensorView& y) {
  return checked(Checks("add"), {"a", &a}, {"b", &b}, {"y", &y});
}

bool checked_silu_multiply(const TensorView& gate, const TensorView& factor, const TensorView& y) {
  return checked(Checks("silu_multiply"), {"gate", &gate}, {"factor", &factor}, {"y", &y});
}

bool checked_gelu_tanh(const TensorView& x, const TensorView& y) {
  return checked(Checks("gelu_tanh"), {"x", &x}, {nullptr, &kNone}, {"y", &y});
}

bool checked_gelu_erf(const TensorView& x, const TensorView& y) {
  return checked(Checks("gelu_erf"), {"x", &x}, {nullptr, &kNone}, {"y", &y});
}

void convert(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  if (checked_convert(x, y)) {
    run(dispatcher, Operation::convert, x, kNone, y);
  }
}

void add(Dispatcher& dispatcher, const TensorView& a, const TensorView& b, const TensorView& y) {
  if (checked_add(a, b, y)) {
    run(dispatcher, Operation::add, a, b, y);
  }
}

void silu_multiply(Dispatcher& dispatcher, const TensorView& gate, const TensorView& factor, const TensorView& y) {
  if (checked_silu_multiply(gate, factor, y)) {
    run(dispatcher, Operation::silu_multiply, gate, factor, y);
  }
}

void gelu_tanh(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  if (checked_gelu_tanh(x, y)) {
    run(dispatcher, Operation::gelu_tanh, x, kNone, y);
  }
}

void gelu_erf(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  if (checked_gelu_erf(x, y)) {
    run(dispatcher, Operation::gelu_erf, x, kNone, y);
  }
}

}  // namespace pascaline::ops
