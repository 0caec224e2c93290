#include "runtime/formats/lost_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/formats/packed_matrix.hpp"

namespace pascaline {
namespace {

// A block with a larger value keeps a scale that is not 0: scales are at least that value / 4832 (iq4_xs), and float16
// holds those above 3e-8.
constexpr float kAlwaysHeld = 1e-3F;

float largest(std::span<const float> values) {
  float most = 0;
  for (const float value : values) {
    most = std::max(most, std::abs(value));
  }
  return most;
}

}  // namespace

std::size_t lost_blocks(ElementType format, std::span<const float> values, std::span<const std::byte> row) {
  const std::size_t block = file_block_values(format, values.size());
  std::vector<float> held;
  std::size_t lost = 0;
  for (std::size_t first = 0; first < values.size(); first += block) {
    const std::span<const float> of_block = values.subspan(first, std::min(block, values.size() - first));
    const float most = largest(of_block);
    if (most == 0 || most > kAlwaysHeld) {
      continue;
    }
    if (held.empty()) {
      held.resize(values.size());
      dequantize_row(format, row, held);
    }
    lost += largest(std::span(held).subspan(first, of_block.size())) == 0 ? 1 : 0;
  }
  return lost;
}

}  // namespace pascaline
