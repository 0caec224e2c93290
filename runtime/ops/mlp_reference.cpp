#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/ops/reference.hpp"
#include "runtime/ops/reference_rounding.hpp"

namespace pascaline {
namespace {

// What is known of a problem, and how far its computation has come.
struct FeedForward {
  explicit FeedForward(const Problem& problem)
      : hidden(static_cast<std::size_t>(problem.dimension("HIDDEN"))),
        intermediate(static_cast<std::size_t>(problem.dimension("INTERMEDIATE"))),
        epsilon(static_cast<double>(problem.dimension("EPSILON")) / 1e9),
        weight(problem.type("WEIGHT")),
        down(problem.type("DOWN")) {}

  std::size_t hidden;
  std::size_t intermediate;
  double epsilon;
  ElementType weight;
  ElementType down;
  std::vector<double> products;  ///< [M, 2 · INTERMEDIATE], times the norm's factor of the row
};

FeedForward gate_and_factor(const Problem& problem, std::span<const std::vector<double>> inputs) {
  FeedForward of(problem);
  of.products = normed_products(inputs[0], inputs[1], of.epsilon, inputs[2], of.weight);
  return of;
}

double sigmoid(double value) { return 1 / (1 + std::exp(-value)); }

std::vector<double> swiglu(const std::vector<double>& products) {
  std::vector<double> gated(products.size() / 2);
  for (std::size_t i = 0; i < gated.size(); ++i) {
    const double gate = products[2 * i];
    gated[i] = gate * sigmoid(gate) * products[2 * i + 1];
  }
  return gated;
}

// The relative error of SiLU where exponential and quotient are a GPU's approximate ones ("CUDA C++ Programming Guide",
// mathematical functions).
double error_of_silu(double gate) { return 0x1p-23 * (6 + 1.2 * std::abs(gate)); }

}  // namespace

// Inputs x, norm, gate_up and down; dimensions M, HIDDEN, INTERMEDIATE, EPSILON; types WEIGHT and
// DOWN.
void reference_mlp(const Problem& problem, std::span<const std::vector<double>> inputs,
                   std::span<std::vector<double>> outputs) {
  const FeedForward of = gate_and_factor(problem, inputs);
  std::vector<double> gated = swiglu(of.products);
  round_rows(gated, of.intermediate, of.down);
  outputs[0] = product_of_rows(gated, inputs[3], of.intermediate);
  std::transform(outputs[0].begin(), outputs[0].end(), inputs[0].begin(), outputs[0].begin(), std::plus<>());
}

// Of the values after SwiGLU those that errors may carry over the middle of two integers.
void slack_of_mlp(const Problem& problem, std::span<const std::vector<double>> inputs,
                  std::span<std::vector<double>> outputs) {
  const FeedForward of = gate_and_factor(problem, inputs);
  const std::vector<double> gated = swiglu(of.products);
  std::vector<double> errors(gated.size());
  const auto width = static_cast<std::ptrdiff_t>(2 * of.intermediate);
  for (auto row = of.products.begin(); row != of.products.end(); row += width) {
    const double square = std::inner_product(row, row + width, row, 0.0);
    const double error = error_of_packed_sums(of.hidden) * std::sqrt(square / static_cast<double>(width));
    for (std::ptrdiff_t i = 0; i < width; i += 2) {
      const double gate = row[i];
      const double slope = sigmoid(gate) * (1 + gate * (1 - sigmoid(gate)));
      const auto at = static_cast<std::size_t>((row - of.products.begin() + i) / 2);
      errors[at] = error * (std::abs(slope * row[i + 1]) + std::abs(gate * sigmoid(gate))) +
                   (error_of_packed_sums(of.hidden) + error_of_silu(gate)) * std::abs(gated[at]);
    }
  }
  outputs[0] = rounding_slack(gated, errors, of.intermediate, of.down, inputs[3]);
}

}  // namespace pascaline
