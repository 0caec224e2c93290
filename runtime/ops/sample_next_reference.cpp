#include <algorithm>

#include "runtime/ops/reference.hpp"

namespace pascaline {

void reference_sample(const Problem& problem, std::span<const std::vector<double>> inputs,
                      std::span<std::vector<double>> outputs);
void reference_advance(const Problem& problem, std::span<const std::vector<double>> inputs,
                       std::span<std::vector<double>> outputs);

// The next token as reference_sample chooses it, length, slots and positions each plus one, and the token's row of the
// table; dimensions VOCABULARY, WIDTH. Inputs those of sample, then length, slots, positions, table.
void reference_sample_next(const Problem& problem, std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs) {
  reference_sample(problem, inputs.first(5), outputs.first(4));
  reference_advance(problem, inputs.subspan(5, 3), outputs.subspan(4, 3));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  const auto token = static_cast<std::size_t>(outputs[2].at(0));
  std::copy_n(inputs[8].data() + token * width, width, outputs[7].data());
}

}  // namespace pascaline
