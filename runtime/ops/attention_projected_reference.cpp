#include <iterator>

#include "runtime/ops/reference.hpp"

namespace pascaline {

// What reference_attention_decode_qkv gives, times the weight's rows, plus x. Inputs as there, then x and weight;
// outputs the caches, their scales and c; dimensions as there, and HIDDEN.
void reference_attention_projected(const Problem& problem, std::span<const std::vector<double>> inputs,
                                   std::span<std::vector<double>> outputs) {
  const auto hidden = static_cast<std::size_t>(problem.dimension("HIDDEN"));
  const auto width = static_cast<std::size_t>(problem.dimension("HEADS") * problem.dimension("HEAD_DIM"));
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
  placed[4].resize(width);
  find_host_reference("attention_decode_qkv")(attention, inputs.first(11), placed);
  const std::vector<double>& x = inputs[11];
  const std::vector<double>& weight = inputs[12];
  const std::vector<double>& attended = placed[4];
  outputs[4].resize(hidden);
  for (std::size_t row = 0; row < hidden; ++row) {
    double sum = x[row];
    for (std::size_t i = 0; i < width; ++i) {
      sum += weight[row * width + i] * attended[i];
    }
    outputs[4][row] = sum;
  }
  std::move(placed.begin(), placed.begin() + 4, outputs.begin());
}

}  // namespace pascaline
