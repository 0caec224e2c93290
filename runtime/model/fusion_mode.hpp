#pragma once

#include <cstdint>

namespace pascaline {

/// Which operations of a model run as one launch on a device.
enum class Fusion : std::uint8_t {
  automatic,  ///< those that a plan says
  off,        ///< none but what a product does with its result: bias, activation, residual, rounding
};

}  // namespace pascaline
