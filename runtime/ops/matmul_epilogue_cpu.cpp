#include "runtime/cpu/activation.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/matmul_epilogue.hpp"

namespace pascaline::ops {
namespace {

void add_bias(const Matmul& given, const RowPart& part, float* sums) {
  const float* bias = static_cast<const float*>(given.bias.data) + part.first;
  for (std::int64_t i = 0; i < part.count; ++i) {
    sums[i] += bias[i];
  }
}

void add_residual(const Matmul& given, const RowPart& part, float* sums) {
  const std::int64_t at = part.row * given.b.shape[0] + part.first;
  const float* residual =
      cpu::floats_at(given.residual, at, part.count, cpu::scratch(cpu::Scratch::fourth, part.count));
  for (std::int64_t i = 0; i < part.count; ++i) {
    sums[i] += residual[i];
  }
}

void store_swiglu(const Matmul& given, const RowPart& part, const float* sums) {
  const std::int64_t count = part.count / 2;
  float* gates = cpu::scratch(cpu::Scratch::fourth, count);
  float* factors = cpu::scratch(cpu::Scratch::fifth, count);
  for (std::int64_t i = 0; i < count; ++i) {
    gates[i] = sums[2 * i];
    factors[i] = sums[2 * i + 1];
  }
  cpu::vector_kernels().silu_multiply(gates, factors, gates, count);
  cpu::store_floats(gates, given.c, part.row * (given.b.shape[0] / 2) + part.first / 2, count);
}

}  // namespace

void finish_sums(const Matmul& given, const RowPart& part, float* sums) {
  if (given.epilogue == Epilogue::swiglu) {
    store_swiglu(given, part, sums);
    return;
  }
  if (has_bias(given.epilogue)) {
    add_bias(given, part, sums);
  }
  if (given.epilogue == Epilogue::bias_gelu_tanh) {
    cpu::vector_kernels().gelu_tanh(sums, sums, part.count);
  } else if (given.epilogue == Epilogue::bias_gelu_erf) {
    cpu::gelu_erf_values(sums, sums, part.count);
  }
  if (has_residual(given.epilogue)) {
    add_residual(given, part, sums);
  }
  cpu::store_floats(sums, given.c, part.row * given.b.shape[0] + part.first, part.count);
}

}  // namespace pascaline::ops
