#include "runtime/cpu/epilogue.hpp"

#include "runtime/cpu/activation.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/checked.hpp"

namespace pascaline::cpu {
namespace {

void add_bias(const ops::MatmulArguments& given, const RowPart& part, float* sums) {
  const float* bias = static_cast<const float*>(given.bias.data) + part.first;
  for (std::int64_t i = 0; i < part.count; ++i) {
    sums[i] += bias[i];
  }
}

void add_residual(const ops::MatmulArguments& given, const RowPart& part, float* sums) {
  const std::int64_t at = part.row * given.b.values.shape[0] + part.first;
  const float* residual = floats_at(given.residual, at, part.count, scratch(Scratch::fourth, part.count));
  for (std::int64_t i = 0; i < part.count; ++i) {
    sums[i] += residual[i];
  }
}

void store_swiglu(const ops::MatmulArguments& given, const RowPart& part, const float* sums) {
  const std::int64_t count = part.count / 2;
  float* gates = scratch(Scratch::fourth, count);
  float* factors = scratch(Scratch::fifth, count);
  for (std::int64_t i = 0; i < count; ++i) {
    gates[i] = sums[2 * i];
    factors[i] = sums[2 * i + 1];
  }
  vector_kernels().silu_multiply(gates, factors, gates, count);
  store_floats(gates, given.c, part.row * (given.b.values.shape[0] / 2) + part.first / 2, count);
}

}  // namespace

void finish_sums(const ops::MatmulArguments& given, const RowPart& part, float* sums) {
  if (given.epilogue == ops::Epilogue::swiglu) {
    store_swiglu(given, part, sums);
    return;
  }
  if (ops::has_bias(given.epilogue)) {
    add_bias(given, part, sums);
  }
  if (given.epilogue == ops::Epilogue::bias_gelu_tanh) {
    vector_kernels().gelu_tanh(sums, sums, part.count);
  } else if (given.epilogue == ops::Epilogue::bias_gelu_erf) {
    gelu_erf_values(sums, sums, part.count);
  }
  if (ops::has_residual(given.epilogue)) {
    add_residual(given, part, sums);
  }
  store_floats(sums, given.c, part.row * given.b.values.shape[0] + part.first, part.count);
}

}  // namespace pascaline::cpu
