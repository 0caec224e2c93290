#include <cmath>
#include <iterator>
#include <numeric>

#include "runtime/ops/reference.hpp"
#include "runtime/ops/reference_rounding.hpp"

namespace pascaline {
namespace {

// What reference_attention_decode_qkv gives of the same inputs: caches and their scales as outputs[0 … 3], and what
// attention gives.
std::vector<std::vector<double>> attended(const Problem& problem, std::span<const std::vector<double>> inputs,
                                          std::span<std::vector<double>> outputs) {
  Problem attention{"attention_decode_qkv", problem.dimensions, problem.types};
  for (auto& [name, type] : attention.types) {
    if (name == "WEIGHT") {
      name = "OUTPUT";
      type = ElementType::float32;
    }
  }
  std::vector<std::vector<double>> placed(6);
  for (std::size_t i = 0; i < 4; ++i) {
    placed[i].resize(outputs[i].size());
  }
  placed[4].resize(static_cast<std::size_t>(problem.dimension("HEADS") * problem.dimension("HEAD_DIM")));
  find_host_reference("attention_decode_qkv")(attention, inputs.first(11), placed);
  return placed;
}

// `more`: by how much more than that parts may be off.
void slack_of_projection(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs, double more) {
  const std::vector<double> row = attended(problem, inputs, outputs)[4];
  const double part = more + 1e-5 + 4 * 0x1p-24 * std::sqrt(static_cast<double>(problem.dimension("KEYS")));
  const double mean =
      std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0) / static_cast<double>(row.size()));
  std::vector<double> errors;
  errors.reserve(row.size());
  for (const double value : row) {
    errors.push_back(part * (std::abs(value) + mean));
  }
  for (std::size_t i = 0; i < 4; ++i) {
    outputs[i].assign(outputs[i].size(), 0.0);
  }
  outputs[4] = rounding_slack(row, errors, row.size(), problem.type("WEIGHT"), inputs[12]);
}

// What is left of a layer's problem and inputs when its queries, keys and values are known.
Problem problem_of_projection(const Problem& problem) {
  Problem projection{"attention_projected", problem.dimensions, problem.types};
  for (auto& [name, type] : projection.types) {
    if (name == "WEIGHT" && is_packed_format(type)) {
      type = problem.type("BACK");
    }
  }
  return projection;
}
std::vector<std::vector<double>> inputs_of_projection(const Problem& problem,
                                                      std::span<const std::vector<double>> inputs) {
  const double epsilon = static_cast<double>(problem.dimension("EPSILON")) / 1e9;
  std::vector<std::vector<double>> left{
      normed_products(inputs[0], inputs[1], epsilon, inputs[2], problem.type("WEIGHT"))};
  left.insert(left.end(), inputs.begin() + 3, inputs.begin() + 13);
  left.push_back(inputs[0]);
  left.push_back(inputs[13]);
  return left;
}

}  // namespace

// That times the weight's rows, plus x; rounded to int8 before where the weight is packed. Inputs as there, then x and
// weight; outputs the caches, their scales and c; dimensions as there, and HIDDEN.
void reference_attention_projected(const Problem& problem, std::span<const std::vector<double>> inputs,
                                   std::span<std::vector<double>> outputs) {
  std::vector<std::vector<double>> placed = attended(problem, inputs, outputs);
  std::vector<double>& row = placed[4];
  round_rows(row, row.size(), problem.type("WEIGHT"));
  outputs[4] = inputs[11];
  auto weights = inputs[12].begin();
  for (double& sum : outputs[4]) {
    sum = std::inner_product(row.begin(), row.end(), weights, sum);
    weights += std::ssize(row);
  }
  std::move(placed.begin(), placed.begin() + 4, outputs.begin());
}

// Attention's results may be off by what the kernel's tolerance allows for sums over keys, in parts of each and of all.
void slack_of_attention_projected(const Problem& problem, std::span<const std::vector<double>> inputs,
                                  std::span<std::vector<double>> outputs) {
  slack_of_projection(problem, inputs, outputs, 0);
}

// The same behind the product that gives queries, keys and values. Inputs x, norm, its weight, then as there from
// q_weight to v_scales, then the projection's weight; outputs as there; types WEIGHT, and BACK where it may be another.
void reference_attention_layer(const Problem& problem, std::span<const std::vector<double>> inputs,
                               std::span<std::vector<double>> outputs) {
  reference_attention_projected(problem_of_projection(problem), inputs_of_projection(problem, inputs), outputs);
}

// Queries, keys and values may be off by what sums over columns of x are: so scores, and the weights of keys by that
// times the greatest score.
void slack_of_attention_layer(const Problem& problem, std::span<const std::vector<double>> inputs,
                              std::span<std::vector<double>> outputs) {
  constexpr double kScores = 16;
  slack_of_projection(problem_of_projection(problem), inputs_of_projection(problem, inputs), outputs,
                      kScores * error_of_packed_sums(inputs[1].size()));
}

}  // namespace pascaline
