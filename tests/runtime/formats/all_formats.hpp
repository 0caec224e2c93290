#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "core/element_type.hpp"

namespace pascaline::testing {

/// All packed formats.
inline constexpr auto kPackedTypes = [] {
  std::array<ElementType, packed_formats().size()> types{};
  std::transform(packed_formats().begin(), packed_formats().end(), types.begin(),
                 [](const FormatTraits& format) { return format.type; });
  return types;
}();

/// The formats whose blocks are ggml's.
inline std::vector<ElementType> ggml_formats() {
  std::vector<ElementType> types;
  for (const FormatTraits& format : packed_formats()) {
    if (format.gguf.type != 0) {
      types.push_back(format.type);
    }
  }
  return types;
}

}  // namespace pascaline::testing
