#include "runtime/ops/matmul.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/error.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/matmul_checks.hpp"
#include "runtime/ops/weight_checks.hpp"

namespace pascaline::ops {
namespace {

// What a product is finished with: of [m, n] and one of the types, with a bias and a residual as the epilogue says.
void check_result(const Checks& check, Epilogue epilogue, std::initializer_list<ElementType> types, Operand c,
                  Operand bias, Operand residual, Extent m, Extent n) {
  check.require(epilogue <= Epilogue::bias_residual, "the epilogue is none of ops::Epilogue");
  if (epilogue == Epilogue::swiglu) {
    check.require(n.value % 2 == 0, "N is odd; swiglu needs as many gates as factors");
    check.dense(c, types, {m, {"N/2", n.value / 2}});
  } else {
    check.dense(c, types, {m, n});
  }
  if (has_bias(epilogue)) {
    check.dense(bias, {ElementType::float32}, {n});
  } else {
    check.absent(bias, "the epilogue adds none");
  }
  if (has_residual(epilogue)) {
    check.dense(residual, {c.tensor->type}, {m, n});
  } else {
    check.absent(residual, "the epilogue adds none");
  }
}

void check_product(const Checks& check, const ProductNames& names, const Matmul& given) {
  const Extent m{names.m, given.a.shape[0]};
  const Extent n{names.n, given.b.shape[0]};
  const Extent k{names.k, given.a.shape[1]};
  check.dense({names.a, &given.a}, {ElementType::float32, ElementType::float16}, {m, k});
  check_weight(check, {names.b, &given.b}, n, k);
  check_result(check, given.epilogue, {given.a.type}, {names.c, &given.c}, {"bias", &given.bias},
               {"residual", &given.residual}, m, n);
}

// Of `matvec_q`, with k columns of activations in that type; normalised with `epsilon`.
KernelProblem few_rows_problem(std::int64_t rows, const TensorView& weight, std::int64_t k, Epilogue epilogue,
                               ElementType storage, ElementType input, std::optional<NormEpsilon> epsilon = {}) {
  return {"matvec_q",
          {{"M", rows},
           {"N", weight.shape[0]},
           {"K", k},
           {"EPILOGUE", static_cast<std::int64_t>(epilogue)},
           {"NORM", epsilon ? 1 : 0},
           {"EPSILON", epsilon.value_or(NormEpsilon()).nano}},
          {{"STORAGE", storage}, {"INPUT", input}, {"WEIGHT", weight.type}}};
}

// What a product with a weight in a packed format gives: c, or rounded rows.
void check_packed_result(const Checks& check, Epilogue epilogue, const TensorView& c, const QuantizedRows& rounded,
                         const TensorView& bias, const TensorView& residual, Extent m, Extent n) {
  if (epilogue == Epilogue::swiglu_int8) {
    check.require(n.value % (2 * kActivationBlock) == 0, "N is no multiple of 64; results are rounded in blocks of 32");
    const Extent half{"N/2", n.value / 2};
    check.dense({"rounded", &rounded.values}, {ElementType::int8}, {m, half});
    check.dense({"rounded scales", &rounded.scales}, {ElementType::float32},
                {{"N/64", n.value / (2 * kActivationBlock)}, m});
    for (const Operand& other : {Operand{"C", &c}, Operand{"bias", &bias}, Operand{"residual", &residual}}) {
      check.absent(other, "the results are rounded");
    }
  } else {
    check_result(check, epilogue, {ElementType::float32, ElementType::float16}, {"C", &c}, {"bias", &bias},
                 {"residual", &residual}, m, n);
    check.absent({"rounded", &rounded.values}, "the epilogue rounds nothing");
    check.absent({"rounded scales", &rounded.scales}, "the epilogue rounds nothing");
  }
}

Matmul product_of(const PatchEmbed& given) {
  return {.a = given.patches, .b = given.weight, .c = given.y, .bias = given.bias, .epilogue = Epilogue::bias};
}

}  // namespace

bool is_product(const Checks& check, const ProductNames& names, const Matmul& given) {
  check_product(check, names, given);
  if (is_empty(given.c)) {
    return false;
  }
  check.require(given.a.shape[1] > 0, "K is 0, every sum would be zero; fill the result instead");
  return true;
}

bool Matmul::check() const { return is_product(Checks(kName), {"A", "B", "C", "M", "N", "K"}, *this); }

KernelProblem Matmul::problem() const {
  const std::int64_t rows = a.shape[0];
  const auto finish = static_cast<std::int64_t>(epilogue);
  if (!is_packed_format(b.type)) {
    if (rows > kFewRows) {
      return {"matmul",
              {{"M", rows},
               {"N", b.shape[0]},
               {"K", a.shape[1]},
               {"EPILOGUE", finish},
               {"NORM", 0},
               {"HEAD_DIM", 0},
               {"POSITIONS", 0}},
              {{"STORAGE", a.type}, {"WEIGHT", b.type}}};
    }
    return {"matvec",
            {{"M", rows}, {"N", b.shape[0]}, {"K", a.shape[1]}, {"EPILOGUE", finish}},
            {{"STORAGE", a.type}, {"WEIGHT", b.type}}};
  }
  if (rows > kFewRows) {
    throw Error(
        fmt::format("{}: with B in {}, a device takes {} rows of A as they are; round more with Quantize, and "
                    "multiply with QuantizedMatmul",
                    kName, name_of(b.type), kFewRows));
  }
  return few_rows_problem(rows, b, a.shape[1], epilogue, c.type, a.type);
}

KernelProblem Matmul::observed() const {
  if (!is_packed_format(b.type) || a.shape[0] <= kFewRows) {
    return problem();
  }
  return {"matmul_q",
          {{"M", a.shape[0]},
           {"N", b.shape[0]},
           {"K", filled_columns(b.type, a.shape[1])},
           {"EPILOGUE", static_cast<std::int64_t>(epilogue)}},
          {{"STORAGE", a.type}, {"WEIGHT", b.type}}};
}

std::int64_t filled_columns(ElementType weight, std::int64_t columns) {
  const MatrixLayout layout = layout_of(weight);
  return layout.chunks(columns) * layout.chunk_columns;
}

std::int64_t scale_rows(ElementType weight, std::int64_t columns) {
  return weight == ElementType::int8_row ? 1 : filled_columns(weight, columns) / kActivationBlock;
}

bool Quantize::check() const {
  const Checks check(kName);
  const Extent m{"M", x.shape[0]};
  check.require(is_packed_format(for_weight), "the weight to multiply with is in no packed format");
  check.dense({"x", &x}, {ElementType::float32, ElementType::float16}, {m, {"K", x.shape[1]}});
  check.dense({"y", &y.values}, {ElementType::int8}, {m, {"columns", filled_columns(for_weight, x.shape[1])}});
  check.dense({"scales", &y.scales}, {ElementType::float32}, {{"blocks", scale_rows(for_weight, x.shape[1])}, m});
  return !is_empty(y.values);
}

KernelProblem Quantize::problem() const {
  return {"quantize",
          {{"ROWS", x.shape[0]},
           {"WIDTH", x.shape[1]},
           {"COLUMNS", y.values.shape[1]},
           {"BY_ROW", for_weight == ElementType::int8_row ? 1 : 0}},
          {{"STORAGE", x.type}}};
}

bool QuantizedMatmul::check() const {
  const Checks check(kName);
  const Extent m{"M", a.values.shape[0]};
  const Extent n{"N", b.shape[0]};
  const Extent k{"K", b.shape[1]};
  check.dense({"B", &b}, kPackedFormats, {n, k});
  check.dense({"A", &a.values}, {ElementType::int8}, {m, {"columns", filled_columns(b.type, k.value)}});
  check.dense({"scales", &a.scales}, {ElementType::float32}, {{"blocks", scale_rows(b.type, k.value)}, m});
  check_packed_result(check, epilogue, c, rounded, bias, residual, m, n);
  if (m.value == 0 || n.value == 0) {
    return false;
  }
  check.require(k.value > 0, "K is 0, every sum would be zero; fill the result instead");
  return true;
}

KernelProblem QuantizedMatmul::problem() const {
  const std::int64_t rows = a.values.shape[0];
  const std::int64_t k = a.values.shape[1];
  const ElementType storage = is_given(c) ? c.type : ElementType::float32;
  if (rows <= kFewRows) {
    return few_rows_problem(rows, b, k, epilogue, storage, ElementType::int8);
  }
  return {"matmul_q",
          {{"M", rows}, {"N", b.shape[0]}, {"K", k}, {"EPILOGUE", static_cast<std::int64_t>(epilogue)}},
          {{"STORAGE", storage}, {"WEIGHT", b.type}}};
}

bool NormedMatmul::check() const {
  const Checks check(kName);
  const Extent m{"M", a.shape[0]};
  const Extent n{"N", b.shape[0]};
  const Extent k{"K", b.shape[1]};
  check_weight(check, {"B", &b}, n, k);
  check.require(b.type != ElementType::int8_row,
                "B's scales are by row; what it is multiplied by needs Rmsnorm before");
  check.dense({"A", &a}, {ElementType::float32, ElementType::float16}, {m, k});
  check.dense({"norm", &norm}, {ElementType::float32}, {k});
  check_epsilon(check, epsilon);
  static_assert(kFewRows == 8);
  check.require(m.value <= kFewRows, "there are more than 8 rows of A");
  if (is_packed_format(b.type)) {
    check.require(filled_columns(b.type, k.value) == k.value,
                  "K is no multiple of the columns that B's format has together");
    check_packed_result(check, epilogue, c, rounded, bias, residual, m, n);
  } else {
    check_result(check, epilogue, {a.type}, {"C", &c}, {"bias", &bias}, {"residual", &residual}, m, n);
    check.absent({"rounded", &rounded.values}, "B is of floats");
    check.absent({"rounded scales", &rounded.scales}, "B is of floats");
  }
  if (m.value == 0 || n.value == 0) {
    return false;
  }
  check.require(k.value > 0, "K is 0, every sum would be zero; fill the result instead");
  return true;
}

KernelProblem NormedMatmul::problem() const {
  if (!is_packed_format(b.type)) {
    return {"matvec_normed",
            {{"M", a.shape[0]},
             {"N", b.shape[0]},
             {"K", a.shape[1]},
             {"EPILOGUE", static_cast<std::int64_t>(epilogue)},
             {"EPSILON", epsilon.nano}},
            {{"STORAGE", a.type}, {"WEIGHT", b.type}}};
  }
  return few_rows_problem(a.shape[0], b, a.shape[1], epilogue, is_given(c) ? c.type : ElementType::float32, a.type,
                          epsilon);
}

bool PatchEmbed::check() const {
  return is_product(Checks(kName), {"patches", "weight", "y", "N", "WIDTH", "P"}, product_of(*this));
}

KernelProblem PatchEmbed::problem() const { return product_of(*this).problem(); }

void PatchEmbed::compute() const { product_of(*this).compute(); }

}  // namespace pascaline::ops
