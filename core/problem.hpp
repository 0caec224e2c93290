#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/element_type.hpp"

namespace pascaline {

/// What is to be computed: a kernel, the values of its dimensions and its element types.
/// It is the key a shape is stored and dispatched under.
struct Problem {
  std::string kernel;
  std::vector<std::pair<std::string, std::int64_t>> dimensions;  ///< in the space's order
  std::vector<std::pair<std::string, ElementType>> types;        ///< in the space's order
  /// Hash of the contents of buffers, where they were given to measure with; empty: they are drawn. Dispatch ignores
  /// it.
  std::string data{};

  /// The dimension's value; throws Error if there is none of that name.
  [[nodiscard]] std::int64_t dimension(std::string_view name) const;
  /// The type bound to that type variable; throws Error if there is none of that name.
  [[nodiscard]] ElementType type(std::string_view name) const;
  /// Canonical text `matmul M=512 N=2048 K=2048 STORAGE=float32`, names in the order held; then, if they are given,
  /// `DATA=` and the hash of contents.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The name of Problem::data among values; no dimension or type has it.
inline constexpr std::string_view kDataName = "DATA";

/// Tells whether both are the same but for the contents of buffers.
[[nodiscard]] inline bool same_shape(const Problem& a, const Problem& b) {
  return a.kernel == b.kernel && a.dimensions == b.dimensions && a.types == b.types;
}

}  // namespace pascaline
