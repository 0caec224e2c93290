#include <vector>

#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {

// Rounding is part of the definition, so it is done in float32. Dimensions ROWS, WIDTH, COLUMNS, BY_ROW.
void reference_quantize(const Problem& problem, std::span<const std::vector<double>> inputs,
                        std::span<std::vector<double>> outputs) {
  const auto rows = static_cast<std::size_t>(problem.dimension("ROWS"));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  const auto columns = static_cast<std::size_t>(problem.dimension("COLUMNS"));
  const std::size_t block = problem.dimension("BY_ROW") != 0 ? columns : std::size_t{kActivationBlock};
  std::vector<float> row(columns);
  std::vector<std::int8_t> rounded(columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t column = 0; column < width; ++column) {
      row[column] = static_cast<float>(inputs[0][i * width + column]);
    }
    for (std::size_t first = 0; first < columns; first += block) {
      const std::span<const float> part = std::span(row).subspan(first, block);
      const Int8Scale scale = int8_scale(part);
      round_to_int8(part, scale.inverse, rounded.data() + first);
      outputs[1][first / block * rows + i] = scale.scale;
    }
    for (std::size_t column = 0; column < columns; ++column) {
      outputs[0][i * columns + column] = rounded[column];
    }
  }
}

}  // namespace pascaline
