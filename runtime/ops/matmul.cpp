#include "runtime/ops/matmul.hpp"

#include "runtime/ops/checked.hpp"
#include "runtime/ops/checks.hpp"
#include "runtime/ops/launch.hpp"

namespace pascaline::ops {
namespace {

constexpr std::int64_t kMatvecRows = 8;

// Names of the operands and of the extents M, N, K in messages.
struct Names {
  const char* a;
  const char* b;
  const char* c;
  const char* m;
  const char* n;
  const char* k;
};

void check_operands(const Checks& check, const Names& names, const MatmulArguments& given) {
  const Extent m{names.m, given.a.shape[0]};
  const Extent n{names.n, given.b.values.shape[0]};
  const Extent k{names.k, given.a.shape[1]};
  check.require(given.epilogue <= Epilogue::bias_residual, "the epilogue is none of ops::Epilogue");
  check.dense({names.a, &given.a}, {ElementType::float32, ElementType::float16}, {m, k});
  check.dense({names.b, &given.b.values}, {ElementType::float32, ElementType::float16, ElementType::bfloat16}, {n, k});
  if (given.epilogue == Epilogue::swiglu) {
    check.require(n.value % 2 == 0, "N is odd; swiglu needs as many gates as factors");
    check.dense({names.c, &given.c}, {given.a.type}, {m, {"N/2", n.value / 2}});
  } else {
    check.dense({names.c, &given.c}, {given.a.type}, {m, n});
  }
  if (has_bias(given.epilogue)) {
    check.dense({"bias", &given.bias}, {ElementType::float32}, {n});
  } else {
    check.absent({"bias", &given.bias}, "the epilogue adds none");
  }
  if (has_residual(given.epilogue)) {
    check.dense({"residual", &given.residual}, {given.a.type}, {m, n});
  } else {
    check.absent({"residual", &given.residual}, "the epilogue adds none");
  }
}

bool checked(const Checks& check, const Names& names, const MatmulArguments& given) {
  check_operands(check, names, given);
  if (is_empty(given.c)) {
    return false;
  }
  check.require(given.a.shape[1] > 0, "K is 0, every sum would be zero; fill the result instead");
  const Operand a{names.a, &given.a};
  const Operand b{names.b, &given.b.values};
  const Operand c{names.c, &given.c};
  const Operand bias{"bias", &given.bias};
  const Operand residual{"residual", &given.residual};
  check.addresses({a, b, c, bias, residual});
  check.apart(c, {a, b, bias});
  check.same_or_apart(c, {residual});
  return true;
}

MatmulArguments patch_product(const TensorView& patches, const TensorView& weight, const TensorView& bias,
                              const TensorView& y) {
  return {patches, weight, y, bias, {}, Epilogue::bias};
}

void run(Dispatcher& dispatcher, const MatmulArguments& given) {
  const std::int64_t rows = given.a.shape[0];
  const NamedDimension dimensions[] = {{"M", rows},
                                       {"N", given.b.values.shape[0]},
                                       {"K", given.a.shape[1]},
                                       {"EPILOGUE", static_cast<int>(given.epilogue)}};
  const NamedType types[] = {{"STORAGE", given.a.type}, {"WEIGHT", given.b.values.type}};
  void* const buffers[] = {given.a.data, given.b.values.data, given.bias.data, given.residual.data, given.c.data};
  launch(dispatcher, rows <= kMatvecRows ? KernelName("matvec") : KernelName("matmul"), dimensions, types, buffers);
}

}  // namespace

bool has_bias(Epilogue epilogue) noexcept {
  return epilogue == Epilogue::bias || epilogue == Epilogue::bias_gelu_tanh || epilogue == Epilogue::bias_gelu_erf ||
         epilogue == Epilogue::bias_residual;
}

bool has_residual(Epilogue epilogue) noexcept {
  return epilogue == Epilogue::residual || epilogue == Epilogue::bias_residual;
}

bool checked_matmul(const MatmulArguments& arguments) {
  return checked(Checks("matmul"), {"A", "B", "C", "M", "N", "K"}, arguments);
}

bool checked_patch_embed(const TensorView& patches, const TensorView& weight, const TensorView& bias,
                         const TensorView& y) {
  return checked(Checks("patch_embed"), {"patches", "weight", "y", "N", "WIDTH", "P"},
                 patch_product(patches, weight, bias, y));
}

void matmul(Dispatcher& dispatcher, const MatmulArguments& arguments) {
  if (checked_matmul(arguments)) {
    run(dispatcher, arguments);
  }
}

void matmul(Dispatcher& dispatcher, const TensorView& a, const TensorView& b, const TensorView& c) {
  matmul(dispatcher, {a, b, c, {}, {}, Epilogue::none});
}

void patch_embed(Dispatcher& dispatcher, const TensorView& patches, const TensorView& weight, const TensorView& bias,
                 const TensorView& y) {
  if (checked_patch_embed(patches, weight, bias, y)) {
    run(dispatcher, patch_product(patches, weight, bias, y));
  }
}

}  // namespace pascaline::ops
