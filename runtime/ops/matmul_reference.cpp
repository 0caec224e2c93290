#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"
#include "runtime/ops/reference_rounding.hpp"
#include "runtime/ops/scale_reference.hpp"

namespace pascaline {
namespace {

// Values of the dimension EPILOGUE.
enum class Epilogue : std::int64_t { none, bias, bias_gelu_tanh, bias_gelu_erf, residual, swiglu, bias_residual };
constexpr std::int64_t kSwigluInt8 = 7;  // swiglu, rounded to int8

// Four partial sums let the compiler vectorise without changing what is computed from run to run.
double dot(const double* a, const double* b, std::size_t count) {
  double sums[4] = {0, 0, 0, 0};
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      sums[lane] += a[k + lane] * b[k + lane];
    }
  }
  for (; k < count; ++k) {
    sums[0] += a[k] * b[k];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double finish(Epilogue epilogue, double x) {
  switch (epilogue) {
    case Epilogue::bias_gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x)));
    case Epilogue::bias_gelu_erf:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    default:
      return x;
  }
}

}  // namespace

namespace {

// Rows [m, k] normalised as the dimension NORM says, each or each quarter of it, by inputs 4 to 6: weights and biases
// of the columns, statistics of the rows.
std::vector<double> normalised_rows(const Problem& problem, std::span<const std::vector<double>> inputs) {
  const std::size_t parts = problem.dimension("NORM") == 3 ? 4 : 1;
  const auto m = static_cast<std::size_t>(problem.dimension("M")) * parts;
  const auto k = static_cast<std::size_t>(problem.dimension("K")) / parts;
  const bool shifts = problem.dimension("NORM") >= 2;
  const std::vector<double>& statistics = inputs[6];
  std::vector<double> rows = inputs[0];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double mean = shifts ? statistics[m + i / k] : 0.0;
    rows[i] = (rows[i] - mean) * statistics[i / k] * inputs[4][i % k] + (shifts ? inputs[5][i % k] : 0.0);
  }
  return rows;
}

// Whether there are statistics to normalise by.
bool normalises(std::span<const std::vector<double>> inputs) { return inputs.size() > 6 && !inputs[6].empty(); }

// Turns the pairs of columns that queries and keys are in rows of them and of values, by inputs 7 to 9: cosines, sines
// and positions; dimensions HEAD_DIM, POSITIONS.
void turn_heads(const Problem& problem, std::span<const std::vector<double>> inputs, std::vector<double>& c) {
  const auto m = static_cast<std::size_t>(problem.dimension("M"));
  const auto n = static_cast<std::size_t>(problem.dimension("N"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  const auto last_position = static_cast<double>(problem.dimension("POSITIONS") - 1);
  const std::size_t quarter = head_dim / 4;
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n / 3 * 2; column += 2) {
      const std::size_t slot = column % head_dim / 2;
      const double position = std::clamp(inputs[9][slot < quarter ? row : m + row], 0.0, last_position);
      const std::size_t angle = static_cast<std::size_t>(position) * quarter + slot % quarter;
      double& low = c[row * n + column];
      double& high = c[row * n + column + 1];
      const double turned = low * inputs[7][angle] - high * inputs[8][angle];
      high = high * inputs[7][angle] + low * inputs[8][angle];
      low = turned;
    }
  }
}

}  // namespace

