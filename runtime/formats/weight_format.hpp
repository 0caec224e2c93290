#pragma once

#include <cstdint>
#include <string_view>

#include "core/problem.hpp"

namespace pascaline {

/// How the values of a weight are held.
enum class WeightFormat : std::uint8_t {
  dense,      ///< each value by itself, in the element type of the tensor
  int8_rows,  ///< int8 values and a float32 scale for each row, see `int8_rows.hpp`
};

/// How a model's matrices are kept.
struct WeightStorage {
  /// All dense, of that type; implicit, as a type alone says how.
  constexpr WeightStorage(ElementType dense) : type(dense) {}  // NOLINT(google-explicit-*)
  constexpr WeightStorage(ElementType dense, WeightFormat of_layers) : type(dense), format(of_layers) {}

  ElementType type;                           ///< of dense matrices: float32 or float16
  WeightFormat format = WeightFormat::dense;  ///< of the text decoder's linear layers; all others are dense
};

/// What `--weights` and messages call it.
[[nodiscard]] inline std::string_view name_of(WeightStorage storage) {
  return storage.format == WeightFormat::int8_rows ? "int8" : name_of(storage.type);
}

}  // namespace pascaline
