#include "runtime/ops/matmul.hpp"

namespace pascaline::ops {
namespace {

constexpr std::int64_t kMatvecRows = 8;

// Names of the operands and of the extents M, N, K in messages.
struct ProductNames {
  const char* a;
  const char* b;
  const char* c;
  const char* m;
  const char* n;
  const char* k;
};

void check_weight(const Checks& check, const char* name, const WeightView& weight, Extent n, Extent k) {
  const Operand values{name, &weight.values};
  const Operand scales{"scales", &weight.scales};
  if (weight.format == WeightFormat::int8_rows) {
    check.dense(values, {ElementType::int8}, {n, k});
    check.dense(scales, {ElementType::float32}, {n});
  } else {
    check.dense(values, {ElementType::float32, ElementType::float16, ElementType::bfloat16}, {n, k});
    check.absent(scales, "the weight's format has none");
  }
  check.absent({"zeros", &weight.zeros}, "the weight's format has none");
}

void check_product(const Checks& check, const ProductNames& names, const Matmul& given) {
  const Extent m{names.m, given.a.shape[0]};
  const Extent n{names.n, given.b.values.shape[0]};
  const Extent k{names.k, given.a.shape[1]};
  check.require(given.epilogue <= Epilogue::bias_residual, "the epilogue is none of ops::Epilogue");
  check.dense({names.a, &given.a}, {ElementType::float32, ElementType::float16}, {m, k});
  check_weight(check, names.b, given.b, n, k);
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

bool is_product(const Checks& check, const ProductNames& names, const Matmul& given) {
  check_product(check, names, given);
  if (is_empty(given.c)) {
    return false;
  }
  check.require(given.a.shape[1] > 0, "K is 0, every sum would be zero; fill the result instead");
  return true;
}

Matmul product_of(const PatchEmbed& given) {
  return {.a = given.patches, .b = given.weight, .c = given.y, .bias = given.bias, .epilogue = Epilogue::bias};
}

}  // namespace

bool Matmul::check() const { return is_product(Checks(kName), {"A", "B", "C", "M", "N", "K"}, *this); }

KernelProblem Matmul::problem() const {
  const std::int64_t rows = a.shape[0];
  return {rows <= kMatvecRows ? KernelName("matvec") : KernelName("matmul"),
          {{"M", rows}, {"N", b.values.shape[0]}, {"K", a.shape[1]}, {"EPILOGUE", static_cast<std::int64_t>(epilogue)}},
          {{"STORAGE", a.type}, {"WEIGHT", b.values.type}}};
}

bool PatchEmbed::check() const {
  return is_product(Checks(kName), {"patches", "weight", "y", "N", "WIDTH", "P"}, product_of(*this));
}

KernelProblem PatchEmbed::problem() const { return product_of(*this).problem(); }

void PatchEmbed::compute() const { product_of(*this).compute(); }

}  // namespace pascaline::ops