// `C[M,N] = A[M,K] · B[N,K]ᵀ`, all row-major; dimensions M, N, K; with statistics of A's rows also NORM, with
// positions HEAD_DIM and POSITIONS. Uses all processors.
void reference_matmul_nt(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs) {
  const auto m = static_cast<std::size_t>(problem.dimension("M"));
  const auto n = static_cast<std::size_t>(problem.dimension("N"));
  const auto k = static_cast<std::size_t>(problem.dimension("K"));
  const auto epilogue = static_cast<Epilogue>(problem.dimension("EPILOGUE"));
  const std::vector<double> normalised = normalises(inputs) ? normalised_rows(problem, inputs) : std::vector<double>();
  const double* a = normalised.empty() ? inputs[0].data() : normalised.data();
  const double* b = inputs[1].data();
  const std::vector<double>& bias = inputs[2];
  const std::vector<double>& residual = inputs[3];
  double* c = outputs[0].data();
  const std::size_t columns = epilogue == Epilogue::swiglu ? n / 2 : n;
  const auto element = [&](std::size_t i, std::size_t j) {
    const double* row = a + i * k;
    if (epilogue == Epilogue::swiglu) {
      const double gate = dot(row, b + 2 * j * k, k);
      return gate / (1 + std::exp(-gate)) * dot(row, b + (2 * j + 1) * k, k);
    }
    const double sum = dot(row, b + j * k, k) + (bias.empty() ? 0.0 : bias[j]);
    return finish(epilogue, sum) + (residual.empty() ? 0.0 : residual[i * n + j]);
  };
  // A row of B is used for all rows of A while it is in cache.
  worker_pool().run(columns, std::max<std::size_t>(1, 16'384 / std::max<std::size_t>(k, 1)),
                    [&](std::size_t begin, std::size_t end) {
                      for (std::size_t i = 0; i < m; ++i) {
                        for (std::size_t j = begin; j < end; ++j) {
                          c[i * columns + j] = element(i, j);
                        }
                      }
                    });
  if (inputs.size() > 9 && !inputs[9].empty()) {
    turn_heads(problem, inputs, outputs[0]);
  }
}

// The same of normalised rows: inputs a, the norm's weights, b, bias and residual; dimension EPSILON.
void reference_matvec_normed(const Problem& problem, std::span<const std::vector<double>> inputs,
                             std::span<std::vector<double>> outputs) {
  const auto k = static_cast<std::size_t>(problem.dimension("K"));
  const double epsilon = static_cast<double>(problem.dimension("EPSILON")) / 1e9;
  std::vector<std::vector<double>> operands{inputs[0], inputs[2], inputs[3], inputs[4]};
  for (std::size_t row = 0; row < operands[0].size(); row += k) {
    double squares = 0;
    for (std::size_t i = 0; i < k; ++i) {
      squares += operands[0][row + i] * operands[0][row + i];
    }
    const double factor = 1 / std::sqrt(squares / static_cast<double>(k) + epsilon);
    for (std::size_t i = 0; i < k; ++i) {
      operands[0][row + i] *= factor * inputs[1][i];
    }
  }
  reference_matmul_nt(problem, operands, outputs);
}

namespace {

// The same for kSwigluInt8, too; outputs c, q and scales_c, of which the epilogue decides.
void multiply_and_round(const Problem& problem, std::span<const std::vector<double>> operands,
                        std::span<std::vector<double>> outputs) {
  const bool rounds = problem.dimension("EPILOGUE") == kSwigluInt8;
  Problem product = problem;
  for (auto& [name, value] : product.dimensions) {
    value = name == "EPILOGUE" && rounds ? static_cast<std::int64_t>(Epilogue::swiglu) : value;
  }
  reference_matmul_nt(product, operands, outputs.subspan(rounds ? 1 : 0));
  const auto rows = static_cast<std::size_t>(problem.dimension("M"));
  const std::size_t width = static_cast<std::size_t>(problem.dimension("N")) / 2;
  for (std::size_t row = 0; rounds && row < rows; ++row) {
    scale_row(outputs[1], outputs[2], row, rows, width, 32);
  }
}

}  // namespace

// The same of int8 activations whose rows have a scale each, or one for each 32 columns: scales [K / 32, M] or [M]. The
// last three inputs are the weight, the bias and the residual.
void reference_matmul_q(const Problem& problem, std::span<const std::vector<double>> inputs,
                        std::span<std::vector<double>> outputs) {
  const auto m = static_cast<std::size_t>(problem.dimension("M"));
  const auto k = static_cast<std::size_t>(problem.dimension("K"));
  const std::vector<double>& scales = inputs[1];
  const std::size_t block = scales.size() == m ? k : 32;
  const std::size_t weight = inputs.size() - 3;
  std::vector<std::vector<double>> operands{inputs[0], inputs[weight], inputs[weight + 1], inputs[weight + 2]};
  for (std::size_t i = 0; i < m * k; ++i) {
    operands[0][i] *= scales[i % k / block * m + i / k];
  }
  multiply_and_round(problem, operands, outputs);
}

// The same of activations that are int8, or are rounded to it first, as the weight's format asks for; normalised before
// that with NORM. Between the scales and the weight there are the norm's weights.
void reference_matvec_q(const Problem& problem, std::span<const std::vector<double>> inputs,
                        std::span<std::vector<double>> outputs) {
  if (problem.type("INPUT") == ElementType::int8) {
    reference_matmul_q(problem, inputs, outputs);
    return;
  }
  const auto m = static_cast<std::size_t>(problem.dimension("M"));
  const auto k = static_cast<std::size_t>(problem.dimension("K"));
  const bool normed = problem.dimension("NORM") != 0;
  const double epsilon = static_cast<double>(problem.dimension("EPSILON")) / 1e9;
  const std::vector<double>& norm = inputs[2];
  std::vector<std::vector<double>> operands{inputs[0], inputs[3], inputs[4], inputs[5]};
  std::vector<double> factors(m, 1.0);
  for (std::size_t row = 0; normed && row < m; ++row) {
    double squares = 0;
    for (std::size_t i = row * k; i < (row + 1) * k; ++i) {
      squares += operands[0][i] * operands[0][i];
      operands[0][i] = static_cast<float>(operands[0][i]) * static_cast<float>(norm[i - row * k]);
    }
    factors[row] = 1 / std::sqrt(squares / static_cast<double>(k) + epsilon);
  }
  round_rows(operands[0], k, problem.type("WEIGHT"));
  for (std::size_t i = 0; i < operands[0].size(); ++i) {
    operands[0][i] *= factors[i / k];
  }
  multiply_and_round(problem, operands, outputs);
}

}  // namespace pascaline
