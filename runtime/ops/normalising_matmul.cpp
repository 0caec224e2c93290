#include "runtime/ops/normalising_matmul.hpp"

#include "runtime/ops/matmul_checks.hpp"

namespace pascaline::ops {
namespace {

RowNorm norm_of(const NormalisingMatmul& given) { return is_given(given.norm_bias) ? RowNorm::layer : RowNorm::rms; }

// Of the dimension NORM.
constexpr std::int64_t kQuarters = 3;

}  // namespace

bool NormalisingMatmul::is_of_quarters() const noexcept { return norm.rank == 1 && norm.shape[0] * 4 == a.shape[1]; }

bool NormalisingMatmul::check() const {
  const Checks check(kName);
  const bool is_needed = is_product(check, {"A", "B", "C", "M", "N", "K"},
                                    {.a = a, .b = b, .c = c, .bias = bias, .residual = residual, .epilogue = epilogue});
  check.require(!is_packed_format(b.type),
                "B is in a packed format, whose kernels take rounded rows; let Rmsnorm or Layernorm round them");
  const bool quarters = is_of_quarters();
  const Extent k{quarters ? "K/4" : "K", a.shape[1] / (quarters ? 4 : 1)};
  check.dense({"norm", &norm}, {ElementType::float32}, {k});
  if (is_given(norm_bias)) {
    check.dense({"norm bias", &norm_bias}, {ElementType::float32}, {k});
  }
  if (quarters) {
    check.require(is_given(norm_bias), "a norm of quarters of rows is Layernorm, and needs its bias");
    check.require(k.value % 8 == 0, "a norm of quarters of rows needs K to be a multiple of 32");
  }
  check.dense(
      {"statistics", &statistics}, {ElementType::float32},
      {{"NORM", static_cast<std::int64_t>(norm_of(*this))}, {quarters ? "4·M" : "M", a.shape[0] * (quarters ? 4 : 1)}});
  return is_needed;
}

KernelProblem NormalisingMatmul::problem() const {
  return {"matmul",
          {{"M", a.shape[0]},
           {"N", b.shape[0]},
           {"K", a.shape[1]},
           {"EPILOGUE", static_cast<std::int64_t>(epilogue)},
           {"NORM", is_of_quarters() ? kQuarters : static_cast<std::int64_t>(norm_of(*this))},
           {"HEAD_DIM", 0},
           {"POSITIONS", 0}},
          {{"STORAGE", a.type}, {"WEIGHT", b.type}}};
}

}  // namespace pascaline::ops
