#include "runtime/ops/elementwise.hpp"

#include "runtime/ops/checks.hpp"
#include "runtime/ops/launch.hpp"

namespace pascaline::ops {
namespace {

// Values of the dimension OPERATION.
enum class Operation : std::uint8_t { convert, add, silu_multiply, gelu_tanh, gelu_erf };

// `b` may be none.
void run(Dispatcher& dispatcher, const Checks& check, Operation operation, Operand a, Operand b, Operand y) {
  constexpr ElementType kFloat = ElementType::float32;
  constexpr ElementType kHalf = ElementType::float16;
  constexpr ElementType kBrain = ElementType::bfloat16;
  check.same_shape(a, {kFloat, kHalf, kBrain}, a);
  if (b.name != nullptr) {
    check.same_shape(b, {a.tensor->type}, a);
  }
  check.same_shape(y, {kFloat, kHalf, kBrain}, a);
  if (is_empty(*y.tensor)) {
    return;
  }
  check.addresses({a, b, y});
  check.same_or_apart(y, {a, b});
  const NamedDimension dimensions[] = {{"COUNT", a.tensor->shape[0] * row_length(*a.tensor)},
                                       {"OPERATION", static_cast<int>(operation)}};
  const NamedType types[] = {{"INPUT", a.tensor->type}, {"OUTPUT", y.tensor->type}};
  void* const buffers[] = {a.tensor->data, b.tensor->data, y.tensor->data};
  launch(dispatcher, "elementwise", dimensions, types, buffers);
}

constexpr TensorView kNone;

}  // namespace

void convert(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  run(dispatcher, Checks("convert"), Operation::convert, {"x", &x}, {nullptr, &kNone}, {"y", &y});
}

void add(Dispatcher& dispatcher, const TensorView& a, const TensorView& b, const TensorView& y) {
  run(dispatcher, Checks("add"), Operation::add, {"a", &a}, {"b", &b}, {"y", &y});
}

void silu_multiply(Dispatcher& dispatcher, const TensorView& gate, const TensorView& factor, const TensorView& y) {
  run(dispatcher, Checks("silu_multiply"), Operation::silu_multiply, {"gate", &gate}, {"factor", &factor}, {"y", &y});
}

void gelu_tanh(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  run(dispatcher, Checks("gelu_tanh"), Operation::gelu_tanh, {"x", &x}, {nullptr, &kNone}, {"y", &y});
}

void gelu_erf(Dispatcher& dispatcher, const TensorView& x, const TensorView& y) {
  run(dispatcher, Checks("gelu_erf"), Operation::gelu_erf, {"x", &x}, {nullptr, &kNone}, {"y", &y});
}

}  // namespace pascaline::ops
