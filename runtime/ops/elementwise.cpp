#include "runtime/ops/elementwise.hpp"

namespace pascaline::ops {
namespace {

// Values of the dimension OPERATION.
enum class Formula : std::uint8_t { convert, add, silu_multiply, gelu_tanh, gelu_erf, gelu_multiply };

constexpr std::initializer_list<ElementType> kReals{ElementType::float32, ElementType::float16, ElementType::bfloat16};

bool check_unary(const Checks& check, const TensorView& x, const TensorView& y) {
  check.same_shape({"x", &x}, kReals, {"x", &x});
  check.same_shape({"y", &y}, kReals, {"x", &x});
  return !is_empty(y);
}

bool check_binary(const Checks& check, Operand a, Operand b, const TensorView& y) {
  check.same_shape(a, kReals, a);
  check.same_shape(b, {a.tensor->type}, a);
  check.same_shape({"y", &y}, kReals, a);
  return !is_empty(y);
}

KernelProblem elementwise(Formula formula, const TensorView& a, const TensorView& y) {
  return {"elementwise",
          {{"COUNT", a.shape[0] * row_length(a)}, {"OPERATION", static_cast<std::int64_t>(formula)}},
          {{"INPUT", a.type}, {"OUTPUT", y.type}}};
}

}  // namespace

bool Convert::check() const { return check_unary(Checks(kName), x, y); }
bool Add::check() const { return check_binary(Checks(kName), {"a", &a}, {"b", &b}, y); }
bool SiluMultiply::check() const { return check_binary(Checks(kName), {"gate", &gate}, {"factor", &factor}, y); }
bool GeluMultiply::check() const { return check_binary(Checks(kName), {"gate", &gate}, {"factor", &factor}, y); }
bool GeluTanh::check() const { return check_unary(Checks(kName), x, y); }
bool GeluErf::check() const { return check_unary(Checks(kName), x, y); }

KernelProblem Convert::problem() const { return elementwise(Formula::convert, x, y); }
KernelProblem Add::problem() const { return elementwise(Formula::add, a, y); }
KernelProblem SiluMultiply::problem() const { return elementwise(Formula::silu_multiply, gate, y); }
KernelProblem GeluMultiply::problem() const { return elementwise(Formula::gelu_multiply, gate, y); }
KernelProblem GeluTanh::problem() const { return elementwise(Formula::gelu_tanh, x, y); }
KernelProblem GeluErf::problem() const { return elementwise(Formula::gelu_erf, x, y); }

}  // namespace pascaline::ops
