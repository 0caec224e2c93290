#include "core/space/shape_distance.hpp"

#include <algorithm>
#include <cmath>

namespace pascaline {

std::optional<double> shape_distance(const Space& space, const Problem& a, const Problem& b) {
  if (a.kernel != b.kernel || a.types != b.types || a.dimensions.size() != b.dimensions.size() ||
      a.dimensions.size() != space.dimensions.size()) {
    return std::nullopt;
  }
  double sum = 0;
  for (std::size_t i = 0; i < a.dimensions.size(); ++i) {
    const auto& [name, value] = a.dimensions[i];
    const auto& [other_name, other_value] = b.dimensions[i];
    if (name != other_name || (space.dimensions[i].fixed && value != other_value)) {
      return std::nullopt;
    }
    const double octaves =
        std::log2(std::max(static_cast<double>(value), 0.5) / std::max(static_cast<double>(other_value), 0.5));
    sum += octaves * octaves;
  }
  return std::sqrt(sum);
}

}  // namespace pascaline
