#pragma once

#include <cstdint>

#include "core/util/json_reader.hpp"

namespace pascaline {

/// How another program's quantizer stored matrices of a folder.
enum class FolderQuantization : std::uint8_t {
  none,
  fp8_blocks,  ///< E4M3 with a scale for each block of 128 × 128
  awq          ///< integers of 4 bits in groups of 128, with zero points
};

/// Sides of the blocks that share a scale.
inline constexpr std::int64_t kFp8Block = 128;

/// Reads the quantization_config of a config.json. Throws SpaceError with the pointer of whatever is not one of these.
[[nodiscard]] FolderQuantization read_quantization(const JsonNode& quantization);

}  // namespace pascaline
