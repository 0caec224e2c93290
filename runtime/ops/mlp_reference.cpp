#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/util/parallel.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/reference.hpp"
#include "runtime/ops/reference_rounding.hpp"

namespace pascaline {
namespace {

// a · bᵀ
std::vector<double> product_of_rows(const std::vector<double>& a, const std::vector<double>& b, std::size_t k) {
  const std::size_t m = a.size() / k;
  const std::size_t n = b.size() / k;
  std::vector<double> c(m * n);
  parallel_for(n, std::max<std::size_t>(1, 16'384 / k), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t column = begin; column < end; ++column) {
        double sum = 0;
        for (std::size_t i = 0; i < k; ++i) {
          sum += a[row * k + i] * b[column * k + i];
        }
        c[row * n + column] = sum;
      }
    }
  });
  return c;
}

// What is known of a problem, and how far its computation has come.
struct FeedForward {
  explicit FeedForward(const Problem& problem)
      : hidden(static_cast<std::size_t>(problem.dimension("HIDDEN"))),
        intermediate(static_cast<std::size_t>(problem.dimension("INTERMEDIATE"))),
        epsilon(static_cast<double>(problem.dimension("EPSILON")) / 1e9),
        weight(problem.type("WEIGHT")),
        down(is_packed_format(weight) ? problem.type("DOWN") : weight) {}

  std::size_t hidden;
  std::size_t intermediate;
  double epsilon;
  ElementType weight;
  ElementType down;
  std::vector<double> products;  ///< [M, 2 · INTERMEDIATE], times the norm's factor of the row
};

FeedForward gate_and_factor(const Problem& problem, std::span<const std::vector<double>> inputs) {
  FeedForward of(problem);
  const std::vector<double>& x = inputs[0];
  std::vector<double> normed = x;
  std::vector<double> factors;
  for (std::size_t row = 0; row < x.size(); row += of.hidden) {
    double squares = 0;
    for (std::size_t i = 0; i < of.hidden; ++i) {
      squares += x[row + i] * x[row + i];
      // Rounded values are those of float32 products.
      normed[row + i] = is_packed_format(of.weight) ? static_cast<float>(x[row + i]) * static_cast<float>(inputs[1][i])
                                                    : x[row + i] * inputs[1][i];
    }
    factors.push_back(1 / std::sqrt(squares / static_cast<double>(of.hidden) + of.epsilon));
  }
  round_rows(normed, of.hidden, of.weight);
  of.products = product_of_rows(normed, inputs[2], of.hidden);
  for (std::size_t i = 0; i < of.products.size(); ++i) {
    of.products[i] *= factors[i / (2 * of.intermediate)];
  }
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

// By how much float32 sums may make what they give differ, in parts of the root mean square of a row's sums: four times
// what a random walk of their roundings comes to (as in core/error_bound.cpp), with a few of what is done besides.
double error_of_sums(const FeedForward& of) {
  constexpr double kDeviations = 4;
  constexpr double kOtherRoundings = 8;
  const double terms = static_cast<double>(of.hidden) / kActivationBlock + kOtherRoundings;
  return kDeviations * 0x1p-24 * std::sqrt(terms);
}

// And its relative error where exponential and quotient are a GPU's approximate ones ("CUDA C++ Programming Guide",
// mathematical functions).
double error_of_silu(double gate) { return 0x1p-23 * (6 + 1.2 * std::abs(gate)); }

}  // namespace

// Inputs x, norm, gate_up and down; dimensions M, HIDDEN, INTERMEDIATE, EPSILON; types WEIGHT, and DOWN where it may be
// another.
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
    const double error = error_of_sums(of) * std::sqrt(square / static_cast<double>(width));
    for (std::ptrdiff_t i = 0; i < width; i += 2) {
      const double gate = row[i];
      const double slope = sigmoid(gate) * (1 + gate * (1 - sigmoid(gate)));
      const auto at = static_cast<std::size_t>((row - of.products.begin() + i) / 2);
      errors[at] = error * (std::abs(slope * row[i + 1]) + std::abs(gate * sigmoid(gate))) +
                   (error_of_sums(of) + error_of_silu(gate)) * std::abs(gated[at]);
    }
  }
  outputs[0] = rounding_slack(gated, errors, of.intermediate, of.down, inputs[3]);
}

}  // namespace pascaline
