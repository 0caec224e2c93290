#pragma once

#include <cstdint>

namespace pascaline {

/// How the values of a weight are held.
enum class WeightFormat : std::uint8_t {
  dense,  ///< each value by itself, in the element type of the tensor
};

}  // namespace pascaline
